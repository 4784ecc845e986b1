//! How many descriptors a process has open, seen from outside.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::Pid;

/// Looks again and again until it has ended: the most that one of its tables had, which is what its limit is for. `None` where the
/// system does not tell.
pub(super) fn peak(process: Pid, has_ended: &AtomicBool) -> Option<u64> {
    let tasks = format!("/proc/{}/task", process.as_raw_nonzero());
    let mut peak = None;
    while !has_ended.load(Ordering::Relaxed) {
        // Threads may have tables of their own.
        for task in std::iter::once(fs_err::read_dir(&tasks)).flatten().flatten().flatten() {
            peak = peak.max(open(&task.path().join("fd")));
        }
        thread::sleep(Duration::from_micros(200));
    }
    peak
}

/// Counts the descriptors in a directory of `/proc`. Since Linux 6.2 the directory's size is their number; before that they have to be
/// counted.
fn open(directory: &Path) -> Option<u64> {
    let size = fs_err::metadata(directory).ok()?.len();
    if size > 0 {
        return Some(size);
    }
    Some(fs_err::read_dir(directory).ok()?.count() as u64)
}
