//! A held flock(2).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::sys;
use crate::tree::location::is_at;

#[derive(Debug)]
pub(crate) struct HeldLock(OwnedFd);

/// Locks a file or directory, but no link, until the last copy of the descriptor is closed. Returns `None` if another
/// process has the lock and `operation` does not wait, or if another process has removed or replaced the entry.
pub fn lock_file(
    parent: impl AsFd + Copy,
    name: impl Arg + Copy,
    flags: OFlags,
    operation: FlockOperation,
) -> sys::Result<Option<OwnedFd>> {
    let opened = sys::open_with(parent, name, flags | OFlags::NOFOLLOW, Mode::RUSR | Mode::WUSR)?;
    match sys::retry(|| rustix::fs::flock(&opened, operation)) {
        Ok(()) => Ok(Some(opened).filter(|lock| is_at(lock, parent, name))),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(errno),
    }
}

impl HeldLock {
    /// Locks like [`lock_file`], until this is dropped.
    pub(crate) fn take(
        parent: impl AsFd + Copy,
        name: impl Arg + Copy,
        flags: OFlags,
        operation: FlockOperation,
    ) -> sys::Result<Option<Self>> {
        Ok(lock_file(parent, name, flags, operation)?.map(Self))
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
