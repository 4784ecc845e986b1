//! What is done before the time of commands that take a spare: making it, as a user would. Everything is in the bench's own directory.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use calve_core::{Cancel, SpareSource, SpareUse, Spares, WatchOptions};
use calve_receipt::bench::{NotRun, NotRunReason};

use super::workloads::{Sources, words_with_places};
use crate::error::BenchError;
use crate::process;
use crate::scratch::Scratch;
use crate::selection::Selection;
use crate::setup::check_cancelled;
use crate::workload::{Group, Leftovers, Role, Workload};

pub(crate) const SPARES: Group = Group {
    name: "spares",
    note: "The clones were made before the time began, and are handed over. That took the time and the disk space of the strategy that is Calve's own choice.",
};

/// Every entry is compared with what was recorded of it.
const WALKED: &str = "calve cp --strategy spare SRC DST";
/// A watcher knows that nothing has changed.
const WATCHED: &str = "calve cp --strategy spare --require instant SRC DST";
/// Nothing can have changed.
const FROZEN: &str = "calve cp --strategy spare @TEMPLATE DST";

/// The commands, as they are typed.
pub(super) const COMMANDS: [&str; 3] = [WALKED, WATCHED, FROZEN];

/// The watchers of the rows, which end with this.
#[derive(Default)]
pub(super) struct Watchers(Vec<Watcher>);

/// Prepares the commands that are wanted, each with spares of its own.
pub(super) fn add(
    selection: &Selection,
    sources: &Sources,
    calve: &Path,
    scratch: &Scratch<'_>,
    cancel: &Cancel,
    (workloads, not_run): (&mut Vec<Workload>, &mut Vec<NotRun>),
) -> Result<Watchers, BenchError> {
    let mut watchers = Watchers::default();
    for (number, command) in COMMANDS.into_iter().enumerate() {
        if !selection.takes(command) {
            continue;
        }
        let store = Store {
            calve: calve.to_path_buf(),
            home: scratch.path().join(format!("home-{number}")),
            of: if command == FROZEN { "@TEMPLATE".into() } else { sources.tree.clone() },
            stderr: scratch.path().join("stderr"),
            cancel: cancel.clone(),
        };
        if let Some(reason) = store.make(sources, scratch.path(), command)? {
            let command = command.to_owned();
            not_run.push(NotRun { command, why: NotRunReason::Refused, reason, remedy: None });
            continue;
        }
        let spares = Spares::at(SpareUse::in_home(&store.home).home);
        if command == WATCHED {
            watchers.start(&spares);
        }
        let of = SpareSource::Directory(sources.tree.clone());
        let (calve, source, home) = (calve.to_path_buf(), sources.tree.clone(), store.home.clone());
        workloads.push(Workload {
            command: command.to_owned(),
            role: Role::Calve,
            group: &SPARES,
            argv: Box::new(move |dst| words_with_places(command, &calve, &source, dst)),
            environment: vec![("CALVE_HOME", home)],
            prepare: Some(Box::new(move |_| {
                let refilled = store.refill()?;
                if refilled.is_some() || command != WATCHED {
                    return Ok(refilled);
                }
                wait_until_known(&spares, &of, &store.cancel)
            })),
            kept: &[],
            leftovers: Leftovers::Keep,
        });
    }
    Ok(watchers)
}

/// The spares of one command.
struct Store {
    calve: PathBuf,
    home: PathBuf,
    of: PathBuf,
    stderr: PathBuf,
    cancel: Cancel,
}

impl Store {
    /// Makes the first spare. Returns why there cannot be one.
    fn make(&self, sources: &Sources, place: &Path, command: &str) -> Result<Option<String>, BenchError> {
        fs_err::create_dir(&self.home)?;
        let (of, at) = (self.of.as_os_str(), place.as_os_str());
        let mut steps = vec![words(["spares", "add", "--quiet", "--at"], &[at, of])];
        if command == FROZEN {
            steps.insert(0, words(["template", "create", "--quiet", "TEMPLATE"], &[sources.tree.as_os_str()]));
        }
        steps.push(self.pause());
        self.all(steps)
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

/// A watcher in this process.
struct Watcher {
    cancel: Cancel,
    thread: Option<JoinHandle<()>>,
}

impl Watchers {
    /// Starts the watcher of a store. One that fails knows nothing.
    fn start(&mut self, spares: &Spares) {
        let cancel = Cancel::default();
        let (spares, end) = (spares.clone(), cancel.clone());
        let watch = move || {
            let _ = spares.watch(&mut WatchOptions { told: &mut |_| (), cancel: end });
        };
        let thread = std::thread::Builder::new().name("watcher".into()).spawn(watch).ok();
        self.0.push(Watcher { cancel, thread });
    }
}

/// Waits until the watcher is sure of the spare: other commands have just read all of the tree. Returns why it is not.
fn wait_until_known(spares: &Spares, source: &SpareSource, cancel: &Cancel) -> Result<Option<String>, BenchError> {
    const PATIENCE: Duration = Duration::from_secs(300);
    const PAUSE: Duration = Duration::from_millis(20);
    let give_up = Instant::now() + PATIENCE;
    while !spares.are_known(source)? {
        check_cancelled(cancel)?;
        if Instant::now() > give_up {
            return Ok(Some("the tree cannot be watched, or others use it".to_owned()));
        }
        std::thread::sleep(PAUSE);
    }
    Ok(None)
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.cancel.cancel();
        // What it had to say was told before.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
