//! The work before the time of commands that take a spare: making it, as a user would. Everything is in the bench's own directory.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use calve_core::CancelToken;

use crate::error::BenchError;
use crate::process;
use crate::scratch::Scratch;
use crate::setup::check_cancelled;
use crate::workload::{Group, PrepareFunction};

pub(crate) const SPARES: Group = Group {
    name: Cow::Borrowed("spares"),
    note: "The clones were made before the time began, and are handed over. That took the time and the disk space of the strategy that is Calve's own choice.",
};

pub(crate) struct Store {
    calve: PathBuf,
    home: PathBuf,
    of: PathBuf,
    stderr: PathBuf,
    cancel: CancelToken,
}

impl Store {
    /// Keeps spares of `of` in the scratch directory.
    pub(crate) fn new(calve: &Path, scratch: &Scratch<'_>, of: PathBuf, cancel: &CancelToken) -> Self {
        let (calve, home, stderr) = (calve.into(), scratch.path.join("spares"), scratch.path.join("stderr"));
        Self { calve, home, of, stderr, cancel: cancel.clone() }
    }

    /// Makes the first spare: runs `calve spares add` with `options`. Returns why there cannot be one.
    pub(crate) fn make(&self, options: &[&OsStr]) -> Result<Option<String>, BenchError> {
        fs_err::create_dir(&self.home)?;
        let mut add = words(["spares", "add", "--quiet"], options);
        add.push(self.of.clone().into());
        self.all(vec![add, self.pause()])
    }

    /// Returns the variables of the commands that take a spare.
    pub(crate) fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        vec![("CALVE_HOME", self.home.clone())]
    }

    /// Returns the work before each run: the next spare is built.
    pub(crate) fn refilled_before_runs(self) -> PrepareFunction {
        Box::new(move |_| self.refill())
    }

    /// Makes the next one, unless there is one. None is made while commands run.
    fn refill(&self) -> Result<Option<String>, BenchError> {
        self.all(vec![words(["spares", "refill", "--quiet"], &[self.of.as_os_str()]), self.pause()])
    }

    fn pause(&self) -> Vec<OsString> {
        words(["spares", "pause", "--quiet"], &[self.of.as_os_str()])
    }

    /// Runs these commands of Calve's. Returns what the first that fails has to say.
    fn all(&self, steps: Vec<Vec<OsString>>) -> Result<Option<String>, BenchError> {
        for step in steps {
            let stderr = Stdio::from(std::fs::File::from(fs_err::File::create(&self.stderr)?));
            let mut command = Command::new(&self.calve);
            command.args(step).env("CALVE_HOME", &self.home).stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
            let ended = process::measure_command(&mut command, &self.cancel)?;
            check_cancelled(&self.cancel)?;
            if !ended.status.success() {
                let said = String::from_utf8_lossy(&fs_err::read(&self.stderr)?).into_owned();
                let first = said.lines().next().unwrap_or_default();
                return Ok(Some(first.strip_prefix("error: ").unwrap_or(first).to_owned()));
            }
        }
        Ok(None)
    }
}

fn words<const N: usize>(first: [&str; N], last: &[&OsStr]) -> Vec<OsString> {
    first.iter().map(OsString::from).chain(last.iter().map(OsString::from)).collect()
}
