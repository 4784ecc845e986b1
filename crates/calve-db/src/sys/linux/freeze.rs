//! Stops all processes of a server at once, so that its files are as a kill at that moment would leave them.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{ProcessHandle, descendants};

/// A process in an uninterruptible system call stops only after it.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_micros(100);

/// Stopped processes, which go on when this is dropped.
pub(crate) struct FrozenProcesses(BTreeMap<u32, ProcessHandle>);

impl Drop for FrozenProcesses {
    fn drop(&mut self) {
        self.0.values().for_each(|process| process.signal(Signal::CONT));
    }
}

/// Stops the descendants of this process. Returns when none of their threads runs any more.
pub(crate) fn freeze() -> io::Result<FrozenProcesses> {
    let started = Instant::now();
    let mut frozen = FrozenProcesses(BTreeMap::new());
    loop {
        let before = frozen.0.len();
        for pid in descendants() {
            if !frozen.0.contains_key(&pid)
                && let Some(process) = ProcessHandle::open(pid, None)
            {
                process.signal(Signal::STOP);
                frozen.0.insert(pid, process);
            }
        }
        let has_new = frozen.0.len() > before;
        // A stopped process starts no other one, so a round with all stopped has found all.
        if !has_new && frozen.0.iter().all(|(pid, process)| is_stopped(*pid) || !process.lives()) {
            return Ok(frozen);
        }
        if started.elapsed() > PATIENCE {
            return Err(io::ErrorKind::TimedOut.into());
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Returns whether all threads of a process have stopped (proc_pid_stat(5), field 3).
fn is_stopped(pid: u32) -> bool {
    let Ok(threads) = fs_err::read_dir(format!("/proc/{pid}/task")) else { return false };
    threads.flatten().all(|thread| {
        let text = fs_err::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let state = text.rfind(')').and_then(|at| text[at + 1..].split_ascii_whitespace().next());
        matches!(state, Some("T" | "t" | "Z" | "X") | None)
    })
}
