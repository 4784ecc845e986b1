//! The work before the time of commands that take a spare: making it, as a user would. Everything is in the bench's own directory.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use calve_core::{CancelToken, SpareSource, SpareUse, Spares, WatchEnd, WatchOptions};

use crate::error::BenchError;
use crate::process;
use crate::scratch::Scratch;
use crate::setup::check_cancelled;
use crate::workload::{Group, PrepareFunction};

pub(crate) const SPARES: Group = Group {
    name: "spares",
    note: "The clones were made before the time began, and are handed over. That took the time and the disk space of the strategy that is Calve's own choice.",
};

/// The spares of one command.
pub(crate) struct Store {
    calve: PathBuf,
    home: PathBuf,
    /// The directory or the template that they are spares of, as the commands take it.
    of: PathBuf,
    stderr: PathBuf,
    cancel: CancelToken,
}

impl Store {
    /// Keeps spares of `of` in the scratch directory, under a name that no other store there has.
    pub(crate) fn new(calve: &Path, scratch: &Scratch<'_>, name: &str, of: PathBuf, cancel: &CancelToken) -> Self {
        let (calve, home, stderr) = (calve.into(), scratch.path().join(name), scratch.path().join("stderr"));
        Self { calve, home, of, stderr, cancel: cancel.clone() }
    }

    /// Makes the first spare: runs `before`, then `calve spares add` with `options`. Returns why there cannot be one.
    pub(crate) fn make(&self, before: Option<Vec<OsString>>, options: &[&OsStr]) -> Result<Option<String>, BenchError> {
        fs_err::create_dir(&self.home)?;
        let mut add = words(["spares", "add", "--quiet"], options);
        add.push(self.of.clone().into());
        self.all(before.into_iter().chain([add, self.pause()]).collect())
    }

    /// Returns the variables of the commands that take a spare.
    pub(crate) fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        vec![("CALVE_HOME", self.home.clone())]
    }

    /// Returns the work before each run: the next spare is built.
    pub(crate) fn refilled_before_runs(self) -> PrepareFunction {
        Box::new(move |_| self.refill())
    }

    /// Returns the work as [`Self::refilled_before_runs`] does, for a directory that `watchers` watch from now on: it also waits until the
    /// source is known.
    pub(crate) fn known_before_runs(self, watchers: &mut Watchers) -> PrepareFunction {
        let spares = Spares::at(SpareUse::in_home(&self.home).home);
        watchers.start(&spares);
        let of = SpareSource::Directory(self.of.clone());
        Box::new(move |_| match self.refill()? {
            None => wait_until_known(&spares, &of, &self.cancel),
            why_not => Ok(why_not),
        })
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

pub(crate) fn words<const N: usize>(first: [&str; N], last: &[&OsStr]) -> Vec<OsString> {
    first.iter().map(OsString::from).chain(last.iter().map(OsString::from)).collect()
}

/// The watchers of the rows, which end with this.
#[derive(Default)]
pub(crate) struct Watchers(Vec<Watcher>);

/// A watcher in this process.
struct Watcher {
    cancel: CancelToken,
    thread: Option<JoinHandle<()>>,
}

impl Watchers {
    /// Starts the watcher of a store. One that fails knows nothing.
    fn start(&mut self, spares: &Spares) {
        let cancel = CancelToken::default();
        let (spares, end) = (spares.clone(), cancel.clone());
        let watch = move || {
            let _ = spares.watch(&mut WatchOptions { told: &mut |_| (), end: WatchEnd::Never, cancel: end });
        };
        let thread = std::thread::Builder::new().name("watcher".into()).spawn(watch).ok();
        self.0.push(Watcher { cancel, thread });
    }
}

/// Waits until the watcher is sure of the spare: other commands have just read all of the tree. Returns why it is not.
fn wait_until_known(spares: &Spares, source: &SpareSource, cancel: &CancelToken) -> Result<Option<String>, BenchError> {
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
        // Its words were told before.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
