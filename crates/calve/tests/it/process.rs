//! Processes seen from outside: what they have open, and signals to those that this test started.

use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

/// Sends a signal. The process may have ended meanwhile.
pub(crate) fn send(id: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(id).unwrap()).unwrap();
    let _ = kill_process(pid, signal);
}

/// The reapers at work in `dir`, recognised by the directory that is their standard input.
pub(crate) fn reapers(dir: &Path) -> Vec<u32> {
    let dir = fs_err::canonicalize(dir).unwrap();
    let processes = fs_err::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| {
        let arguments = fs_err::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let is_reaper = arguments.split(|byte| *byte == 0).nth(1) == Some(b"__reap");
        is_reaper && fs_err::read_link(format!("/proc/{id}/fd/0")).is_ok_and(|place| place == dir)
    })
    .collect()
}

/// Returns how many descriptors a process has open in all its threads, whose tables are their own; what they share is counted for
/// each, so this is never too low.
pub(crate) fn open_descriptors(id: u32) -> usize {
    let threads = match fs_err::read_dir(format!("/proc/{id}/task")) {
        Ok(threads) => threads.flatten().map(|thread| thread.path().join("fd")).collect::<Vec<PathBuf>>(),
        Err(_) => return 0,
    };
    threads.iter().filter_map(|fds| Some(fs_err::read_dir(fds).ok()?.count())).sum()
}
