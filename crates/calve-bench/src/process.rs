use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use calve_core::CancelToken;
use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid};
use signal_hook::low_level::signal_name;
use wait4::Wait4;

use crate::machine::{busy_seconds, others_since};
use crate::report::Usage;

pub(crate) struct ProcessResult {
    pub(crate) status: ExitStatus,
    /// Wall time, CPU with its children, and memory of at least the bench's own, where the kernel begins to count.
    pub(crate) usage: Usage,
    /// Processors used by others, virtual machines included. `None` if the system has no number, or for a short run.
    pub(crate) others: Option<f64>,
}

impl ProcessResult {
    /// Describes how a program ended: "exit code 23", "killed by SIGSEGV".
    pub(crate) fn in_words(&self) -> String {
        match (self.status.code(), self.status.signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => match signal_name(signal) {
                Some(name) => format!("killed by {name}"),
                None => format!("killed by signal {signal}"),
            },
            (None, None) => self.status.to_string(),
        }
    }
}

/// Runs a command in a process group of its own, or kills it when cancelled. Kills the rest of the group in either
/// case.
pub(crate) fn measure_command(command: &mut Command, cancel: &CancelToken) -> io::Result<ProcessResult> {
    run_command(command, None, cancel, |_, _| ())
}

/// Runs a command like [`measure_command`], for at most `patience`, with `watch` on a thread beside it.
pub(crate) fn run_command(
    command: &mut Command,
    patience: Option<Duration>,
    cancel: &CancelToken,
    watch: impl FnOnce(Pid, &AtomicBool) + Send,
) -> io::Result<ProcessResult> {
    // Ctrl-C goes to the bench alone, and a program can be ended with all its descendants.
    command.process_group(0);
    let (began, busy) = (Instant::now(), busy_seconds());
    let mut child = command.spawn()?;
    let group = Pid::from_child(&child);
    let has_ended = AtomicBool::new(false);
    let seconds = thread::scope(|scope| {
        let (ended, watched) = channel::<()>();
        let give_up = patience.map(|patience| began + patience);
        scope.spawn(move || kill_when_cancelled(group, &watched, give_up, cancel));
        scope.spawn(|| watch(group, &has_ended));
        let end = retry_on_intr(|| waitid(WaitId::Pid(group), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT));
        let seconds = end.map(|_| began.elapsed().as_secs_f64());
        drop(ended);
        has_ended.store(true, Ordering::Relaxed);
        seconds
    })?;
    // It is not reaped yet, so that its number, also the group's, cannot be given to another process.
    let _ = kill_process_group(group, Signal::KILL);
    let used = child.wait4()?;
    wait_until_group_is_gone(group);
    let (user_seconds, system_seconds) = (used.rusage.utime.as_secs_f64(), used.rusage.stime.as_secs_f64());
    let usage = Usage { seconds, user_seconds, system_seconds, peak_memory_bytes: used.rusage.maxrss };
    let others = busy.and_then(|before| others_since(before, seconds, user_seconds));
    Ok(ProcessResult { status: used.status, usage, others })
}

fn kill_when_cancelled(group: Pid, ended: &Receiver<()>, give_up: Option<Instant>, cancel: &CancelToken) {
    while ended.recv_timeout(Duration::from_millis(20)) == Err(RecvTimeoutError::Timeout) {
        if cancel.is_cancelled() || give_up.is_some_and(|end| Instant::now() > end) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Waits for a process group's end. Killed processes need a moment, and may make files until then.
fn wait_until_group_is_gone(group: Pid) {
    let give_up = Instant::now() + Duration::from_secs(5);
    while test_kill_process_group(group).is_ok() && Instant::now() < give_up {
        thread::sleep(Duration::from_millis(1));
    }
}
