//! The source of a clone: opened once, and then only reached through that descriptor.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, OFlags, Stat};
use rustix::io::Errno;

use crate::error::{Error, IoContext};
use crate::sys;
use crate::tree::location::{Location, identity, is_inside};
use crate::tree::node::leaving_times;
use crate::vocabulary::operation::Operation;

/// An opened source; a later entry of its name does not count.
pub(crate) struct Source {
    path: PathBuf,
    stat: Stat,
    opened: SourceHandle,
}

enum SourceHandle {
    Directory(OwnedFd),
    /// Not a directory: a name in its directory.
    Entry(Location),
}

impl Source {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        // `link/` means the directory behind the link, as everywhere in Unix.
        let follow = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        let location = if follow { None } else { Location::of_existing(path)? };
        let stat = match &location {
            Some(location) => location.stat()?.ok_or_else(|| Error::Missing(path.to_path_buf()))?,
            None => rustix::fs::statat(CWD, path, AtFlags::empty()).map_err(|errno| match errno {
                Errno::NOENT => Error::Missing(path.to_path_buf()),
                _ => Error::io(Operation::Open, path, errno),
            })?,
        };
        let kind = sys::kind(stat);
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

    /// Returns the source if it is a directory, else its directory.
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
            SourceHandle::Entry(location) => Some((location.name(), sys::kind(self.stat))),
        }
    }

    /// Fails unless the source is a directory.
    pub(crate) fn expect_directory(&self, operation: Operation) -> Result<(), Error> {
        match self.opened {
            SourceHandle::Directory(_) => Ok(()),
            SourceHandle::Entry(_) => Err(Error::io(operation, &self.path, Errno::NOTDIR)),
        }
    }

    pub(crate) fn contains(&self, destination: &Location) -> Result<bool, Error> {
        Ok(is_inside(destination.parent(), self.identity()).io(Operation::OpenDirectory, destination.parent_path())?
            || sys::is_inside_by_another_mount(destination.parent(), self.directory()))
    }

    /// Returns whether replacing the directory `destination` would remove the source: inside, or a part mounted away.
    pub(crate) fn is_inside(&self, destination: &Location, existing: (u64, u64)) -> Result<bool, Error> {
        let by_mount = || {
            let directory = destination.open_at(sys::PATH_ONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW);
            directory.is_ok_and(|directory| sys::is_inside_by_another_mount(self.directory(), directory.as_fd()))
        };
        Ok(is_inside(self.directory(), existing).io(Operation::OpenDirectory, destination.parent_path())? || by_mount())
    }
}

fn open_directory(path: &Path, location: Option<&Location>, stat: &Stat) -> Result<OwnedFd, Error> {
    let opened = leaving_times(OFlags::RDONLY | OFlags::DIRECTORY, |flags| match location {
        Some(location) => sys::open_at(location.parent(), location.name(), flags | OFlags::NOFOLLOW),
        None => sys::open_at(CWD, path, flags),
    });
    let directory = opened.io(Operation::OpenDirectory, path)?;
    let now = rustix::fs::fstat(&directory).io(Operation::Stat, path)?;
    if identity(&now) != identity(stat) {
        return Err(Error::io(Operation::OpenDirectory, path, Errno::NOENT));
    }
    Ok(directory)
}
