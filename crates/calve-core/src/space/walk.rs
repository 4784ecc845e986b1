//! Going through several trees at once, in parallel, without following anything out of them.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{AtFlags, FileType, OFlags, Stat};
use rustix::io::Errno;

use crate::error::Error;
use crate::options::Mounts;
use crate::progress::{Cancel, Progress};
use crate::report::Skipped;
use crate::source::Source;
use crate::sys::{self, Listing, ListingBuffer};
use crate::tree::ahead::{self, Ahead};

use crate::tree::location::identity;
use crate::tree::names::Names;
use crate::tree::node::{Node, open_source};
use crate::tree::pool::{Pool, open_directories_per_worker};

use super::volumes::{Volume, Volumes};

/// What one worker does with what it finds. Nothing that one of these meets ends the walk.
pub(super) trait Visit: Send {
    /// A directory was opened. Its entries follow, on the same worker.
    fn directory(&mut self, here: &Here<'_>, stat: &Stat);
    /// Anything else.
    fn entry(&mut self, here: &Here<'_>, name: &CStr, stat: &Stat);
}

/// The directory that is being read.
pub(super) struct Here<'a> {
    /// Which of the paths given.
    pub(super) root: usize,
    pub(super) node: &'a Arc<Node>,
    pub(super) fd: BorrowedFd<'a>,
    pub(super) volume: &'a Arc<Volume>,
}

pub(super) struct Walk<'a> {
    pub(super) roots: &'a [Source],
    pub(super) volumes: &'a Volumes,
    pub(super) threads: usize,
    pub(super) mounts: Mounts,
    pub(super) progress: &'a Progress,
    pub(super) cancel: &'a Cancel,
    pub(super) troubles: &'a Troubles,
}

/// What could not be looked at.
#[derive(Default)]
pub(super) struct Troubles(Mutex<(u64, Vec<Skipped>)>);

impl Troubles {
    /// The list is cut here; the number is not.
    const MOST: usize = 1000;

    pub(super) fn add(&self, path: PathBuf, reason: &'static str) {
        let mut troubles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        troubles.0 += 1;
        if troubles.1.len() < Self::MOST {
            troubles.1.push(Skipped { path, reason });
        }
    }

    pub(super) fn take(&self) -> (u64, Vec<Skipped>) {
        let mut troubles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        troubles.1.sort_by(|a, b| a.path.cmp(&b.path));
        std::mem::take(&mut troubles)
    }
}

/// A word for why something could not be looked at.
pub(super) fn reason(errno: Errno) -> &'static str {
    match errno {
        Errno::ACCESS | Errno::PERM => "permission denied",
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::STALE => "it changed meanwhile",
        Errno::MFILE | Errno::NFILE => "too many open files",
        Errno::IO => "input/output error",
        Errno::AGAIN | Errno::CANCELED => "another program holds a lease on it",
        _ => "it cannot be read",
    }
}

/// `more`: which of the paths given.
type Pending = ahead::Pending<OwnedFd, usize>;

impl Walk<'_> {
    /// Visits everything, and gives back what the workers' visitors have become.
    pub(super) fn run<V: Visit>(&self, visitor: impl Fn() -> V + Sync) -> Result<Vec<V>, Error> {
        let pool = Pool::new(self.threads, self.cancel.clone());
        let mut tasks = self.roots.iter().enumerate().map(|(root, source)| {
            let mut names = Names::default();
            // The root itself: an empty name for a directory, its own for anything else.
            match source.single() {
                None => names.push(FileType::Directory, c""),
                Some((name, _)) => names.push(FileType::RegularFile, name),
            }
            Pending { node: Node::root(), open: None, names, more: root }
        });
        let Some(first) = tasks.next() else { return Ok(Vec::new()) };
        for task in tasks {
            pool.give(task);
        }
        pool.run(first, |pool| {
            let mut worker = Worker {
                walk: self,
                pool,
                visitor: visitor(),
                ahead: Ahead::new(open_directories_per_worker(self.threads, 1)),
                buffer: ListingBuffer::new(),
            };
            while let Some(task) = pool.next() {
                worker.ahead.push(task);
                if let Err(error) = worker.descend() {
                    pool.fail(error);
                }
            }
            worker.visitor
        })
    }

    pub(super) fn full_path(&self, root: usize, below: &Path) -> PathBuf {
        full_path(&self.roots[root], below)
    }
}

/// The path to show for something below a root.
pub(super) fn full_path(root: &Source, below: &Path) -> PathBuf {
    if root.single().is_some() || below.as_os_str().is_empty() {
        return root.path().to_path_buf();
    }
    root.path().join(below)
}

struct Worker<'a, V> {
    walk: &'a Walk<'a>,
    pool: &'a Pool<Pending>,
    visitor: V,
    ahead: Ahead<OwnedFd, usize>,
    buffer: ListingBuffer,
}

