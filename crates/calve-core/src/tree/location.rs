//! A path as an open parent directory and a name in it, so that everything after is relative to a descriptor.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::error::{Error, IoContext};
use crate::sys;
use crate::vocabulary::operation::Operation;

pub(crate) const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW);

/// A name in an open directory. The name is never followed; the path above it is resolved once, as usual.
#[derive(Debug)]
pub(crate) struct Location {
    parent: OwnedFd,
    parent_path: PathBuf,
    name: CString,
    path: PathBuf,
}

impl Location {
    /// Opens the parent of `path`. Returns `None` if the path ends in no name: `/`, `.`, `..`.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, Error> {
        let Some(name) = last_name(path)? else { return Ok(None) };
        let above = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent_path = above.unwrap_or(Path::new(".")).to_path_buf();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let open = |flags| sys::open_at(CWD, &parent_path, flags);
        let parent = match open(flags) {
            // Search permission suffices to reach its entries.
            Err(Errno::ACCESS) => open(flags | sys::PATH_ONLY),
            other => other,
        };
        let parent = parent.map_err(|errno| match errno {
            Errno::NOENT => Error::ParentMissing(parent_path.clone()),
            _ => Error::io(Operation::OpenDirectory, &parent_path, errno),
        })?;
        Ok(Some(Self { parent, parent_path, name, path: path.to_path_buf() }))
    }

    /// Returns the location of a new entry in an open directory. Only messages use the rest of `path`.
    pub(crate) fn in_directory(parent: OwnedFd, path: &Path) -> Result<Self, Error> {
        let name = last_name(path)?.ok_or_else(|| Error::DestinationExists(path.to_path_buf()))?;
        let parent_path = path.parent().unwrap_or(Path::new(".")).to_path_buf();
        Ok(Self { parent, parent_path, name, path: path.to_path_buf() })
    }

    pub(crate) fn of_destination(path: &Path) -> Result<Self, Error> {
        Self::open(path)?.ok_or_else(|| Error::DestinationExists(path.to_path_buf()))
    }

    /// Opens the parent of an entry that must exist: if the parent is missing, so is the entry.
    pub(crate) fn of_existing(path: &Path) -> Result<Option<Self>, Error> {
        Self::open(path).map_err(|error| match error {
            Error::ParentMissing(_) => Error::Missing(path.to_path_buf()),
            other => other,
        })
    }

    pub(crate) fn open_at(&self, flags: OFlags) -> sys::Result<OwnedFd> {
        sys::open_at(&self.parent, &*self.name, flags)
    }

    pub(crate) fn parent(&self) -> BorrowedFd<'_> {
        self.parent.as_fd()
    }

    pub(crate) fn parent_path(&self) -> &Path {
        &self.parent_path
    }

    pub(crate) fn name(&self) -> &CStr {
        &self.name
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn stat(&self) -> Result<Option<Stat>, Error> {
        sys::find_at(&self.parent, &*self.name).io(Operation::Stat, &self.path)
    }
}

/// Returns the last name of a path. `Path::file_name` ignores a `.` at the end, which is not the name before it.
fn last_name(path: &Path) -> Result<Option<CString>, Error> {
    let bytes = path.as_os_str().as_bytes();
    let last = bytes.split(|&byte| byte == b'/').rfind(|name| !name.is_empty());
    let name = path.file_name().filter(|_| last != Some(b"."));
    name.map(|name| CString::new(name.as_bytes()))
        .transpose()
        .map_err(|_| Error::io(Operation::Open, path, Errno::INVAL))
}

pub(crate) fn canonical(path: &Path) -> Result<PathBuf, Error> {
    path.canonicalize().map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => Error::Missing(path.to_path_buf()),
        _ => Error::Io { operation: Operation::Find, path: path.to_path_buf(), source },
    })
}

pub(crate) type Identity = (u64, u64);

#[allow(clippy::unnecessary_cast, reason = "the fields' types differ between systems")]
pub(crate) fn identity(stat: &Stat) -> Identity {
    (stat.st_dev as u64, stat.st_ino as u64)
}

/// Returns whether an open entry still has this name.
pub fn is_at(opened: impl AsFd, parent: impl AsFd, name: impl Arg) -> bool {
    let pair = (sys::stat_at(parent, name), rustix::fs::fstat(opened));
    matches!(pair, (Ok(named), Ok(opened)) if identity(&named) == identity(&opened))
}

/// Returns whether `directory` is `root` or inside it. Follows `..` up: links and bind mounts in it do not matter.
pub(crate) fn is_inside(directory: BorrowedFd<'_>, root: Identity) -> Result<bool, Errno> {
    match any_upwards(directory, |_, here| here == root) {
        // Nothing is visible above, so the root, which was opened by its path, is not there.
        Err(Errno::ACCESS) => Ok(false),
        other => other,
    }
}

/// Returns whether `is_wanted` holds for a directory or one above it, up to `/`.
pub(crate) fn any_upwards(
    directory: BorrowedFd<'_>,
    mut is_wanted: impl FnMut(BorrowedFd<'_>, Identity) -> bool,
) -> Result<bool, Errno> {
    let mut last = None;
    let mut current: Option<OwnedFd> = None;
    loop {
        let at = current.as_ref().map_or(directory, |fd| fd.as_fd());
        let here = identity(&rustix::fs::fstat(at)?);
        if last == Some(here) {
            return Ok(false);
        }
        if is_wanted(at, here) {
            return Ok(true);
        }
        last = Some(here);
        current = Some(sys::open_at(at, c"..", sys::PATH_ONLY | OFlags::DIRECTORY)?);
    }
}

/// Returns where the file system of a directory is mounted.
pub fn mount_point_of(directory: &Path) -> Option<PathBuf> {
    sys::mount_point(sys::open_at(CWD, directory, sys::PATH_ONLY | DIRECTORY).ok()?.as_fd())
}

/// Returns whether a file system is mounted at `point`, or may be: this user may not look there.
pub fn is_mounted(point: &Path) -> Result<bool, Error> {
    let is_mounted = match sys::open_at(CWD, point, sys::PATH_ONLY | DIRECTORY) {
        Ok(opened) => sys::is_mount_point(opened.as_fd()),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
        Err(Errno::ACCESS) => Ok(true),
        Err(errno) => Err(errno),
    };
    is_mounted.io(Operation::FindMounts, point)
}

/// Opens a directory below `root`, following no link, and makes the missing ones.
pub fn make_below(root: BorrowedFd<'_>, path: &Path, mode: Mode) -> sys::Result<OwnedFd> {
    let mut current = sys::open_at(root, c".", DIRECTORY)?;
    for name in path {
        match rustix::fs::mkdirat(&current, name, mode) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        current = sys::open_at(&current, name, DIRECTORY)?;
    }
    Ok(current)
}
