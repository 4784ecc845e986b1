//! A directory's place in the tree, as a chain of names: tasks need neither open descriptors nor long paths.

use std::collections::VecDeque;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustix::fs::{FileType, Mode, OFlags, Timestamps};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::sys;

/// Names of entries of one directory, in listing order.
pub(crate) type Names = VecDeque<(FileType, CString)>;

/// Returns the path of an entry below `root`, or of the root itself.
pub(crate) fn full_path(root: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { root.to_path_buf() } else { root.join(below) }
}

/// A directory at or below the root of a walk.
pub(crate) struct Node {
    /// `None` for the root.
    parent: Option<(Arc<Node>, CString)>,
    /// Times and mode given to its copy, for the rare case that they must be set again.
    pub(crate) sealed: OnceLock<(Timestamps, Mode)>,
}

impl Node {
    pub(crate) fn root() -> Arc<Self> {
        Arc::new(Self { parent: None, sealed: OnceLock::new() })
    }

    pub(crate) fn child(parent: &Arc<Self>, name: &CStr) -> Arc<Self> {
        Arc::new(Self { parent: Some((Arc::clone(parent), name.to_owned())), sealed: OnceLock::new() })
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.names().iter().map(|name| sys::path(name)).collect()
    }

    pub(crate) fn path_of(&self, name: &CStr) -> PathBuf {
        let mut path = self.path();
        path.push(sys::path(name));
        path
    }

    pub(crate) fn parent(&self) -> Option<(&Arc<Self>, &CStr)> {
        self.parent.as_ref().map(|(parent, name)| (parent, name.as_c_str()))
    }

    /// Opens this directory below `root`: follows no link, and no path is too long.
    pub(crate) fn open(&self, root: BorrowedFd<'_>, flags: OFlags) -> sys::Result<OwnedFd> {
        /// PATH_MAX of linux/limits.h has room for this many of the longest names.
        const MOST_AT_ONCE: usize = 15;
        let names = self.names();
        // Name by name where one call cannot open several, and to find the cause of a failure.
        open_names(root, &names, flags, MOST_AT_ONCE).or_else(|_| open_names(root, &names, flags, 1))
    }

    /// Opens a source's directory for reading, leaving the access time alone where permitted.
    pub(crate) fn open_source(&self, root: BorrowedFd<'_>) -> sys::Result<OwnedFd> {
        leaving_times(OFlags::RDONLY, |flags| self.open(root, flags))
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

pub(crate) fn node_of(path: &Path) -> Arc<Node> {
    path.components().fold(Node::root(), |node, name| {
        Node::child(&node, &CString::new(name.as_os_str().as_bytes()).unwrap_or_default())
    })
}

/// Returns the directory and name of an entry below the root. `None` for the root, and for paths that do not go down.
pub(crate) fn above(path: &Path) -> Option<(&Path, CString)> {
    let goes_down = path.components().all(|name| matches!(name, Component::Normal(_)));
    let name = CString::new(path.file_name().filter(|_| goes_down)?.as_bytes()).ok()?;
    Some((path.parent().unwrap_or(Path::new("")), name))
}

pub(crate) fn open_above(root: BorrowedFd<'_>, path: &Path, flags: OFlags) -> sys::Result<(OwnedFd, CString)> {
    let (directory, name) = above(path).ok_or(Errno::INVAL)?;
    Ok((node_of(directory).open(root, flags)?, name))
}

/// Opens a directory below `root`, `at_once` names per call.
fn open_names(root: BorrowedFd<'_>, names: &[&CStr], flags: OFlags, at_once: usize) -> sys::Result<OwnedFd> {
    let (mut rest, mut current) = (names, None::<OwnedFd>);
    loop {
        let at = current.as_ref().map_or(root, |fd| fd.as_fd());
        let (first, others) = rest.split_at(at_once.min(rest.len()));
        let flags = if others.is_empty() { flags } else { sys::PATH_ONLY };
        let flags = flags | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let opened = match first {
            [] => sys::open_at(at, c".", flags),
            [name] => sys::open_at(at, *name, flags),
            names => sys::open_beneath(at, &names.iter().map(|name| sys::path(name)).collect::<PathBuf>(), flags),
        };
        if others.is_empty() {
            return opened;
        }
        (rest, current) = (others, Some(opened?));
    }
}

/// Dropping a chain of thousands by recursion would overflow the stack.
impl Drop for Node {
    fn drop(&mut self) {
        let mut next = self.parent.take();
        while let Some((parent, _)) = next {
            next = Arc::into_inner(parent).and_then(|mut node| node.parent.take());
        }
    }
}

/// Clears the flags that forbid deleting a file. Returns whether it had any.
pub(crate) fn unlock_file(parent: BorrowedFd<'_>, name: &CStr) -> bool {
    let Ok(file) = crate::sys::open_at(parent, name, sys::FILE) else { return false };
    let has_one_name = rustix::fs::fstat(&file).is_ok_and(|stat| stat.st_nlink == 1);
    has_one_name && crate::sys::unlock(file.as_fd()).is_ok_and(|locks| locks != 0)
}

pub fn open_source(directory: BorrowedFd<'_>, name: impl Arg + Copy, flags: OFlags) -> sys::Result<OwnedFd> {
    leaving_times(flags, |flags| sys::open_at(directory, name, flags))
}

/// Opens for reading, leaving the access time alone where permitted (to owners and the privileged).
pub(crate) fn leaving_times(flags: OFlags, open: impl Fn(OFlags) -> sys::Result<OwnedFd>) -> sys::Result<OwnedFd> {
    match open(flags | sys::NO_ATIME) {
        Err(Errno::PERM) => open(flags),
        other => other,
    }
}
