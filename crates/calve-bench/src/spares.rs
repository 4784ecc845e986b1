//! Makes spares for commands that take them, before their time begins, as a user would, in the bench's own directory.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use calve_core::CancelToken;
use calve_receipt::bench::{NotRun, NotRunReason};

use crate::error::BenchError;
use crate::process;
use crate::scratch::Scratch;
use crate::workload::{Group, PrepareFunction, Workload};

const SPARES: Group = Group {
    name: Cow::Borrowed("spares"),
    note: "The clones were made before the time began, and are handed over. That took the time and the disk space of the strategy that is Calve's own choice.",
};

struct Store {
    calve: PathBuf,
    home: PathBuf,
    of: PathBuf,
    stderr: PathBuf,
    cancel: CancelToken,
}

/// Adds a command that takes a spare of `of`, or the reason against it. `options` are those of `calve spares add`.
pub(crate) fn add(
    plain: Workload,
    (calve, of): (&Path, &Path),
    options: &[&OsStr],
    scratch: &Scratch<'_>,
    cancel: &CancelToken,
    (workloads, not_run): (&mut Vec<Workload>, &mut Vec<NotRun>),
) -> Result<(), BenchError> {
    let [home, stderr] = ["spares", "stderr"].map(|name| scratch.path.join(name));
    let store = Store { calve: calve.into(), home, of: of.into(), stderr, cancel: cancel.clone() };
    fs_err::create_dir(&store.home)?;
    if let Some(reason) = store.make("add", &[options, &["--at".as_ref(), scratch.path.as_os_str()]].concat())? {
        not_run.push(NotRun { command: plain.command, why: NotRunReason::Refused, reason, remedy: None });
        return Ok(());
    }
    let environment = vec![("CALVE_HOME", store.home.clone())];
    let prepare: PrepareFunction = Box::new(move |_| store.make("refill", &[]));
    workloads.push(Workload { group: SPARES, environment, prepare: Some(prepare), ..plain });
    Ok(())
}

impl Store {
    /// Makes a spare by `command` unless there is one, and none while commands run. Returns a failure's message.
    fn make(&self, command: &str, options: &[&OsStr]) -> Result<Option<String>, BenchError> {
        for (command, options) in [(command, options), ("pause", &[])] {
            let stderr = Stdio::from(std::fs::File::from(fs_err::File::create(&self.stderr)?));
            let mut calve = Command::new(&self.calve);
            calve.args(["spares", command, "--quiet"]).args(options).arg(&self.of).env("CALVE_HOME", &self.home);
            calve.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
            let ended = process::measure_command(&mut calve, &self.cancel)?;
            self.cancel.check()?;
            if !ended.status.success() {
                let said = String::from_utf8_lossy(&fs_err::read(&self.stderr)?).into_owned();
                let first = said.lines().next().unwrap_or_default();
                return Ok(Some(first.strip_prefix("error: ").unwrap_or(first).to_owned()));
            }
        }
        Ok(None)
    }
}
