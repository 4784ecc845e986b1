//! Writing an XFS log little by little.
//!
//! XFS collects changes of metadata and writes them to its log in one go, on a kernel thread of the highest priority, which on a
//! kernel without preemption keeps a processor for tens of milliseconds. When the log is forced more often, each go is short.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::fs::{Timespec, Timestamps, UTIME_NOW};

use crate::options::Latency;
use crate::sys;

/// Time between two forces. Measured on 2 cores: with 20 to 50 ms the longest wait of a timer falls to a quarter, and the clone takes as long.
const PAUSE: Duration = Duration::from_millis(30);

/// Runs `work`, which makes files on `directory`'s file system, and forces that file system's log meanwhile, if `latency` asks for it.
pub(super) fn forced_during<T>(directory: BorrowedFd<'_>, latency: Latency, work: impl FnOnce() -> T) -> T {
    let file = match latency {
        Latency::Low => sys::unnamed_file_on_xfs(directory),
        Latency::Any => None,
    };
    let Some(file) = file else { return work() };
    let end = End::default();
    thread::scope(|scope| {
        let forcing = || {
            while !end.comes_within(PAUSE) && force(&file).is_ok() {}
        };
        // Without the thread, the log is written as ever.
        let _ = thread::Builder::new().name("calve-log".into()).spawn_scoped(scope, forcing);
        let _at_last = EndNotice(&end);
        work()
    })
}

/// Changes a time of the file and syncs it, which writes all of the log up to that change.
fn force(file: &OwnedFd) -> sys::Result<()> {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    rustix::fs::futimens(file, &Timestamps { last_access: now, last_modification: now })?;
    rustix::fs::fsync(file.as_fd())
}

/// Whether the work has ended.
#[derive(Debug, Default)]
struct End {
    came: Mutex<bool>,
    changed: Condvar,
}

impl End {
    fn comes_within(&self, time: Duration) -> bool {
        let came = self.came.lock().unwrap_or_else(PoisonError::into_inner);
        *self.changed.wait_timeout_while(came, time, |came| !*came).unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Announces the end when it goes, also when the work panics.
struct EndNotice<'e>(&'e End);

impl Drop for EndNotice<'_> {
    fn drop(&mut self) {
        *self.0.came.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.changed.notify_one();
    }
}
