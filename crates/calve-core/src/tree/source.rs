//! The source of a clone: opened once, and from then on only reached through that descriptor.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::error::Error;
use crate::sys;
use crate::tree::location::{Location, identity, is_inside};
use crate::vocabulary::operation::Operation;

/// A source, opened once: what has its name later does not count.
pub(crate) struct Source {
    path: PathBuf,
    stat: Stat,
    opened: SourceHandle,
}

enum SourceHandle {
    Directory(OwnedFd),
    /// Anything else: a name in its directory.
    Entry(Location),
}

impl Source {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        // `link/` means the directory behind the link, as everywhere in Unix.
        let follow = ends_with_slash(path);
        let location = if follow { None } else { Location::of_existing(path)? };
        let stat = match &location {
            Some(location) => location.stat()?.ok_or_else(|| Error::Missing(path.to_path_buf()))?,
            None => rustix::fs::statat(CWD, path, AtFlags::empty()).map_err(|errno| match errno {
                Errno::NOENT => Error::Missing(path.to_path_buf()),
                _ => Error::io(Operation::Open, path, errno),
            })?,
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        let opened = match (kind, location) {
            (FileType::Socket, _) => return Err(Error::NotClonable { path: path.to_path_buf(), kind: "socket" }),
            (FileType::Directory, location) => SourceHandle::Directory(open_directory(path, location.as_ref(), &stat)?),
            (_, Some(location)) => SourceHandle::Entry(location),
            (_, None) => return Err(Error::io(Operation::OpenDirectory, path, Errno::NOTDIR)),
        };
        Ok(Self { path: path.to_path_buf(), stat, opened })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn stat(&self) -> &Stat {
        &self.stat
    }

    pub(crate) fn identity(&self) -> (u64, u64) {
        identity(&self.stat)
    }

    /// Returns the source itself if it is a directory, else the directory it is in.
    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        match &self.opened {
            SourceHandle::Directory(directory) => directory.as_fd(),
            SourceHandle::Entry(location) => location.parent(),
        }
    }

    /// Returns the name in [`Self::directory`] and the kind of a source that is not a directory.
    pub(crate) fn single(&self) -> Option<(&CStr, FileType)> {
        match &self.opened {
            SourceHandle::Directory(_) => None,
            SourceHandle::Entry(location) => Some((location.name(), FileType::from_raw_mode(self.stat.st_mode))),
        }
    }

    /// Returns whether `destination` would be inside the source.
    pub(crate) fn contains(&self, destination: &Location) -> Result<bool, Error> {
        let failed = |errno| Error::io(Operation::OpenDirectory, destination.parent_path(), errno);
        Ok(is_inside(destination.parent(), self.identity()).map_err(failed)?
            || sys::is_inside_by_another_mount(destination.parent(), self.directory()))
    }

    /// Returns whether replacing `destination`, the directory with that identity, would take the source away: it is inside, or a part mounted elsewhere.
    pub(crate) fn is_inside(&self, destination: &Location, existing: (u64, u64)) -> Result<bool, Error> {
        let failed = |errno| Error::io(Operation::OpenDirectory, destination.parent_path(), errno);
        let flags = sys::PATH_ONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let by_mount = || {
            let directory = destination.open_at(flags);
            directory.is_ok_and(|directory| sys::is_inside_by_another_mount(self.directory(), directory.as_fd()))
        };
        Ok(is_inside(self.directory(), existing).map_err(failed)? || by_mount())
    }
}

fn open_directory(path: &Path, location: Option<&Location>, stat: &Stat) -> Result<OwnedFd, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = |flags| match location {
        Some(location) => sys::open_at(location.parent(), location.name(), flags | OFlags::NOFOLLOW, Mode::empty()),
        None => sys::open_at(CWD, path, flags, Mode::empty()),
    };
    let opened = match open(flags | sys::NO_ATIME) {
        Err(Errno::PERM) => open(flags),
        other => other,
    };
    let directory = opened.map_err(|errno| Error::io(Operation::OpenDirectory, path, errno))?;
    let now = rustix::fs::fstat(&directory).map_err(|errno| Error::io(Operation::Stat, path, errno))?;
    if identity(&now) != identity(stat) {
        return Err(Error::io(Operation::OpenDirectory, path, Errno::NOENT));
    }
    Ok(directory)
}

fn ends_with_slash(path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes().ends_with(b"/")
}
