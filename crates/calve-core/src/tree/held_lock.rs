//! A held flock(2).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::sys;

#[derive(Debug)]
pub(crate) struct HeldLock(OwnedFd);

impl HeldLock {
    /// Locks an open file or directory. Returns `None` if another process has the lock and `operation` does not wait.
    pub(crate) fn take(opened: OwnedFd, operation: FlockOperation) -> sys::Result<Option<Self>> {
        match sys::retry(|| rustix::fs::flock(&opened, operation)) {
            Ok(()) => Ok(Some(Self(opened))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}

impl AsFd for HeldLock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Unlocks also for children of this process that have not closed their copy of the descriptor yet.
impl Drop for HeldLock {
    fn drop(&mut self) {
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}
