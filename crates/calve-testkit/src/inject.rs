//! Fails a chosen system call, or kills the program at it, with `strace`.
//!
//! Before choosing N: `strace` counts **per thread**: with two worker threads the third `openat` is the third of each
//! thread, so it may fail once in each; run the program with one thread to get one failure. The dynamic loader's calls
//! count too: a program's first `openat`s open its libraries. Name the system call that the program really makes:
//! `unlinkat` is not `unlink`.

use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use fs_err as fs;
use tempfile::NamedTempFile;

use crate::must::must;
use crate::skip::require_program;

#[derive(Clone, Copy, Debug)]
pub struct Injection<'a> {
    /// Names, separated by commas, counted together only if they are one `strace` set: `"fsync,syncfs"`, `"%file"`.
    pub syscalls: &'a str,
    /// In `strace` syntax: `"error=EIO"` (the call fails unmade) or `"signal=KILL"` (sent as the process enters it).
    pub fault: &'a str,
    pub nth: u32,
}

#[derive(Debug)]
pub struct Outcome {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    /// False if the program made fewer than `nth` such calls.
    pub injected: bool,
    /// The traced calls, one per line, for messages.
    pub trace: String,
}

/// Runs `command` under `injection`, or returns `None` without `strace` (see [`skip`](crate::skip())). Uses its
/// program, arguments, working directory and changed environment variables; stdin is empty.
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

/// Fails the first, second, third … call until the program makes no further one, and passes each outcome to `check`.
/// Returns the outcome of the last, undisturbed run. `prepare` builds the command and undoes the previous run.
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

/// Detects the fault in a line of the log. `strace` marks a call that it failed, but logs a signal only as itself.
fn shows(line: &str, fault: &str) -> bool {
    match fault.strip_prefix("signal=") {
        None => line.contains("(INJECTED)"),
        Some(name) => ["+++ killed by", "---"].iter().any(|event| line.contains(&format!("{event} SIG{name} "))),
    }
}
