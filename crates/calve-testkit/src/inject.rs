//! Failing system calls, and death at a chosen one, by `strace`.
//!
//! Three things to know before choosing N. `strace` counts **per thread**: with two worker threads the third `openat`
//! is the third of whichever thread reaches it, and may fail once in each; run the program with one thread for one
//! failure. The calls of the dynamic loader count too: the first `openat`s of a program open its libraries. And a
//! system call has to be named as the program makes it: `unlinkat` is not `unlink`.

use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use fs_err as fs;
use tempfile::NamedTempFile;

use crate::must::must;
use crate::skip::require_program;

#[derive(Clone, Copy, Debug)]
pub struct Injection<'a> {
    /// One or more names, separated by commas, counted together only when they are one `strace` set: `"fsync,syncfs"`, `"%file"`.
    pub syscalls: &'a str,
    /// In the words of `strace`: `"error=EIO"` (the call is not made, and fails), or `"signal=KILL"` (the process gets it as it enters the call).
    pub fault: &'a str,
    pub nth: u32,
}

/// What became of a program under an [`Injection`].
#[derive(Debug)]
pub struct Outcome {
    /// How it ended; a death by signal is visible as such.
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    /// Whether the fault happened, that is, whether there were `nth` such calls.
    pub injected: bool,
    /// The traced calls, one a line, for messages.
    pub trace: String,
}

/// Runs `command` under `injection`; `None` if there is no `strace` (see [`skip`](crate::skip())).
///
/// Of `command`, the program, arguments, working directory and changed environment variables are used; stdin is empty.
#[track_caller]
pub fn run_injected(command: &Command, injection: Injection<'_>) -> Option<Outcome> {
    if !require_program("strace") {
        return None;
    }
    let log = must(NamedTempFile::new(), "create a file in", &std::env::temp_dir());
    let mut traced = under_strace(command, injection, log.path());
    let output = must(traced.output(), "run", Path::new("strace"));
    let trace = String::from_utf8_lossy(&must(fs::read(log.path()), "read", log.path())).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!stderr.contains("strace: "), "{traced:?} failed: {stderr}");
    Some(Outcome {
        status: output.status,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr,
        injected: trace.lines().any(|line| shows(line, injection.fault)),
        trace,
    })
}

/// Fails the first, the second, the third … call until the program has no such call left, and gives each outcome to
/// `check` with its number; the outcome of the last, undisturbed run is returned. `prepare` makes the command and undoes
/// what the run before it did.
///
/// # Panics
/// If the program makes more than `limit` such calls.
#[track_caller]
pub fn each_nth(
    syscalls: &str,
    fault: &str,
    limit: u32,
    mut prepare: impl FnMut() -> Command,
    mut check: impl FnMut(u32, &Outcome),
) -> Option<Outcome> {
    for nth in 1..=limit {
        let outcome = run_injected(&prepare(), Injection { syscalls, fault, nth })?;
        if !outcome.injected {
            return Some(outcome);
        }
        check(nth, &outcome);
    }
    panic!("`{syscalls}` was called more than {limit} times");
}

fn under_strace(command: &Command, injection: Injection<'_>, log: &Path) -> Command {
    let Injection { syscalls, fault, nth } = injection;
    let mut traced = Command::new("strace");
    traced
        .args(["-f", "-qq", "-s", "80", "-o"])
        .arg(log)
        .args(["-e".to_owned(), format!("trace={syscalls}"), "-e".to_owned()])
        .arg(format!("inject={syscalls}:{fault}:when={nth}"))
        .arg("--")
        .arg(command.get_program())
        .args(command.get_args())
        .stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => traced.env(name, value),
            None => traced.env_remove(name),
        };
    }
    if let Some(dir) = command.get_current_dir() {
        traced.current_dir(dir);
    }
    traced
}

/// Returns whether a line of the log shows the fault. `strace` marks calls it failed, but not those at which it sent a signal: there the
/// signal itself is in the log.
fn shows(line: &str, fault: &str) -> bool {
    match fault.strip_prefix("signal=") {
        None => line.contains("(INJECTED)"),
        Some(name) => ["+++ killed by", "---"].iter().any(|event| line.contains(&format!("{event} SIG{name} "))),
    }
}
