//! Directories below the root, opened name by name, so that no symlink is followed.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::options::Directory;
use super::plan::join;
use crate::error::Error;
use crate::sys;
use crate::vocabulary::operation::Operation;

pub(super) struct Directories<'a> {
    root: BorrowedFd<'a>,
    root_path: &'a Path,
    missing: Directory,
    last: Option<(Vec<u8>, OwnedFd)>,
    pub(super) made: u64,
}

impl<'a> Directories<'a> {
    pub(super) fn new(root: BorrowedFd<'a>, root_path: &'a Path, missing: Directory) -> Self {
        Self { root, root_path, missing, last: None, made: 0 }
    }

    pub(super) fn open(&mut self, path: &[u8]) -> Result<BorrowedFd<'_>, Error> {
        if path.is_empty() {
            return Ok(self.root);
        }
        if self.last.as_ref().is_none_or(|(open, _)| open != path) {
            self.last = None;
            let opened = self.walk(path)?;
            self.last = Some((path.to_vec(), opened));
        }
        Ok(self.last.as_ref().map_or(self.root, |(_, open)| open.as_fd()))
    }

    fn walk(&mut self, path: &[u8]) -> Result<OwnedFd, Error> {
        let mut open: Option<OwnedFd> = None;
        let mut end = 0;
        for name in path.split(|&byte| byte == b'/') {
            end += name.len() + 1;
            let above = open.as_ref().map_or(self.root, |fd| fd.as_fd());
            let so_far = || join(self.root_path, path.get(..end - 1).unwrap_or(path), b"");
            let mut entered = enter(above, name);
            if self.missing == Directory::Make && matches!(entered, Err(Errno::NOENT)) {
                match rustix::fs::mkdirat(above, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) => self.made += 1,
                    // Another worker was faster.
                    Err(Errno::EXIST) => {}
                    Err(errno) => return Err(Error::io(Operation::CreateDirectory, so_far(), errno)),
                }
                entered = enter(above, name);
            }
            open = Some(entered.map_err(|errno| refused(above, name, errno, &so_far()))?);
        }
        open.ok_or_else(|| Error::io(Operation::EnterDirectory, self.root_path, Errno::NOENT))
    }
}

fn enter(above: BorrowedFd<'_>, name: &[u8]) -> sys::Result<OwnedFd> {
    sys::open_at(above, name, sys::PATH_ONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW)
}

fn refused(above: BorrowedFd<'_>, name: &[u8], errno: Errno, path: &Path) -> Error {
    let is_symlink = matches!(errno, Errno::NOTDIR | Errno::LOOP)
        && sys::stat_at(above, name).is_ok_and(|stat| sys::kind(stat) == FileType::Symlink);
    if is_symlink {
        return Error::OutsideRoot { path: path.to_path_buf(), reason: "it is a symlink, which is not followed" };
    }
    Error::io(Operation::EnterDirectory, path, errno)
}

/// Repeats the error of a directory for another file in it.
pub(super) fn again(error: &Error) -> Error {
    match error {
        Error::OutsideRoot { path, reason } => Error::OutsideRoot { path: path.clone(), reason },
        Error::Io { operation, path, source } => {
            let source = source.raw_os_error().map_or_else(|| source.kind().into(), io::Error::from_raw_os_error);
            Error::Io { operation: *operation, path: path.clone(), source }
        }
        other => Error::io(Operation::EnterDirectory, ".", io::Error::other(other.to_string())),
    }
}
