//! Gives directories the permissions that moves and changes of metadata need, and knows the old ones.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Gid, Mode, RawMode, Stat, Timestamps, Uid};
use rustix::io::Errno;

use super::xattrs::{Xattrs, set_xattrs};
use crate::sys;

/// The permissions that the owner of a directory needs to change it.
pub(super) const HELD: RawMode = 0o300;

pub(super) struct PlaceRoot {
    pub(super) directory: OwnedFd,
    /// Its mode, and the one that it gets.
    pub(super) before: RawMode,
    pub(super) after: RawMode,
}

impl PlaceRoot {
    /// Returns whether it is open only while the hidden place is in it.
    pub(super) fn is_held(&self) -> bool {
        self.before & self.after & HELD != HELD && !rustix::process::geteuid().is_root()
    }
}

/// A directory of the tree, with its old metadata.
pub(super) struct Seal {
    pub(super) directory: OwnedFd,
    pub(super) stat: Stat,
    pub(super) xattrs: Xattrs,
    pub(super) times: Timestamps,
}

impl Seal {
    pub(super) fn take_back(&self) -> sys::Result<()> {
        self.set(&self.stat, &self.stat, &self.xattrs)
    }

    pub(super) fn set_times(&self) -> sys::Result<()> {
        rustix::fs::futimens(&self.directory, &self.times).or_else(unless_anothers)
    }

    /// Sets owner, attributes, mode: a new owner clears the others, and an access control list sets the group's mode.
    pub(super) fn set(&self, owner: &Stat, mode: &Stat, xattrs: &Xattrs) -> sys::Result<()> {
        let now = rustix::fs::fstat(&self.directory)?;
        if (now.st_uid, now.st_gid) != (owner.st_uid, owner.st_gid) {
            let (uid, gid) = (Uid::from_raw(owner.st_uid), Gid::from_raw(owner.st_gid));
            rustix::fs::fchown(&self.directory, Some(uid), Some(gid))?;
        }
        match set_xattrs(self.directory.as_fd(), xattrs) {
            // `user.*` needs write permission.
            Err(Errno::ACCESS) => {
                rustix::fs::fchmod(&self.directory, Mode::from_raw_mode(now.st_mode & 0o7777 | HELD))?;
                set_xattrs(self.directory.as_fd(), xattrs)?;
            }
            set => set?,
        }
        rustix::fs::fchmod(&self.directory, Mode::from_raw_mode(mode.st_mode & 0o7777))
    }
}

/// Only the owner may set the times of a directory.
pub(super) fn unless_anothers(errno: Errno) -> sys::Result<()> {
    if matches!(errno, Errno::PERM | Errno::ACCESS) { Ok(()) } else { Err(errno) }
}

/// Renames one or two entries. Meanwhile their directories are writable, and moving ones, too: their `..` changes.
pub(super) fn with_writable(
    entries: [(BorrowedFd<'_>, &CStr); 2],
    rename: impl Fn() -> sys::Result<()>,
) -> sys::Result<()> {
    let first = rename();
    if first != Err(Errno::ACCESS) {
        return first;
    }
    let mut opened = Vec::new();
    for (above, name) in entries.map(|(directory, _)| (directory, c".")).into_iter().chain(entries) {
        let Ok(stat) = sys::stat_at(above, name) else { continue };
        let mode = stat.st_mode as RawMode & 0o7777;
        if sys::is_directory(stat)
            && mode & HELD != HELD
            && let Ok(directory) = sys::open_at(above, name, sys::PATH_ONLY)
            && sys::set_mode_of_name(above, name, Mode::from_raw_mode(mode | HELD)).is_ok()
        {
            opened.push((directory, mode));
        }
    }
    let second = rename();
    for (directory, mode) in opened.into_iter().rev() {
        sys::set_mode_of_name(directory.as_fd(), c".", Mode::from_raw_mode(mode))?;
    }
    second
}
