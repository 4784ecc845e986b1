//! A lock (flock) that is held.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::FlockOperation;

/// The open file of a lock that this process holds.
#[derive(Debug)]
pub(crate) struct HeldLock(OwnedFd);

impl From<OwnedFd> for HeldLock {
    fn from(locked: OwnedFd) -> Self {
        Self(locked)
    }
}

impl AsFd for HeldLock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Lets go of it also in children of this process that have not closed their copy of the descriptor yet.
impl Drop for HeldLock {
    fn drop(&mut self) {
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}
