//! Forcing an XFS log little by little.
//!
//! XFS collects metadata changes and writes them to its log in one go, on a kernel thread of the highest priority,
//! which without kernel preemption occupies a processor for tens of milliseconds. Forcing the log often makes each go
//! short.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use rustix::fs::{Timespec, Timestamps, UTIME_NOW};

use crate::options::internal::Latency;
use crate::sys;

/// Time between two forces. On 2 cores, 20 to 50 ms reduce a timer's longest wait to a quarter, in the same clone time.
const PAUSE: Duration = Duration::from_millis(30);

/// Runs `work`, which makes files on `directory`'s file system, and meanwhile forces its log if `latency` asks for it.
pub(super) fn forced_during<T>(directory: BorrowedFd<'_>, latency: Latency, work: impl FnOnce() -> T) -> T {
    let file = match latency {
        Latency::Low => sys::unnamed_file_on_xfs(directory),
        Latency::Any => None,
    };
    let Some(file) = file else { return work() };
    let file = &file;
    thread::scope(|scope| {
        let (end, ended) = mpsc::channel::<()>();
        let forcing =
            move || while ended.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) && force(file).is_ok() {};
        // Without the thread, the log is written as ever.
        let _ = thread::Builder::new().name("calve-log".into()).spawn_scoped(scope, forcing);
        // Dropped at the end of the work, or when it panics.
        let _end = end;
        work()
    })
}

/// Changes a time of the file and syncs it, which writes the log up to that change.
fn force(file: &OwnedFd) -> sys::Result<()> {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    rustix::fs::futimens(file, &Timestamps { last_access: now, last_modification: now })?;
    rustix::fs::fsync(file.as_fd())
}
