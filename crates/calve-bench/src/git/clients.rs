//! The git programs of the clients: how they are started, and what each took.

use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader, PipeWriter, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use calve_core::{CancelToken, ShownPath};
use calve_git::Nesting;
use calve_git::remote::ENDLESS;

use super::host::OPERATION_HEADER;
use super::host::ledger::OperationNumber;
use crate::error::{BenchError, FailureKind};
use crate::process::{self, ProcessResult};
use crate::remedy::Remedy;
use crate::setup::check_cancelled;

/// Variables that git may take over from the user's environment. Everything else could change the measurement.
const KEPT: &[&str] = &["PATH", "TMPDIR", "LD_LIBRARY_PATH", "GIT_EXEC_PATH"];

/// Returns the environment of all of the bench's own git programs, on both sides, with `home` for their configuration.
pub(super) fn environment(home: &Path) -> Vec<(OsString, OsString)> {
    let kept = KEPT.iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
    let own = [
        ("HOME", home.as_os_str()),
        ("XDG_CONFIG_HOME", home.as_os_str()),
        ("GIT_CONFIG_NOSYSTEM", OsStr::new("1")),
        ("GIT_TERMINAL_PROMPT", OsStr::new("0")),
        ("LC_ALL", OsStr::new("C")),
    ];
    kept.chain(own.map(|(name, value)| (name.into(), value.to_owned()))).collect()
}

/// One git program that has ended.
pub(super) struct GitOutput {
    pub(super) ended: ProcessResult,
    pub(super) stdout: Vec<u8>,
    /// All of its standard error.
    pub(super) said: String,
}

impl GitOutput {
    pub(super) fn is_success(&self) -> bool {
        self.ended.status.success()
    }
}

/// Returns the last words of a program, on one line, without control characters.
pub(super) fn brief(said: &str) -> String {
    const LONGEST: usize = 400;
    let plain: String = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain: Vec<char> = plain.chars().filter(|c| !c.is_control()).collect();
    plain[plain.len().saturating_sub(LONGEST)..].iter().collect()
}

/// Reads what a program says, so that it never has to wait.
struct Listener {
    writer: PipeWriter,
    reader: JoinHandle<Vec<u8>>,
}

impl Listener {
    fn of((mut reader, writer): (PipeReader, PipeWriter)) -> Self {
        let reader = thread::spawn(move || {
            let mut bytes = Vec::new();
            // The lines that were read until then are the answer.
            let _ = reader.read_to_end(&mut bytes);
            bytes
        });
        Self { writer, reader }
    }
}

fn heard(reader: JoinHandle<Vec<u8>>) -> Vec<u8> {
    reader.join().unwrap_or_default()
}

/// Starts git for the clients, and adds up what that took.
pub(super) struct Clients<'a> {
    environment: Vec<(OsString, OsString)>,
    /// True for the environment of the user, for servers that only the user can reach.
    is_users: bool,
    /// For what programs read.
    scratch: PathBuf,
    next: AtomicU64,
    seconds: Mutex<f64>,
    cancel: &'a CancelToken,
}

impl<'a> Clients<'a> {
    pub(super) fn of_the_bench(home: &Path, scratch: PathBuf, cancel: &'a CancelToken) -> Self {
        Self::new(environment(home), false, scratch, cancel)
    }

    pub(super) fn of_the_user(scratch: PathBuf, cancel: &'a CancelToken) -> Self {
        Self::new(Vec::new(), true, scratch, cancel)
    }

    fn new(environment: Vec<(OsString, OsString)>, is_users: bool, scratch: PathBuf, cancel: &'a CancelToken) -> Self {
        Self { environment, is_users, scratch, next: AtomicU64::new(0), seconds: Mutex::new(0.0), cancel }
    }

    pub(super) fn git(&self, directory: &Path, operation: Option<OperationNumber>) -> Command {
        let mut command = if self.is_users {
            // The user's own keys, credentials, proxies; but nothing that runs beside the measurement.
            let mut command = calve_git::Git::at(directory).command();
            command.args(["-c", "gc.auto=0", "-c", "maintenance.auto=false"]);
            command
        } else {
            let mut command = Command::new("git");
            command.current_dir(directory).env_clear();
            command.envs(self.environment.iter().map(|(name, value)| (name, value)));
            command
        };
        if let Some(operation) = operation {
            command.args(["-c", &format!("http.extraHeader={OPERATION_HEADER}: {operation}")]);
        }
        command.stdin(Stdio::null());
        command
    }

