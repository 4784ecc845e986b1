//! Where a directory is in the tree: a chain of names, so that a task needs no open descriptor and no long path.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use rustix::fs::{Mode, OFlags, Timestamps};
use rustix::io::Errno;

use crate::sys;

/// One directory below (or at) the root of a walk.
pub(crate) struct Node {
    /// `None` for the root.
    place: Option<(Arc<Node>, CString)>,
    /// The times and the mode its copy was given, for the rare case that they must be set again.
    pub(crate) sealed: OnceLock<(Timestamps, Mode)>,
}

impl Node {
    pub(crate) fn root() -> Arc<Self> {
        Arc::new(Self { place: None, sealed: OnceLock::new() })
    }

    pub(crate) fn child(parent: &Arc<Self>, name: &CStr) -> Arc<Self> {
        Arc::new(Self { place: Some((Arc::clone(parent), name.to_owned())), sealed: OnceLock::new() })
    }

    /// The path relative to the root.
    pub(crate) fn path(&self) -> PathBuf {
        self.names().iter().map(|name| OsStr::from_bytes(name.to_bytes())).collect()
    }

    /// The path of an entry of this directory, relative to the root.
    pub(crate) fn path_of(&self, name: &CStr) -> PathBuf {
        let mut path = self.path();
        path.push(OsStr::from_bytes(name.to_bytes()));
        path
    }

    pub(crate) fn parent(&self) -> Option<(&Arc<Self>, &CStr)> {
        self.place.as_ref().map(|(parent, name)| (parent, name.as_c_str()))
    }

    /// Opens this directory below `root`, one name at a time: no link is followed and no path can be too long.
    pub(crate) fn open(&self, root: BorrowedFd<'_>, flags: OFlags) -> sys::Result<OwnedFd> {
        let common = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let names = self.names();
        let Some((last, above)) = names.split_last() else {
            return crate::sys::open_at(root, c".", flags | common, Mode::empty());
        };
        let mut current: Option<OwnedFd> = None;
        for name in above {
            let at = current.as_ref().map_or(root, |fd| fd.as_fd());
            current = Some(crate::sys::open_at(at, *name, sys::PATH_ONLY | common, Mode::empty())?);
        }
        let at = current.as_ref().map_or(root, |fd| fd.as_fd());
        crate::sys::open_at(at, *last, flags | common, Mode::empty())
    }

    /// [`Self::open`] for reading, in the source: leaves the access time alone where that is permitted.
    pub(crate) fn open_source(&self, root: BorrowedFd<'_>) -> sys::Result<OwnedFd> {
        match self.open(root, OFlags::RDONLY | sys::NO_ATIME) {
            Err(Errno::PERM) => self.open(root, OFlags::RDONLY),
            other => other,
        }
    }

    /// From the root down.
    fn names(&self) -> Vec<&CStr> {
        let mut names = Vec::new();
        let mut node = self;
        while let Some((parent, name)) = &node.place {
            names.push(name.as_c_str());
            node = parent;
        }
        names.reverse();
        names
    }
}

/// A chain of thousands must not be dropped by recursion.
impl Drop for Node {
    fn drop(&mut self) {
        let mut next = self.place.take();
        while let Some((parent, _)) = next {
            next = Arc::into_inner(parent).and_then(|mut node| node.place.take());
        }
    }
}
