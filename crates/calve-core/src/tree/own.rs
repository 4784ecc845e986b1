//! Calve's own directories and files: what another user could have made or changed is not trusted.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;

use crate::error::{Error, IoContext};
use crate::sys::{self};
use crate::tree::location::DIRECTORY;
use crate::vocabulary::operation::Operation;

/// The beginning of the names of files that are being written.
pub(crate) const NEW: &[u8] = b".new-";

/// Returns whether only this user, or root, can have made and changed an entry with this owner and mode.
pub fn is_own(owner: u32, mode: impl Into<u32>) -> bool {
    owner == rustix::process::geteuid().as_raw() && mode.into() & 0o022 == 0
}

/// Makes a directory that only this user can enter, if it is missing.
pub(crate) fn make_directory(at: BorrowedFd<'_>, name: &Path, path: &Path) -> Result<(), Error> {
    match rustix::fs::mkdirat(at, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(Errno::NOENT) => Err(match path.parent() {
            Some(parent) if !parent.exists() => Error::ParentMissing(parent.to_path_buf()),
            // In /proc nothing can be made.
            _ => Error::io(Operation::CreateDirectory, path, Errno::OPNOTSUPP),
        }),
        Err(errno) => Err(Error::io(Operation::CreateDirectory, path, errno)),
    }
}

/// Opens a directory, if it is there. Fails with `foreign` for a link, for anything else, and if another user owns or may write to it.
pub(crate) fn open_directory(
    at: BorrowedFd<'_>,
    name: &Path,
    path: &Path,
    foreign: impl FnOnce(Errno) -> Error,
) -> Result<Option<OwnedFd>, Error> {
    let opened = match sys::open_at(at, name, DIRECTORY) {
        Ok(opened) => opened,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno @ (Errno::LOOP | Errno::NOTDIR)) => return Err(foreign(errno)),
        Err(errno) => return Err(Error::io(Operation::OpenDirectory, path, errno)),
    };
    let stat = rustix::fs::fstat(&opened).io(Operation::Stat, path)?;
    if is_own(stat.st_uid, stat.st_mode) { Ok(Some(opened)) } else { Err(foreign(Errno::PERM)) }
}

/// Returns the names in the directory `name`.
pub(crate) fn names(at: BorrowedFd<'_>, name: &Path, path: &Path) -> Result<Vec<CString>, Error> {
    let listed = sys::open_at(at, name, DIRECTORY).and_then(|directory| sys::list(directory.as_fd()));
    Ok(listed.io(Operation::ReadDirectory, path)?.into_iter().map(|(name, _)| name).collect())
}

/// Reads a whole file, through no link at its end. `None` if it is not there.
pub(crate) fn read_file(at: BorrowedFd<'_>, name: &Path, path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let Some(file) = sys::unless_missing(sys::open_at(at, name, sys::FILE)).io(Operation::Open, path)? else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    File::from(file).read_to_end(&mut bytes).io(Operation::Read, path)?;
    Ok(Some(bytes))
}

/// Removes the files of a directory in which there is nothing but `own` and what killed processes left while they wrote it.
pub(crate) fn remove_files(directory: BorrowedFd<'_>, path: &Path, own: &[&CStr]) {
    let Ok(names) = names(directory, Path::new("."), path) else { return };
    if names.iter().all(|name| own.contains(&name.as_c_str()) || name.to_bytes().starts_with(NEW)) {
        for name in names {
            let _ = rustix::fs::unlinkat(directory, &*name, AtFlags::empty());
        }
    }
}
