//! Going through several trees at once, in parallel, without following anything out of them.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::error::Error;
use crate::options::Mounts;
use crate::progress::{Cancel, Progress};
use crate::report::Skipped;
use crate::source::Source;
use crate::sys::{self, Listing, ListingBuffer};
use crate::tree::names::Names;
use crate::tree::node::Node;
use crate::tree::place::identity;
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

struct Task {
    root: usize,
    node: Arc<Node>,
    names: Names,
}

struct Pending {
    root: usize,
    node: Arc<Node>,
    fd: Option<OwnedFd>,
    names: Names,
}

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
            Task { root, node: Node::root(), names }
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
                pending: Vec::new(),
                open_limit: open_directories_per_worker(self.threads, 1),
                buffer: ListingBuffer::new(),
            };
            while let Some(task) = pool.next() {
                worker.pending.push(Pending { root: task.root, node: task.node, fd: None, names: task.names });
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
    pool: &'a Pool<Task>,
    visitor: V,
    pending: Vec<Pending>,
    open_limit: usize,
    buffer: ListingBuffer,
}

impl<V: Visit> Worker<'_, V> {
    fn descend(&mut self) -> Result<(), Error> {
        let mut name = Vec::new();
        while !self.pool.stopped() {
            let Some(mut top) = self.pending.pop() else { return Ok(()) };
            let Some(kind) = top.names.take(&mut name) else { continue };
            let child = CStr::from_bytes_with_nul(&name).unwrap_or_default();
            let opened = self.open_child(&mut top, kind, child);
            let (root, parent) = (top.root, Arc::clone(&top.node));
            if !top.names.is_empty() {
                self.pending.push(top);
            }
            match opened {
                Ok(Some((node, fd, stat))) => self.directory(root, node, fd, &stat)?,
                Ok(None) => {}
                Err(errno) => self.trouble(root, &parent.path_of(child), errno),
            }
            self.stay_within_limit();
            if self.pool.hungry() {
                self.share();
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
        let root = self.walk.roots[parent.root].directory();
        if kind != FileType::Directory {
            // A path that is not a directory.
            let stat = rustix::fs::statat(root, name, AtFlags::SYMLINK_NOFOLLOW)?;
            let path = || self.walk.roots[parent.root].path().to_path_buf();
            let volume = self.walk.volumes.of(root, &rustix::fs::fstat(root)?, path)?;
            let here = Here { root: parent.root, node: &parent.node, fd: root, volume: &volume };
            self.visitor.entry(&here, name, &stat);
            self.walk.progress.add(1, 0);
            return Ok(None);
        }
        if name.is_empty() {
            let fd = parent.node.open_source(root)?;
            let stat = rustix::fs::fstat(&fd)?;
            return Ok(Some((Arc::clone(&parent.node), fd, stat)));
        }
        if parent.fd.is_none() {
            parent.fd = Some(parent.node.open_source(root)?);
        }
        let Some(above) = &parent.fd else { return Ok(None) };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = match sys::open_at(above, name, flags | sys::NO_ATIME, Mode::empty()) {
            Err(Errno::PERM) => sys::open_at(above, name, flags, Mode::empty())?,
            other => other?,
        };
        let stat = rustix::fs::fstat(&fd)?;
        if self.walk.mounts == Mounts::Stay && identity(&stat).0 != identity(self.walk.roots[parent.root].stat()).0 {
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
        if !below.is_empty() {
            self.pending.push(Pending { root, node, fd: Some(fd), names: below });
        }
        Ok(())
    }

    fn trouble(&self, root: usize, below: &Path, errno: Errno) {
        self.walk.troubles.add(self.walk.full_path(root, below), reason(errno));
    }

    /// Gives half of the directories nearest to the root to a worker that has none.
    fn share(&mut self) {
        let alone = self.pending.len() == 1;
        let Some(lowest) = self.pending.first_mut() else { return };
        if alone && !lowest.names.are_several() {
            return;
        }
        let names = lowest.names.split();
        let (root, node) = (lowest.root, Arc::clone(&lowest.node));
        if lowest.names.is_empty() {
            self.pending.remove(0);
        }
        self.pool.give(Task { root, node, names });
    }

    /// Closes the directories nearest to the root, which will be needed last.
    fn stay_within_limit(&mut self) {
        let open = self.pending.iter().filter(|pending| pending.fd.is_some()).count();
        let mut beyond = open.saturating_sub(self.open_limit);
        for pending in &mut self.pending {
            if beyond == 0 {
                break;
            }
            beyond -= usize::from(pending.fd.take().is_some());
        }
    }
}
