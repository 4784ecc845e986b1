//! Where a directory is in the tree: a chain of names, so that a task needs no open descriptor and no long path.

use std::collections::VecDeque;
use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustix::fs::{FileType, Mode, OFlags, Timestamps};
use rustix::io::Errno;

use crate::sys;

/// Names of entries of one directory, in the order in which they were listed.
pub(crate) type Names = VecDeque<(FileType, CString)>;

/// One directory below (or at) the root of a walk.
pub(crate) struct Node {
    /// `None` for the root.
    parent: Option<(Arc<Node>, CString)>,
    /// The times and the mode its copy was given, for the rare case that they must be set again.
    pub(crate) sealed: OnceLock<(Timestamps, Mode)>,
}

impl Node {
    pub(crate) fn root() -> Arc<Self> {
        Arc::new(Self { parent: None, sealed: OnceLock::new() })
    }

    pub(crate) fn child(parent: &Arc<Self>, name: &CStr) -> Arc<Self> {
        Arc::new(Self { parent: Some((Arc::clone(parent), name.to_owned())), sealed: OnceLock::new() })
    }

    /// Returns the path relative to the root.
    pub(crate) fn path(&self) -> PathBuf {
        self.names().iter().map(|name| sys::path(name)).collect()
    }

    /// Returns the path of an entry of this directory, relative to the root.
    pub(crate) fn path_of(&self, name: &CStr) -> PathBuf {
        let mut path = self.path();
        path.push(sys::path(name));
        path
    }

    pub(crate) fn parent(&self) -> Option<(&Arc<Self>, &CStr)> {
        self.parent.as_ref().map(|(parent, name)| (parent, name.as_c_str()))
    }

    /// Opens this directory below `root`: no link is followed and no path can be too long.
    pub(crate) fn open(&self, root: BorrowedFd<'_>, flags: OFlags) -> sys::Result<OwnedFd> {
        let flags = flags | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        match *self.names() {
            [] => sys::open_at(root, c".", flags),
            [name] => sys::open_at(root, name, flags),
            // In a tree of 8,000 levels it takes a few calls instead of 8,000.
            ref names => by_path(root, names, flags).or_else(|_| by_name(root, names, flags)),
        }
    }

    /// Opens a source's directory for reading as [`Self::open`] does, and leaves the access time alone where that is permitted.
    pub(crate) fn open_source(&self, root: BorrowedFd<'_>) -> sys::Result<OwnedFd> {
        match self.open(root, OFlags::RDONLY | sys::NO_ATIME) {
            Err(Errno::PERM) => self.open(root, OFlags::RDONLY),
            other => other,
        }
    }

    fn names(&self) -> Vec<&CStr> {
        let mut names = Vec::new();
        let mut node = self;
        while let Some((parent, name)) = &node.parent {
            names.push(name.as_c_str());
            node = parent;
        }
        names.reverse();
        names
    }
}

/// Returns the node of a path below the root.
pub(crate) fn node_of(path: &Path) -> Arc<Node> {
    path.components().fold(Node::root(), |node, name| {
        Node::child(&node, &CString::new(name.as_os_str().as_bytes()).unwrap_or_default())
    })
}

/// Opens a path below `root`, with as many names in one call as a path may have. If that fails, [`by_name`] finds out why.
fn by_path(root: BorrowedFd<'_>, names: &[&CStr], flags: OFlags) -> sys::Result<OwnedFd> {
    /// PATH_MAX of linux/limits.h, with the final NUL.
    const LONGEST: usize = 4096;
    let mut path: Vec<u8> = Vec::new();
    let mut above: Option<OwnedFd> = None;
    for name in names {
        let name = name.to_bytes();
        if path.len() + 1 + name.len() >= LONGEST {
            let at = above.as_ref().map_or(root, |fd| fd.as_fd());
            above = Some(sys::open_beneath(
                at,
                Path::new(OsStr::from_bytes(&path)),
                sys::PATH_ONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW,
            )?);
            path.clear();
        }
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name);
    }
    let at = above.as_ref().map_or(root, |fd| fd.as_fd());
    sys::open_beneath(at, Path::new(OsStr::from_bytes(&path)), flags)
}

/// Opens a path below `root`, one name after the other.
fn by_name(root: BorrowedFd<'_>, names: &[&CStr], flags: OFlags) -> sys::Result<OwnedFd> {
    let Some((last, above)) = names.split_last() else { return Err(Errno::INVAL) };
    let mut current: Option<OwnedFd> = None;
    for name in above {
        let at = current.as_ref().map_or(root, |fd| fd.as_fd());
        current = Some(crate::sys::open_at(at, *name, sys::PATH_ONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW)?);
    }
    let at = current.as_ref().map_or(root, |fd| fd.as_fd());
    crate::sys::open_at(at, *last, flags)
}

/// A chain of thousands must not be dropped by recursion.
impl Drop for Node {
    fn drop(&mut self) {
        let mut next = self.parent.take();
        while let Some((parent, _)) = next {
            next = Arc::into_inner(parent).and_then(|mut node| node.parent.take());
        }
    }
}

/// Clears the flags that forbid deleting a file. Returns whether there were any.
pub(crate) fn unlock_file(parent: BorrowedFd<'_>, name: &CStr) -> bool {
    let Ok(file) = crate::sys::open_at(parent, name, sys::FILE) else { return false };
    let has_one_name = rustix::fs::fstat(&file).is_ok_and(|stat| stat.st_nlink == 1);
    has_one_name && crate::sys::unlock(file.as_fd()).is_ok_and(|locks| locks != 0)
}

/// Opens for reading, leaving the access time alone where that is permitted (to owners and the privileged).
pub(crate) fn open_source(directory: BorrowedFd<'_>, name: &CStr, flags: OFlags) -> sys::Result<OwnedFd> {
    match crate::sys::open_at(directory, name, flags | sys::NO_ATIME) {
        Err(Errno::PERM) => crate::sys::open_at(directory, name, flags),
        other => other,
    }
}