    /// Runs it to its end. An error is of the bench, or that it was interrupted; git's own failures are in the result.
    pub(super) fn run(&self, command: &mut Command) -> Result<GitOutput, BenchError> {
        // Through pipes: on a disk that is full a file would lose the very message that says so.
        let (out, err) = (Listener::of(std::io::pipe()?), Listener::of(std::io::pipe()?));
        command.stdout(out.writer).stderr(err.writer);
        let (ended, is_endless) = self.measure(command)?;
        // The ends that the command still has, or nobody would ever hear that all is said.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let (stdout, mut said) = (heard(out.reader), heard(err.reader));
        if is_endless {
            said = ENDLESS.into();
        }
        let ended = ended.map_err(|error| not_started(&error))?;
        *self.seconds.lock().unwrap_or_else(PoisonError::into_inner) +=
            ended.usage.user_seconds + ended.usage.system_seconds;
        check_cancelled(self.cancel)?;
        Ok(GitOutput { ended, stdout, said: String::from_utf8_lossy(&said).into_owned() })
    }

    /// Runs it to its end, which comes early where it would start processes without end. Only servers of the user's can have it do that.
    fn measure(&self, command: &mut Command) -> Result<(io::Result<ProcessResult>, bool), BenchError> {
        if !self.is_users {
            return Ok((process::measure_command(command, self.cancel), false));
        }
        let events = self.file();
        let mut nesting = Nesting::watch(command, &events)?;
        let mut is_endless = false;
        let ended = process::guard_command(command, self.cancel, |group, has_ended| {
            is_endless = nesting.guard(has_ended, &[group]).unwrap_or(false);
        });
        fs_err::remove_file(&events)?;
        Ok((ended, is_endless))
    }

    /// Returns git's output; a failure of git's is one of the bench.
    pub(super) fn output(&self, command: &mut Command, what: &str) -> Result<Vec<u8>, BenchError> {
        let ran = self.run(command)?;
        if ran.is_success() {
            return Ok(ran.stdout);
        }
        Err(BenchError::stated(
            FailureKind::Failed,
            format!("{what}: {}", self.reason(&ran).text),
            Remedy::ReadGitOutput,
        ))
    }

    /// Returns why it failed, on one line. That there was no space git does not always say.
    pub(super) fn reason(&self, ran: &GitOutput) -> GitFailureReason {
        const HARDLY_ANY: u64 = 1 << 20;
        let disk_full = rustix::fs::statvfs(&self.scratch).is_ok_and(|stat| stat.f_bavail * stat.f_frsize < HARDLY_ANY);
        let said = brief(&ran.said);
        let mut text = ran.ended.in_words();
        if disk_full {
            text = format!("no space is left below `{}`: {text}", ShownPath(&self.scratch));
        }
        if !said.is_empty() {
            text = format!("{text}: {said}");
        }
        GitFailureReason { text, disk_full }
    }

    /// Returns a path for a file of one program's own.
    pub(super) fn file(&self) -> PathBuf {
        self.scratch.join(format!("{}.in", self.next.fetch_add(1, Ordering::Relaxed)))
    }

    /// Returns the user and system seconds of all programs that were run.
    pub(super) fn seconds(&self) -> f64 {
        *self.seconds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a command failed.
#[derive(Debug, Clone)]
pub(super) struct GitFailureReason {
    pub(super) text: String,
    pub(super) disk_full: bool,
}

impl<T: Into<String>> From<T> for GitFailureReason {
    fn from(text: T) -> Self {
        Self { text: text.into(), disk_full: false }
    }
}

pub(super) fn not_started(error: &std::io::Error) -> BenchError {
    BenchError::stated(FailureKind::Failed, format!("git cannot be started: {error}"), Remedy::InstallGit)
}
