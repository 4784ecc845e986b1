//! Looks at entries that other processes may remove meanwhile.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::Stat;

use crate::sys;
use crate::tree::node::{above, node_of};

pub(super) fn entry(root: BorrowedFd<'_>, path: &Path) -> sys::Result<Stat> {
    Directories::new(root).entry(path)
}

/// Opens each directory below a root once for consecutive entries.
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
