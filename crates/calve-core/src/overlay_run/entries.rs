//! Looks at entries that other processes may remove meanwhile.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::Errno;

use crate::sys::{self, Listing, ListingBuffer};
use crate::tree::node::node_of;

pub(super) fn add_names(directory: BorrowedFd<'_>, names: &mut BTreeSet<CString>) -> sys::Result<()> {
    let mut buffer = ListingBuffer::new();
    let mut listing = Listing::new(directory, &mut buffer)?;
    while let Some(entry) = listing.next() {
        names.insert(entry?.name.to_owned());
    }
    Ok(())
}

/// Returns nothing for an entry that a process has removed or replaced after its name was read.
pub(super) fn unless_gone<T>(result: sys::Result<T>) -> sys::Result<Option<T>> {
    match result {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        result => result.map(Some),
    }
}

pub(super) fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

pub(super) fn is_directory(stat: &Stat) -> bool {
    file_type(stat) == FileType::Directory
}

/// Returns the directory that an entry is in, and the entry's name. `None` for the root.
pub(super) fn above(path: &Path) -> Option<(&Path, CString)> {
    let name = CString::new(path.file_name()?.as_bytes()).ok()?;
    Some((path.parent().unwrap_or(Path::new("")), name))
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
        let stat = rustix::fs::statat(&last.1, &*name, AtFlags::SYMLINK_NOFOLLOW);
        self.last = Some(last);
        stat
    }
}
