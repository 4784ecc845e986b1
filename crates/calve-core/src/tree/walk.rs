//! Going through the names of a tree in parallel, without looking at what they stand for.

use std::ffi::{CStr, CString, OsStr};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::error::Error;
use crate::operation::Operation;
use crate::progress::Cancel;
use crate::report::Skipped;
use crate::sys::{self, Listing, ListingBuffer};

use super::ahead::{self, Ahead};
use super::names::Names;
use super::node::Node;
use super::pool::{Pool, open_directories_per_worker, thread_count};

/// How to go through a tree.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ScanOptions {
    /// Only these entries, by their paths below the root. Empty: everything.
    pub below: Vec<PathBuf>,
    /// How many threads; by default as many as there are processors, at most 8.
    pub threads: Option<NonZeroUsize>,
    /// Ends the scan early.
    pub cancel: Cancel,
}

/// What one worker of [`scan_tree`] does with the names it comes across.
pub trait Visitor: Send {
    /// An entry of `folder`. The answer counts for directories.
    fn entry(&mut self, folder: &Folder<'_>, name: &CStr, kind: EntryKind) -> Descend;
}

/// What a directory says an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symlink.
    Symlink,
    /// A FIFO, a socket or a device.
    Other,
}

/// Whether to go into a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Descend {
    /// Its entries are visited too.
    Yes,
    /// It is left alone.
    No,
}

/// An open directory of the tree.
pub struct Folder<'a> {
    root: BorrowedFd<'a>,
    directory: BorrowedFd<'a>,
    path: &'a Path,
}

impl Folder<'_> {
    /// The directory that the scan began with.
    pub fn root(&self) -> BorrowedFd<'_> {
        self.root
    }

    /// This directory, open for reading.
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.directory
    }

    /// Its path below the root; empty for the root.
    pub fn path(&self) -> &Path {
        self.path
    }
}

/// What [`scan_tree`] came to.
#[derive(Debug)]
#[non_exhaustive]
pub struct Scanned<V> {
    /// What the workers' visitors have become.
    pub visitors: Vec<V>,
    /// How many entries were come across.
    pub entries: u64,
    /// What could not be looked at, and why.
    pub skipped: Vec<Skipped>,
}

/// Visits every entry below `root`, each once, by several threads. No symlink is followed and no mount is crossed. Only directories
/// are opened; what is not there any more is passed over.
pub fn scan_tree<V: Visitor>(
    root: &Path,
    options: &ScanOptions,
    visitor: impl Fn() -> V + Sync,
) -> Result<Scanned<V>, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = sys::open_at(CWD, root, flags, Mode::empty());
    let root_fd = opened.map_err(|errno| Error::io(Operation::OpenDirectory, root, errno))?;
    let threads = thread_count(options.threads);
    let pool = Pool::new(threads, options.cancel.clone());
    let skipped = Mutex::new(Vec::new());
    let mut tasks = beginnings(root_fd.as_fd(), &options.below).into_iter();
    let Some(first) = tasks.next() else {
        return Ok(Scanned { visitors: Vec::new(), entries: 0, skipped: Vec::new() });
    };
    tasks.for_each(|task| pool.give(task));
    let workers = pool.run(first, |pool| {
        let mut worker = Worker {
            pool,
            root: root_fd.as_fd(),
            visitor: visitor(),
            ahead: Ahead::new(open_directories_per_worker(threads, 1)),
            buffer: ListingBuffer::new(),
            entries: 0,
            skipped: &skipped,
        };
        while let Some(task) = pool.next() {
            worker.ahead.push(task);
            worker.descend();
        }
        (worker.visitor, worker.entries)
    })?;
    let entries = workers.iter().map(|(_, entries)| entries).sum();
    let visitors = workers.into_iter().map(|(visitor, _)| visitor).collect();
    let mut skipped: Vec<Skipped> = skipped.into_inner().unwrap_or_else(PoisonError::into_inner);
    skipped.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Scanned { visitors, entries, skipped })
}

/// The first pieces of work: the root (an empty name), or each entry asked for.
fn beginnings(root: BorrowedFd<'_>, below: &[PathBuf]) -> Vec<Pending> {
    if below.is_empty() {
        let mut names = Names::default();
        names.push(FileType::Directory, c"");
        return vec![Pending { node: Node::root(), open: None, names, more: true }];
    }
    below.iter().filter_map(|path| beginning(root, path)).collect()
}

