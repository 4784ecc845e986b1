//! Changes entries of a tree: relative to open directories, following no link, each in one step.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use calve_core::internal::{ReplacedFile, times};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::{Errno, Result};

use crate::directory::{open_below, open_directory};
use crate::escape::entry::names;
use crate::paths::{numbered, path_of};

/// An entry's directory. Dropping it restores its times, which package managers compare with their notes.
struct Parent {
    directory: File,
    before: Stat,
}

impl Drop for Parent {
    fn drop(&mut self) {
        // Only the owner can, and nearly always only the owner could change the entry.
        let _ = rustix::fs::futimens(&self.directory, &times(&self.before));
    }
}

fn parent_of<'p>(root: BorrowedFd<'_>, path: &'p Path) -> Result<(Parent, &'p OsStr)> {
    let (directory, name) = open_parent(root, path)?;
    let before = rustix::fs::fstat(&directory)?;
    Ok((Parent { directory, before }, name))
}

pub(super) fn open_parent<'p>(root: BorrowedFd<'_>, path: &'p Path) -> Result<(File, &'p OsStr)> {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return Err(Errno::INVAL) };
    Ok((open_below(open_directory(root, c".")?, above)?, name))
}

pub(super) fn relink(root: BorrowedFd<'_>, path: &Path, target: &[u8]) -> Result<()> {
    let (held, name) = parent_of(root, path)?;
    let parent = &held.directory;
    let before = stat(parent, name)?;
    if FileType::from_raw_mode(before.st_mode) != FileType::Symlink {
        return Err(Errno::NOENT);
    }
    let (temporary, ()) = with_temporary_name(|temporary| rustix::fs::symlinkat(target, parent, temporary))?;
    let sealed = keep_owner(parent, &temporary, &before).and_then(|()| keep_time(parent, &temporary, &before));
    publish(parent, &temporary, name, sealed)
}

pub(super) fn write(root: BorrowedFd<'_>, path: &Path, bytes: &[u8], keeps_time: bool) -> Result<()> {
    let (held, name) = parent_of(root, path)?;
    let parent = &held.directory;
    let before = stat(parent, name)?;
    let replaced = ReplacedFile::find(parent.as_fd(), name).map_err(failed)?.ok_or(Errno::NOENT)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(ReplacedFile::NEW_MODE as _);
    let (temporary, made) = with_temporary_name(|temporary| rustix::fs::openat(parent, temporary, flags, mode))?;
    let mut file = File::from(made);
    let filled = || -> Result<()> {
        if !replaced.keep_in(file.as_fd()).map_err(failed)? {
            return Err(Errno::PERM);
        }
        file.write_all(bytes).map_err(failed)?;
        if keeps_time { keep_time(parent, &temporary, &before) } else { Ok(()) }
    }();
    publish(parent, &temporary, name, filled)
}

/// Removes an entry and its descendants, except for mounts.
pub(super) fn remove(root: BorrowedFd<'_>, path: &Path) -> Result<()> {
    let (held, name) = parent_of(root, path)?;
    remove_in(&held.directory, name, device(&held.before))
}

fn remove_in(parent: &File, name: &OsStr, device: u64) -> Result<()> {
    let found = stat(parent, name)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
        return rustix::fs::unlinkat(parent, name, AtFlags::empty());
    }
    let directory = open_directory(parent, name)?;
    if self::device(&rustix::fs::fstat(&directory)?) != device {
        return Err(Errno::XDEV);
    }
    for (below, _) in names(&directory) {
        remove_in(&directory, path_of(&below).as_os_str(), device)?;
    }
    rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
}

/// Converts the device's number, whose type differs between systems.
fn device(stat: &Stat) -> u64 {
    stat.st_dev as _
}

fn stat(parent: &File, name: &OsStr) -> Result<Stat> {
    rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
}

fn with_temporary_name<T>(mut make: impl FnMut(&Path) -> Result<T>) -> Result<(PathBuf, T)> {
    let process = rustix::process::getpid().as_raw_nonzero();
    let made = numbered(|number| {
        let name = PathBuf::from(format!(".calve-repair-{process}-{number}"));
        Ok(make(&name).map(|made| (name, made))?)
    });
    made.map_err(failed)
}

fn failed(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

fn publish(parent: &File, temporary: &Path, name: &OsStr, ready: Result<()>) -> Result<()> {
    let published = ready.and_then(|()| rustix::fs::renameat(parent, temporary, parent, name));
    if published.is_err() {
        let _ = rustix::fs::unlinkat(parent, temporary, AtFlags::empty());
    }
    published
}

/// Restores a file's owner. For another user's file, only a privileged user can.
fn keep_owner(parent: &File, name: &Path, before: &Stat) -> Result<()> {
    let now = stat(parent, name.as_os_str())?;
    if (now.st_uid, now.st_gid) == (before.st_uid, before.st_gid) {
        return Ok(());
    }
    let (user, group) = (rustix::fs::Uid::from_raw(before.st_uid), rustix::fs::Gid::from_raw(before.st_gid));
    rustix::fs::chownat(parent, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)
}

fn keep_time(parent: &File, name: &Path, before: &Stat) -> Result<()> {
    rustix::fs::utimensat(parent, name, &times(before), AtFlags::SYMLINK_NOFOLLOW)
}
