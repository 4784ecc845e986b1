//! One open directory that moves through a tree.
//!
//! It holds one descriptor at any depth and names no path longer than one component, so it can walk a tree far beyond
//! PATH_MAX and the limit on open files.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, Stat};
use rustix::io::{Errno, Result};

use crate::must::must;
use crate::sys::NOATIME;

pub(crate) struct Cursor {
    here: OwnedFd,
    /// Device and inode of each directory above, to notice when `..` leads somewhere else.
    above: Vec<(u64, u64)>,
}

impl Cursor {
    pub(crate) fn open(root: &Path) -> Self {
        Self { here: must(open_directory(CWD, root.as_os_str()), "open the directory", root), above: Vec::new() }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.here.as_fd()
    }

    pub(crate) fn enter(&mut self, name: &OsStr) -> Result<()> {
        let below = open_directory(&self.here, name)?;
        self.above.push(identity_of(&self.here)?);
        self.here = below;
        Ok(())
    }

    pub(crate) fn leave(&mut self) -> Result<()> {
        let expected = self.above.pop();
        let above = open_directory(&self.here, OsStr::new(".."))?;
        assert_eq!(Some(identity_of(&above)?), expected, "a directory was moved during the walk");
        self.here = above;
        Ok(())
    }
}

fn identity_of(dir: &OwnedFd) -> Result<(u64, u64)> {
    rustix::fs::fstat(dir).map(|stat| identity(&stat))
}

#[allow(clippy::unnecessary_cast, reason = "it is necessary on macOS")]
pub(crate) fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev as u64, stat.st_ino)
}

fn open_directory(at: impl AsFd, name: &OsStr) -> Result<OwnedFd> {
    open_unnoticed(at.as_fd(), name, OFlags::RDONLY | OFlags::DIRECTORY)
}

/// Opens without following a link and, where permitted, without touching the access time.
pub(crate) fn open_unnoticed(at: BorrowedFd<'_>, name: &OsStr, flags: OFlags) -> Result<OwnedFd> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(at, name, flags | NOATIME, Mode::empty()) {
        // Only the owner and root may use O_NOATIME.
        Err(Errno::PERM) => rustix::fs::openat(at, name, flags, Mode::empty()),
        other => other,
    }
}
