//! Looks at entries that other processes may remove meanwhile.

use std::ffi::CString;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::Stat;
use rustix::io::Errno;

use crate::sys;
use crate::tree::node::node_of;

/// Returns the directory that an entry is in, and the entry's name. `None` for the root.
pub(super) fn above(path: &Path) -> Option<(&Path, CString)> {
    let name = CString::new(path.file_name()?.as_bytes()).ok()?;
    Some((path.parent().unwrap_or(Path::new("")), name))
}

/// Opens the directory that `path` is in, below `root`, and returns it with the entry's name.
pub(super) fn open_above(root: BorrowedFd<'_>, path: &Path) -> sys::Result<(OwnedFd, CString)> {
    let (directory, name) = above(path).ok_or(Errno::INVAL)?;
    Ok((node_of(directory).open(root, sys::PATH_ONLY)?, name))
}

pub(super) fn entry(root: BorrowedFd<'_>, path: &Path) -> sys::Result<Stat> {
    Directories::new(root).entry(path)
}

/// The directories below a root, each opened once for all of its entries that are asked about in turn.
pub(super) struct Directories<'a> {
    root: BorrowedFd<'a>,
    last: Option<(PathBuf, OwnedFd)>,
}

impl<'a> Directories<'a> {
    pub(super) fn new(root: BorrowedFd<'a>) -> Self {
        Self { root, last: None }
    }

    pub(super) fn entry(&mut self, path: &Path) -> sys::Result<Stat> {
        let Some((directory, name)) = above(path) else { return rustix::fs::fstat(self.root) };
        let last = match self.last.take().filter(|(path, _)| path == directory) {
            Some(last) => last,
            None => (directory.to_path_buf(), node_of(directory).open(self.root, sys::PATH_ONLY)?),
        };
        let stat = sys::stat_at(&last.1, &*name);
        self.last = Some(last);
        stat
    }
}
