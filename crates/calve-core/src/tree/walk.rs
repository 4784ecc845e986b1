//! Parallel walks through trees, which follow nothing out of them.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::error::Error;
use crate::progress::CancelToken;
use crate::report::SkippedEntry;
use crate::sys::{self, Listing, ListingBuffer};
use crate::vocabulary::reason::SkipReason;

use super::location::DIRECTORY;
use super::node::{Names, Node, above, node_of, open_source};
use super::pending_stack::{PendingDirectories, PendingStack};
use super::pool::{Pool, open_directories_per_worker};

/// One worker of [`crate::internal::scan_tree`].
pub trait Visitor: Send {
    /// Receives an entry of `folder`. The answer counts for directories.
    fn entry(&mut self, folder: &Folder<'_>, name: &CStr, kind: EntryKind) -> Descent;

    /// Returns whether to receive an entry of `folder`. Asked where names are known without opening directories.
    fn wants(&self, _folder: &Path, _name: &CStr, _kind: EntryKind) -> bool {
        true
    }
}

/// The kind of a changed entry. Other entries are FIFOs, sockets and devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename = "ChangedKind", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum EntryKind {
    File,
    Directory,
    Symlink,
    Other,
}

impl From<FileType> for EntryKind {
    fn from(kind: FileType) -> Self {
        match kind {
            FileType::Directory => Self::Directory,
            FileType::RegularFile => Self::File,
            FileType::Symlink => Self::Symlink,
            _ => Self::Other,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Descent {
    Yes,
    No,
}

pub struct Folder<'a> {
    /// Index of its root among the walk's roots.
    pub(crate) tree: usize,
    pub(crate) node: &'a Arc<Node>,
    /// The directory that the walk began with.
    pub root: BorrowedFd<'a>,
    /// This directory, open for reading.
    pub directory: BorrowedFd<'a>,
    /// Path below the root; empty for the root.
    pub path: &'a Path,
}

#[derive(Debug)]
pub struct ScanReport<V> {
    pub visitors: Vec<V>,
    pub entries: u64,
    /// Unreadable entries, and why.
    pub skipped: Vec<SkippedEntry>,
}

/// Returns the start for a path below `root`. `None` if nothing is there, and for paths that do not go down.
pub(crate) fn start_at(root: BorrowedFd<'_>, path: &Path) -> Option<Start> {
    let (directory, name) = above(path.strip_prefix(".").unwrap_or(path))?;
    let node = node_of(directory);
    let parent = node.open(root, sys::PATH_ONLY).ok()?;
    let stat = sys::stat_at(&parent, &*name).ok()?;
    let names = Names::from([(sys::kind(stat), name)]);
    Some(Start { node, open: None, names, more: Position { tree: 0, visited: false } })
}

pub(crate) fn reason(errno: Errno) -> SkipReason {
    match errno {
        Errno::ACCESS | Errno::PERM => SkipReason::PermissionDenied,
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::STALE => SkipReason::Changed,
        Errno::MFILE | Errno::NFILE => SkipReason::TooManyOpenFiles,
        Errno::IO => SkipReason::DeviceError,
        Errno::AGAIN | Errno::CANCELED => SkipReason::Leased,
        _ => SkipReason::CannotBeRead,
    }
}

/// One worker of [`walk`]. Errors do not end the walk.
pub(crate) trait Walker: Send {
    /// Opens a directory in `folder` for reading. `None` leaves it out.
    fn open(&mut self, folder: &Folder<'_>, name: &CStr) -> sys::Result<Option<OwnedFd>> {
        open_source(folder.directory, name, DIRECTORY).map(Some)
    }

    /// Enters an open directory. Its entries follow on the same worker, unless this returns an error.
    fn directory(&mut self, _folder: &Folder<'_>) -> sys::Result<()> {
        Ok(())
    }

    fn entry(&mut self, folder: &Folder<'_>, name: &CStr, kind: FileType) -> Descent;

    fn listed(&mut self, _entries: u64) {}

    /// Follows the entries of an open directory, before those below: all of them unless an error or the end came first.
    fn finished(&mut self, _folder: &Folder<'_>) {}

    /// Returns whether it has seen enough, which ends the walk for all workers.
    fn is_over(&self) -> bool {
        false
    }

    /// Receives an unreadable entry, by its path below the root of its tree.
    fn failed(&mut self, tree: usize, path: PathBuf, errno: Errno);
}

pub(crate) type Start = PendingDirectories<OwnedFd, Position>;

#[derive(Clone, Copy)]
pub(crate) struct Position {
    tree: usize,
    /// The walker has received the names, all of directories.
    visited: bool,
}

/// Returns a start for a whole tree with its root, whose name is empty.
pub(crate) fn whole_tree(tree: usize) -> Start {
    let names = Names::from([(FileType::Directory, CString::default())]);
    Start { node: Node::root(), open: None, names, more: Position { tree, visited: true } }
}

/// Walks through everything below `starts`, in the trees at `roots`. Returns the workers' walkers.
pub(crate) fn walk<W: Walker>(
    roots: &[BorrowedFd<'_>],
    starts: Vec<Start>,
    threads: usize,
    cancel: &CancelToken,
    walker: impl Fn() -> W + Sync,
) -> Result<Vec<W>, Error> {
    let pool = Pool::new(threads, cancel.clone());
    let mut starts = starts.into_iter();
    let Some(first) = starts.next() else { return Ok(Vec::new()) };
    starts.for_each(|start| pool.give(start));
    pool.run(first, |pool| {
        let mut worker = WalkWorker {
            pool,
            roots,
            walker: walker(),
            pending: PendingStack::new(open_directories_per_worker(threads, 1)),
            buffer: ListingBuffer::new(),
        };
        while let Some(task) = pool.next() {
            worker.pending.push(task);
            worker.descend();
        }
        worker.walker
    })
}

/// Returns whether to stop: another worker has ended the walk, or this one does now.
fn is_over(walker: &impl Walker, pool: &Pool<Start>) -> bool {
    if walker.is_over() {
        pool.stop();
    }
    pool.stopped()
}

struct WalkWorker<'a, W> {
    pool: &'a Pool<Start>,
    roots: &'a [BorrowedFd<'a>],
    walker: W,
    pending: PendingStack<OwnedFd, Position>,
    buffer: ListingBuffer,
}

impl<W: Walker> WalkWorker<'_, W> {
    fn descend(&mut self) {
        while !is_over(&self.walker, self.pool) {
            let Some(mut top) = self.pending.pop() else { return };
            let Some((kind, child)) = top.names.pop_front() else { continue };
            let opened = self.open_child(&mut top, kind, &child);
            let (tree, parent) = (top.more.tree, Arc::clone(&top.node));
            self.pending.push(top);
            match opened {
                Ok(Some((node, fd))) => self.directory(tree, node, fd),
                Ok(None) => {}
                Err(errno) => self.walker.failed(tree, parent.path_of(&child), errno),
            }
            self.pending.stay_within_limit();
            if self.pool.hungry()
                && let Some(part) = self.pending.part()
            {
                self.pool.give(part);
            }
        }
    }

    /// Opens an entry below `parent`. Returns `None` if it is no directory or is left out.
    fn open_child(
        &mut self,
        parent: &mut Start,
        kind: FileType,
        name: &CStr,
    ) -> sys::Result<Option<(Arc<Node>, OwnedFd)>> {
        let Position { tree, visited } = parent.more;
        let root = self.roots[tree];
        if name.is_empty() {
            return Ok(Some((Arc::clone(&parent.node), parent.node.open_source(root)?)));
        }
        let (node, above) = parent.opened(|node| node.open_source(root))?;
        // Only a name that the walker has not received needs the path.
        let path = if visited { PathBuf::new() } else { node.path() };
        let folder = Folder { tree, node, root, directory: above.as_fd(), path: &path };
        if !visited {
            self.walker.listed(1);
            if self.walker.entry(&folder, name, kind) == Descent::No || kind != FileType::Directory {
                return Ok(None);
            }
        }
        let opened = self.walker.open(&folder, name)?;
        Ok(opened.map(|fd| (Node::child(node, name), fd)))
    }

    fn directory(&mut self, tree: usize, node: Arc<Node>, fd: OwnedFd) {
        let mut below = Names::default();
        let path = node.path();
        let folder = Folder { tree, node: &node, root: self.roots[tree], directory: fd.as_fd(), path: &path };
        let listed = self.walker.directory(&folder).and_then(|()| self.list(&folder, &mut below));
        if let Err(errno) = listed {
            self.walker.failed(tree, path, errno);
        }
        let more = Position { tree, visited: true };
        self.pending.push(Start { node, open: Some(fd), names: below, more });
    }

    fn list(&mut self, folder: &Folder<'_>, below: &mut Names) -> sys::Result<()> {
        let mut entries = 0;
        let mut listing = Listing::new(folder.directory, &mut self.buffer)?;
        let result = loop {
            let entry = match listing.next().filter(|_| !is_over(&self.walker, self.pool)) {
                Some(Ok(entry)) => entry,
                Some(Err(errno)) => break Err(errno),
                None => break Ok(()),
            };
            match sys::kind_of(folder.directory, entry.name, entry.kind) {
                Ok(kind) => {
                    entries += 1;
                    if self.walker.entry(folder, entry.name, kind) == Descent::Yes && kind == FileType::Directory {
                        below.push_back((kind, entry.name.to_owned()));
                    }
                }
                Err(errno) => self.walker.failed(folder.tree, folder.node.path_of(entry.name), errno),
            }
        };
        self.walker.listed(entries);
        self.walker.finished(folder);
        result
    }
}
