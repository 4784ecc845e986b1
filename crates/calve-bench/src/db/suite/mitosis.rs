//! The program `mitosis` (mitosis-db), which clones PostgreSQL servers too: each test destroys its clone and makes another one.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use calve_db::Record;
use calve_receipt::bench::{NotRun, NotRunReason};
use serde::Deserialize;

use super::super::client::Session;
use super::{SuiteWorker, succeeded};
use crate::error::BenchError;
use crate::remedy::{ProgramSource, Remedy};
use crate::setup::BenchSetup;
use crate::{comparison, process, programs};

const COMMAND: &str = "mitosis clone";
const TEMPLATE: &str = "bench";
/// Should the bench be killed, its clones end by themselves.
const LONGEST: &str = "30m";

/// Its daemon with its files, in the bench's directory. They end with this.
pub(super) struct Mitosis {
    program: PathBuf,
    home: PathBuf,
    server: Record,
}

/// The output of `mitosis clone --json`.
#[derive(Deserialize)]
struct Clone {
    id: String,
    port: u16,
    socket_dir: PathBuf,
}

impl Mitosis {
    /// Makes its template from the tables of `server`.
    pub(super) fn begin(
        server: &Record,
        at: &Path,
        setup: &BenchSetup<'_>,
    ) -> Result<Result<Self, NotRun>, BenchError> {
        let Some(program) = programs::find("mitosis") else {
            let source = ProgramSource::Crate("mitosis-db");
            return Ok(Err(comparison::missing(COMMAND, "mitosis", source, setup.hint)));
        };
        if rustix::process::geteuid().is_root() {
            let reason = "it starts PostgreSQL as the user who runs it, and PostgreSQL refuses to run as root".into();
            let (command, remedy) = (COMMAND.into(), Some((setup.hint)(&Remedy::RunAsAnotherUser)));
            return Ok(Err(NotRun { command, why: NotRunReason::Refused, reason, remedy }));
        }
        let cancel = setup.cancel;
        let mitosis = Self { program, home: at.join("mitosis"), server: server.clone() };
        let mut command = mitosis.command(&["template", "init", TEMPLATE, "--from-url", &server.address.url]);
        succeeded(&process::measure_command(command.stdout(Stdio::null()), cancel)?, "mitosis template init")?;
        Ok(Ok(mitosis))
    }

    pub(super) fn worker(&self) -> impl SuiteWorker + '_ {
        MitosisWorker { mitosis: self, clone: None }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words).stdin(Stdio::null());
        // Nothing but the number of clones differs from its defaults: the router would wait for a port that is taken.
        command.env("MITOSIS_HOME", &self.home).env("MITOSIS_ROUTER", "off").env("MITOSIS_MAX_CLONES", "64");
        command
    }

    fn run(&self, words: &[&str]) -> Result<Vec<u8>, BenchError> {
        let output = self.command(words).output()?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(std::io::Error::other(format!("`mitosis {}` failed: {said}", words.join(" "))).into())
    }
}

impl Drop for Mitosis {
    fn drop(&mut self) {
        let _ = self.run(&["daemon", "stop"]);
    }
}

struct MitosisWorker<'a> {
    mitosis: &'a Mitosis,
    clone: Option<Clone>,
}

impl MitosisWorker<'_> {
    fn destroy(&mut self) -> Result<(), BenchError> {
        let Some(clone) = self.clone.take() else { return Ok(()) };
        self.mitosis.run(&["destroy", &clone.id]).map(|_| ())
    }
}

impl SuiteWorker for MitosisWorker<'_> {
    fn fresh(&mut self) -> Result<Session, BenchError> {
        self.destroy()?;
        let printed = self.mitosis.run(&["clone", "--template", TEMPLATE, "--ttl", LONGEST, "--json"])?;
        let clone: Clone = serde_json::from_slice(&printed).map_err(std::io::Error::from)?;
        let mut server = self.mitosis.server.clone();
        server.address.socket = clone.socket_dir.join(format!(".s.PGSQL.{}", clone.port));
        self.clone = Some(clone);
        Ok(Session::open(&server)?)
    }
}

impl Drop for MitosisWorker<'_> {
    fn drop(&mut self) {
        let _ = self.destroy();
    }
}