impl<V: Visit> Worker<'_, V> {
    fn descend(&mut self) -> Result<(), Error> {
        let mut name = Vec::new();
        while !self.pool.stopped() {
            let Some(mut top) = self.ahead.pop() else { return Ok(()) };
            let Some(kind) = top.names.take(&mut name) else { continue };
            let child = CStr::from_bytes_with_nul(&name).unwrap_or_default();
            let opened = self.open_child(&mut top, kind, child);
            let (root, parent) = (top.more, Arc::clone(&top.node));
            self.ahead.push(top);
            match opened {
                Ok(Some((node, fd, stat))) => self.directory(root, node, fd, &stat)?,
                Ok(None) => {}
                Err(errno) => self.trouble(root, &parent.path_of(child), errno),
            }
            self.ahead.stay_within_limit();
            if self.pool.hungry()
                && let Some(part) = self.ahead.part()
            {
                self.pool.give(part);
            }
        }
        Ok(())
    }

    /// `None` when it was no directory, or is not to be entered.
    fn open_child(
        &mut self,
        parent: &mut Pending,
        kind: FileType,
        name: &CStr,
    ) -> sys::Result<Option<(Arc<Node>, OwnedFd, Stat)>> {
        let root = self.walk.roots[parent.more].directory();
        if kind != FileType::Directory {
            // A path that is not a directory.
            let stat = rustix::fs::statat(root, name, AtFlags::SYMLINK_NOFOLLOW)?;
            let path = || self.walk.roots[parent.more].path().to_path_buf();
            let volume = self.walk.volumes.of(root, &rustix::fs::fstat(root)?, path)?;
            let here = Here { root: parent.more, node: &parent.node, fd: root, volume: &volume };
            self.visitor.entry(&here, name, &stat);
            self.walk.progress.add(1, 0);
            return Ok(None);
        }
        if name.is_empty() {
            let fd = parent.node.open_source(root)?;
            let stat = rustix::fs::fstat(&fd)?;
            return Ok(Some((Arc::clone(&parent.node), fd, stat)));
        }
        if parent.open.is_none() {
            parent.open = Some(parent.node.open_source(root)?);
        }
        let Some(above) = &parent.open else { return Ok(None) };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = open_source(above.as_fd(), name, flags)?;
        let stat = rustix::fs::fstat(&fd)?;
        if self.walk.mounts == Mounts::Stay && identity(&stat).0 != identity(self.walk.roots[parent.more].stat()).0 {
            return Ok(None);
        }
        Ok(Some((Node::child(&parent.node, name), fd, stat)))
    }

    fn directory(&mut self, root: usize, node: Arc<Node>, fd: OwnedFd, stat: &Stat) -> Result<(), Error> {
        let mut below = Names::default();
        let volume = match self.walk.volumes.of(fd.as_fd(), stat, || self.walk.full_path(root, &node.path())) {
            Ok(volume) => volume,
            Err(errno) => {
                self.trouble(root, &node.path(), errno);
                return Ok(());
            }
        };
        let here = Here { root, node: &node, fd: fd.as_fd(), volume: &volume };
        self.visitor.directory(&here, stat);
        let mut entries = 1;
        let mut buffer = std::mem::replace(&mut self.buffer, ListingBuffer::empty());
        let mut unreadable: Vec<(CString, Errno)> = Vec::new();
        match Listing::new(fd.as_fd(), &mut buffer) {
            Err(errno) => unreadable.push((c"".into(), errno)),
            Ok(mut listing) => {
                while let Some(entry) = listing.next() {
                    if self.pool.stopped() {
                        break;
                    }
                    let entry = match entry {
                        Ok(entry) => entry,
                        Err(errno) => {
                            unreadable.push((c"".into(), errno));
                            break;
                        }
                    };
                    if entry.kind == FileType::Directory {
                        below.push(FileType::Directory, entry.name);
                        continue;
                    }
                    match rustix::fs::statat(&fd, entry.name, AtFlags::SYMLINK_NOFOLLOW) {
                        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                            below.push(FileType::Directory, entry.name);
                        }
                        Ok(stat) => {
                            self.visitor.entry(&here, entry.name, &stat);
                            entries += 1;
                        }
                        Err(errno) => unreadable.push((entry.name.to_owned(), errno)),
                    }
                }
            }
        }
        self.buffer = buffer;
        for (name, errno) in unreadable {
            let path = if name.is_empty() { node.path() } else { node.path_of(&name) };
            self.trouble(root, &path, errno);
        }
        self.walk.progress.add(entries, 0);
        self.ahead.push(Pending { node, open: Some(fd), names: below, more: root });
        Ok(())
    }

    fn trouble(&self, root: usize, below: &Path, errno: Errno) {
        self.walk.troubles.add(self.walk.full_path(root, below), reason(errno));
    }
}