/// `None` for what is not there, and for a path that does not go down.
fn beginning(root: BorrowedFd<'_>, path: &Path) -> Option<Pending> {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(CString::new(name.as_bytes()).ok()?),
            Component::CurDir => {}
            _ => return None,
        }
    }
    let (last, above) = parts.split_last()?;
    let node = above.iter().fold(Node::root(), |node, name| Node::child(&node, name));
    let parent = node.open(root, sys::PATH_ONLY).ok()?;
    let stat = rustix::fs::statat(&parent, last.as_c_str(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let mut names = Names::default();
    names.push(FileType::from_raw_mode(stat.st_mode), last);
    Some(Pending { node, open: None, names, more: false })
}

/// `more`: whether the visitor has seen the names, which then are of directories.
type Pending = ahead::Pending<OwnedFd, bool>;

struct Worker<'a, V> {
    pool: &'a Pool<Pending>,
    root: BorrowedFd<'a>,
    visitor: V,
    ahead: Ahead<OwnedFd, bool>,
    buffer: ListingBuffer,
    entries: u64,
    skipped: &'a Mutex<Vec<Skipped>>,
}

impl<V: Visitor> Worker<'_, V> {
    fn descend(&mut self) {
        let mut name = Vec::new();
        while !self.pool.stopped() {
            let Some(mut top) = self.ahead.pop() else { return };
            let Some(kind) = top.names.take(&mut name) else { continue };
            let child = CStr::from_bytes_with_nul(&name).unwrap_or_default();
            let opened = self.open_child(&mut top, kind, child);
            let parent = Arc::clone(&top.node);
            self.ahead.push(top);
            match opened {
                Ok(Some((node, fd))) => self.directory(node, fd),
                Ok(None) | Err(Errno::XDEV) => {}
                Err(errno) => self.skip(parent.path_of(child), errno),
            }
            self.ahead.stay_within_limit();
            if self.pool.hungry()
                && let Some(part) = self.ahead.part()
            {
                self.pool.give(part);
            }
        }
    }

    /// `None` when it was no directory, or is not to be gone into.
    fn open_child(
        &mut self,
        parent: &mut Pending,
        kind: FileType,
        name: &CStr,
    ) -> sys::Result<Option<(Arc<Node>, OwnedFd)>> {
        if name.is_empty() {
            return Ok(Some((Arc::clone(&parent.node), parent.node.open_source(self.root)?)));
        }
        if parent.open.is_none() {
            parent.open = Some(parent.node.open_source(self.root)?);
        }
        let Some(above) = &parent.open else { return Ok(None) };
        if !parent.more {
            let path = parent.node.path();
            let folder = Folder { root: self.root, directory: above.as_fd(), path: &path };
            let descend = self.visitor.entry(&folder, name, entry_kind(kind));
            self.entries += 1;
            if kind != FileType::Directory || descend == Descend::No {
                return Ok(None);
            }
        }
        let fd = sys::open_directory_same_mount(above.as_fd(), name)?;
        Ok(Some((Node::child(&parent.node, name), fd)))
    }

    fn directory(&mut self, node: Arc<Node>, fd: OwnedFd) {
        let mut below = Names::default();
        let path = node.path();
        let folder = Folder { root: self.root, directory: fd.as_fd(), path: &path };
        let mut buffer = std::mem::replace(&mut self.buffer, ListingBuffer::empty());
        let mut failed = None;
        match Listing::new(fd.as_fd(), &mut buffer) {
            Err(errno) => failed = Some(errno),
            Ok(mut listing) => {
                while let Some(entry) = listing.next() {
                    let entry = match entry {
                        Ok(entry) => entry,
                        Err(errno) => {
                            failed = Some(errno);
                            break;
                        }
                    };
                    let kind = match entry.kind {
                        FileType::Unknown => match rustix::fs::statat(&fd, entry.name, AtFlags::SYMLINK_NOFOLLOW) {
                            Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                            Err(_) => continue,
                        },
                        kind => kind,
                    };
                    self.entries += 1;
                    let descend = self.visitor.entry(&folder, entry.name, entry_kind(kind));
                    if kind == FileType::Directory && descend == Descend::Yes {
                        below.push(FileType::Directory, entry.name);
                    }
                }
            }
        }
        self.buffer = buffer;
        if let Some(errno) = failed {
            self.skip(path, errno);
        }
        self.ahead.push(Pending { node, open: Some(fd), names: below, more: true });
    }

    fn skip(&self, path: PathBuf, errno: Errno) {
        let reason = match errno {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP => return,
            Errno::ACCESS | Errno::PERM => "permission denied",
            Errno::MFILE | Errno::NFILE => "too many open files",
            Errno::IO => "input/output error",
            _ => "it cannot be read",
        };
        let path = if path.as_os_str().is_empty() { OsStr::new(".").into() } else { path };
        self.skipped.lock().unwrap_or_else(PoisonError::into_inner).push(Skipped { path, reason });
    }
}

fn entry_kind(kind: FileType) -> EntryKind {
    match kind {
        FileType::Directory => EntryKind::Directory,
        FileType::RegularFile => EntryKind::File,
        FileType::Symlink => EntryKind::Symlink,
        _ => EntryKind::Other,
    }
}
