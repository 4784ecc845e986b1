//! The options of the bench, and starting Calve's servers.

use std::path::PathBuf;

use calve_core::Strategy;
use calve_db::{Home, OwnedServer, Ownership, StartOptions};

use crate::error::BenchError;
use crate::setup::BenchSetup;

pub struct DatabaseBench<'a> {
    /// Its place is on the file system of the templates and servers.
    pub setup: BenchSetup<'a>,
    pub home: &'a Home,
    pub supervisor: &'a [PathBuf],
    pub template: &'a str,
    /// A statement that writes. By default it deletes a row of the largest table.
    pub write: Option<&'a str>,
    /// Servers to start in each way.
    pub runs: u32,
    /// Timings of each whole command; 0 for none.
    pub steps: u32,
}

/// The statement that a server answers first, in every engine.
pub(super) const QUERY: &str = "SELECT 1";

impl DatabaseBench<'_> {
    /// Starts a server that ends with this process, however that ends.
    pub(super) fn start(&self, strategy: Option<Strategy>) -> Result<OwnedServer, calve_db::Error> {
        let (owner, cancel) = (Ownership::Caller, self.setup.cancel.clone());
        let options = StartOptions { owner, strategy, cancel, ..StartOptions::default() };
        calve_db::start(self.home, self.template, &options, self.supervisor)
    }
}

/// Runs `calve db WORDS` as users do. The program is the first word of `supervisor`.
pub(super) fn program(supervisor: &[PathBuf], words: &[&str]) -> Result<(), BenchError> {
    let calve = supervisor.first().map(PathBuf::as_path).unwrap_or_else(|| std::path::Path::new("calve"));
    let mut command = std::process::Command::new(calve);
    let output = command.arg("db").args(words).stdin(std::process::Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(std::io::Error::other(format!("`calve db {}` failed: {said}", words.join(" "))).into())
}
