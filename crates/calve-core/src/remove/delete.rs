//! Deleting a tree in parallel. Never leaves the mount it starts on, never follows a link.

use std::ffi::CStr;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::error::{Error, IoContext};
use crate::options::CloneOptions;
use crate::progress::{CancelToken, Progress};
use crate::sys::{self, Listing, ListingBuffer};
use crate::tree::location::{DIRECTORY, Identity, identity};
use crate::tree::node::{Names, Node, above, unlock_file};
use crate::tree::pending_stack::{PendingDirectories, PendingStack};
use crate::tree::pool::{Pool, open_directories_per_worker, thread_count};
use crate::vocabulary::operation::Operation;

#[derive(Clone)]
pub(crate) struct Deletion {
    pub(crate) threads: usize,
    pub(crate) progress: Arc<Progress>,
    pub(crate) cancel: CancelToken,
    /// A file in the root to delete last: the trash's `.gitignore`, which hides the rest.
    pub(crate) last: Option<&'static CStr>,
    /// Makes the caller's own read-only directories writable, and read-only subvolumes.
    pub(crate) opens_up: bool,
    /// Clears flags that forbid deletion (`uchg`), which a clone has from its source, except on files with other names.
    pub(crate) unlocks: bool,
}

impl Deletion {
    pub(crate) fn new(threads: Option<NonZeroUsize>, progress: &Arc<Progress>, cancel: &CancelToken) -> Self {
        let (progress, cancel) = (Arc::clone(progress), cancel.clone());
        Self { threads: thread_count(threads), progress, cancel, last: None, opens_up: true, unlocks: false }
    }

    pub(crate) fn from_options(options: &CloneOptions) -> Self {
        Self::new(options.threads, &options.progress, &options.cancel)
    }

    /// Ignores the caller's cancellation.
    pub(crate) fn uncancelled() -> Self {
        Self::new(None, &Arc::default(), &CancelToken::default())
    }
}

/// Deletes `name` and counts the entries. Goes on after a failure, and returns the first one. `path` is for messages.
pub(crate) fn delete(parent: BorrowedFd<'_>, name: &CStr, path: &Path, deletion: &Deletion) -> Result<u64, Error> {
    let failed = |operation, errno| Error::io(operation, path, errno);
    let refused = match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) => return Ok(1),
        Err(Errno::NOENT) => return Ok(0),
        // EPERM: a directory, by POSIX. EACCES: the parent is not writable, but the directory's entries can go.
        Err(errno @ (Errno::ISDIR | Errno::PERM | Errno::ACCESS)) => errno,
        Err(errno) => return Err(failed(Operation::Remove, errno)),
    };
    match open_for_deletion(parent, name, deletion.opens_up) {
        Ok(root) => empty_and_remove(parent, name, path, root, deletion),
        // Not a directory: an immutable file, or another user's in a sticky directory.
        Err(Errno::NOTDIR | Errno::LOOP) => Err(failed(Operation::Remove, refused)),
        Err(Errno::XDEV) => Err(failed(Operation::Remove, Errno::BUSY)),
        Err(errno) => Err(failed(Operation::OpenDirectory, errno)),
    }
}

pub(crate) fn delete_directory(
    parent: BorrowedFd<'_>,
    name: &CStr,
    path: &Path,
    expected: (u64, u64),
    deletion: &Deletion,
) -> Result<u64, Error> {
    let root = open_for_deletion(parent, name, deletion.opens_up).io(Operation::OpenDirectory, path)?;
    let found = rustix::fs::fstat(&root).io(Operation::Stat, path)?;
    if identity(&found) != expected {
        return Err(Error::StagingLost(path.to_path_buf()));
    }
    empty_and_remove(parent, name, path, root, deletion)
}

fn empty_and_remove(
    parent: BorrowedFd<'_>,
    name: &CStr,
    path: &Path,
    root: OwnedFd,
    deletion: &Deletion,
) -> Result<u64, Error> {
    let on_btrfs = sys::magic(root.as_fd()) == Ok(sys::BTRFS_MAGIC);
    let Some(root) = keep_unless_subvolume(on_btrfs, parent, name, root, deletion.opens_up) else { return Ok(1) };
    let mut deleted = 0;
    for rounds_left in (0..MOST_ROUNDS).rev() {
        let (in_this_round, emptied) = empty(root.as_fd(), path, on_btrfs, deletion)?;
        deleted += in_this_round;
        let remove = |()| rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR).io(Operation::RemoveEmptied, path);
        match emptied.and_then(remove) {
            Ok(()) => break,
            Err(error) if rounds_left > 0 && in_this_round > 0 && is_not_empty(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(deleted + 1)
}

/// Listings may skip names during deletions (seen on macOS): enough for a million entries if they skip every fourth.
const MOST_ROUNDS: usize = 10;

fn is_not_empty(error: &Error) -> bool {
    matches!(error, Error::Io { operation: Operation::RemoveEmptied | Operation::RemoveDirectory, source, .. }
        if source.kind() == std::io::ErrorKind::DirectoryNotEmpty)
}

/// Deletes everything that a listing shows below `root`. Returns the count, and the first obstacle.
fn empty(
    root: BorrowedFd<'_>,
    path: &Path,
    on_btrfs: bool,
    deletion: &Deletion,
) -> Result<(u64, Result<(), Error>), Error> {
    let shared = DeletionState { deletion, root, path, on_btrfs, failure: Mutex::default() };
    let pool = Pool::new(deletion.threads, deletion.cancel.clone());
    let node = Node::root();
    let more = PurgedDirectory { node: Arc::clone(&node), parent: None, identity: None, holders: AtomicUsize::new(1) };
    let everything = PurgedEntries { node, open: None, names: Names::default(), more: Arc::new(more) };
    let counts = pool.run(everything, |pool| {
        sys::private_descriptors(&[root]);
        let pending = PendingStack::new(open_directories_per_worker(deletion.threads, 1));
        let mut worker = DeleteWorker { shared: &shared, pool, listing: ListingBuffer::new(), pending, deleted: 0 };
        while let Some(task) = pool.next() {
            worker.run(task);
        }
        worker.deleted
    })?;
    if let Some(last) = deletion.last {
        let _ = rustix::fs::unlinkat(root, last, AtFlags::empty());
    }
    let failure = shared.failure.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((counts.iter().sum(), failure.map_or(Ok(()), Err)))
}

struct DeletionState<'a> {
    deletion: &'a Deletion,
    root: BorrowedFd<'a>,
    path: &'a Path,
    on_btrfs: bool,
    failure: Mutex<Option<Error>>,
}

/// A directory that is removed by the worker that deletes its last entry.
struct PurgedDirectory {
    node: Arc<Node>,
    parent: Option<Arc<PurgedDirectory>>,
    identity: Option<Identity>,
    /// Its own worker, batches given to others, and directories below that others still work in.
    holders: AtomicUsize,
}

/// Dropping a chain of thousands by recursion would overflow the stack.
impl Drop for PurgedDirectory {
    fn drop(&mut self) {
        let mut next = self.parent.take();
        while let Some(parent) = next {
            next = Arc::into_inner(parent).and_then(|mut purged| purged.parent.take());
        }
    }
}

/// Directories to delete in one that is then deleted too. Empty at first, before the root's are listed.
type PurgedEntries = PendingDirectories<OwnedFd, Arc<PurgedDirectory>>;

/// Reopens a closed directory: from its `child`, or, if that was moved away, from the root, level by level.
fn reopened<'e>(
    entries: &'e mut PurgedEntries,
    child: Option<&OwnedFd>,
    root: BorrowedFd<'_>,
) -> sys::Result<BorrowedFd<'e>> {
    let identity = entries.more.identity;
    let parent = || parent_of(child?.as_fd(), identity?);
    let (_, opened) = entries.opened(|node| parent().map_or_else(|| node.open(root, OFlags::RDONLY), Ok))?;
    Ok(opened.as_fd())
}

fn parent_of(child: BorrowedFd<'_>, expected: Identity) -> Option<OwnedFd> {
    let parent = sys::open_at(child, c"..", DIRECTORY).ok()?;
    let found = rustix::fs::fstat(&parent).ok()?;
    (identity(&found) == expected).then_some(parent)
}

struct DeleteWorker<'p, 'a> {
    shared: &'p DeletionState<'a>,
    pool: &'p Pool<PurgedEntries>,
    listing: ListingBuffer,
    pending: PendingStack<OwnedFd, Arc<PurgedDirectory>>,
    deleted: u64,
}

impl DeleteWorker<'_, '_> {
    fn run(&mut self, task: PurgedEntries) {
        match task.names.is_empty() {
            false => self.pending.keep(task),
            true => match task.node.open(self.shared.root, OFlags::RDONLY) {
                Ok(directory) => self.empty(task.more, directory),
                Err(errno) => self.note(Operation::OpenDirectory, &task.node, None, errno),
            },
        }
        while let Some(mut top) = self.pending.pop() {
            if self.pool.stopped() {
                self.pending.clear();
                return;
            }
            let Some((_, child)) = top.names.pop_front() else {
                self.done(top);
                continue;
            };
            let opened = self.open_child(&mut top, &child);
            let (node, parent) = (Node::child(&top.node, &child), Arc::clone(&top.more));
            self.pending.keep(top);
            if let Some(directory) = opened {
                let identity = rustix::fs::fstat(&directory).ok().map(|stat| identity(&stat));
                let purged = PurgedDirectory { node, parent: Some(parent), identity, holders: AtomicUsize::new(1) };
                self.empty(Arc::new(purged), directory);
            }
            self.pending.stay_within_limit();
            if self.pool.hungry()
                && let Some(part) = self.pending.part()
            {
                part.more.holders.fetch_add(1, Ordering::AcqRel);
                self.pool.give(part);
            }
        }
    }

    fn open_child(&mut self, top: &mut PurgedEntries, name: &CStr) -> Option<OwnedFd> {
        let node = Arc::clone(&top.node);
        let parent = reopened(top, None, self.shared.root);
        let parent = parent.map_err(|errno| self.note(Operation::OpenDirectory, &node, None, errno)).ok()?;
        let opens_up = self.shared.deletion.opens_up;
        let mut opened = open_for_deletion(parent, name, opens_up);
        if opens_up && matches!(opened, Err(Errno::ACCESS)) {
            // The owner may have permission to read this directory but not to search it.
            let _ = rustix::fs::fchmod(parent, Mode::RWXU);
            opened = open_for_deletion(parent, name, opens_up);
        }
        let (operation, errno) = match opened {
            Ok(directory) => {
                let kept = keep_unless_subvolume(self.shared.on_btrfs, parent, name, directory, opens_up);
                self.deleted += u64::from(kept.is_none());
                return kept;
            }
            Err(Errno::NOENT) => return None,
            Err(Errno::XDEV) => (Operation::SkipMount, Errno::BUSY),
            // It has become a link or a file since it was listed.
            Err(Errno::NOTDIR | Errno::LOOP) => match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
                Ok(()) => {
                    self.deleted += 1;
                    return None;
                }
                Err(errno) => (Operation::Remove, errno),
            },
            Err(errno) => (Operation::OpenDirectory, errno),
        };
        self.note(operation, &node, Some(name), errno);
        None
    }

    /// Deletes everything in a directory except directories, which it pushes onto the stack.
    fn empty(&mut self, purged: Arc<PurgedDirectory>, directory: OwnedFd) {
        let before = self.deleted;
        let mut names = Names::default();
        let mut buffer = std::mem::take(&mut self.listing);
        let keep = self.shared.deletion.last.filter(|_| purged.parent.is_none());
        // A directory may be read-only although its owner wants it gone.
        let mut opened_up = !self.shared.deletion.opens_up;
        let unlocks = self.shared.deletion.unlocks;
        if unlocks {
            let _ = sys::unlock(directory.as_fd());
        }
        let mut delete_listed = || -> sys::Result<()> {
            let mut listing = Listing::new(directory.as_fd(), &mut buffer)?;
            while let Some(entry) = listing.next() {
                let entry = entry?;
                if self.pool.stopped() {
                    break;
                }
                if keep == Some(entry.name) {
                    continue;
                }
                if entry.kind == FileType::Directory {
                    names.push_back((entry.kind, entry.name.to_owned()));
                    continue;
                }
                let mut result = rustix::fs::unlinkat(&directory, entry.name, AtFlags::empty());
                if result == Err(Errno::ACCESS) && !opened_up {
                    opened_up = true;
                    let _ = rustix::fs::fchmod(&directory, Mode::RWXU);
                    result = rustix::fs::unlinkat(&directory, entry.name, AtFlags::empty());
                }
                if result == Err(Errno::PERM) && unlocks && unlock_file(directory.as_fd(), entry.name) {
                    result = rustix::fs::unlinkat(&directory, entry.name, AtFlags::empty());
                }
                match result {
                    Ok(()) => self.deleted += 1,
                    Err(Errno::NOENT) => {}
                    // In untyped listings, EPERM may stand for a directory.
                    Err(errno) if errno == Errno::ISDIR || errno == Errno::PERM && entry.kind == FileType::Unknown => {
                        names.push_back((FileType::Directory, entry.name.to_owned()));
                    }
                    Err(errno) => self.note(Operation::Remove, &purged.node, Some(entry.name), errno),
                }
            }
            Ok(())
        };
        if let Err(errno) = delete_listed() {
            self.note(Operation::ReadDirectory, &purged.node, None, errno);
        }
        self.listing = buffer;
        self.shared.deletion.progress.add(self.deleted - before, 0);
        self.pending.keep(PurgedEntries { node: Arc::clone(&purged.node), open: Some(directory), names, more: purged });
    }

    /// Ends a directory whose names are all done. Its last holder removes it.
    fn done(&mut self, PurgedEntries { open, more: purged, .. }: PurgedEntries) {
        let (Some(parent), Some((_, name))) = (&purged.parent, purged.node.parent()) else { return };
        match self.pending.top().filter(|above| Arc::ptr_eq(&above.more, parent)) {
            // Only holders add holders: alone, this worker stays alone.
            Some(above) if purged.holders.load(Ordering::Acquire) == 1 => {
                let removed = reopened(above, open.as_ref(), self.shared.root)
                    .and_then(|directory| remove_directory(directory, name, self.shared.deletion.opens_up));
                self.removed(&purged, removed);
                return;
            }
            // Others still work in it. They answer to the parent, which must wait for them.
            Some(_) => _ = parent.holders.fetch_add(1, Ordering::AcqRel),
            None => {}
        }
        drop(open);
        self.release(purged);
    }

    /// Releases a directory that several workers hold; the last one removes it, and goes on with its parent.
    fn release(&mut self, purged: Arc<PurgedDirectory>) {
        let mut purged = purged;
        while purged.holders.fetch_sub(1, Ordering::AcqRel) == 1 {
            let (Some(parent), Some((above, name))) = (purged.parent.clone(), purged.node.parent()) else { return };
            let removed = above
                .open(self.shared.root, OFlags::RDONLY)
                .and_then(|directory| remove_directory(directory.as_fd(), name, self.shared.deletion.opens_up));
            self.removed(&purged, removed);
            purged = parent;
        }
    }

    fn removed(&mut self, purged: &PurgedDirectory, result: sys::Result<()>) {
        match result {
            Ok(()) => self.deleted += 1,
            Err(Errno::NOENT) => {}
            Err(errno) => self.note(Operation::RemoveDirectory, &purged.node, None, errno),
        }
    }

    /// Keeps the first failure. A non-empty directory only follows from an earlier one.
    fn note(&self, operation: Operation, node: &Node, name: Option<&CStr>, errno: Errno) {
        let mut failure = self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.is_some() {
            return;
        }
        let mut path = self.shared.path.join(node.path());
        if let Some(name) = name {
            path.push(sys::path(name));
        }
        *failure = Some(Error::io(operation, path, errno));
    }
}

/// Opens a directory to empty it. Makes one that its owner made unreadable readable first.
fn open_for_deletion(parent: BorrowedFd<'_>, name: &CStr, opens_up: bool) -> sys::Result<OwnedFd> {
    match sys::open_directory_same_mount(parent, name) {
        Err(Errno::ACCESS) if opens_up => {
            sys::make_accessible(parent, name)?;
            sys::open_directory_same_mount(parent, name)
        }
        other => other,
    }
}

fn remove_directory(parent: BorrowedFd<'_>, name: &CStr, opens_up: bool) -> sys::Result<()> {
    match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
        Err(Errno::ACCESS) if opens_up => {
            rustix::fs::fchmod(parent, Mode::RWXU)?;
            rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
        }
        other => other,
    }
}

/// Deletes a btrfs subvolume and those nested in it, at constant cost. Returns the directory, to be emptied like any
/// other, if it is no subvolume or the caller may not (only root, or with the mount option user_subvol_rm_allowed).
fn keep_unless_subvolume(
    on_btrfs: bool,
    parent: BorrowedFd<'_>,
    name: &CStr,
    directory: OwnedFd,
    opens_up: bool,
) -> Option<OwnedFd> {
    let is_subvolume = on_btrfs
        && rustix::fs::fstat(&directory).and_then(|stat| sys::is_subvolume(directory.as_fd(), &stat)).unwrap_or(false);
    if is_subvolume && destroy_subvolume(parent, name, directory.as_fd(), opens_up).is_ok() {
        return None;
    }
    Some(directory)
}

fn destroy_subvolume(
    parent: BorrowedFd<'_>,
    name: &CStr,
    directory: BorrowedFd<'_>,
    opens_up: bool,
) -> sys::Result<()> {
    let Err(refused) = sys::delete_subvolume(parent, name) else { return Ok(()) };
    if opens_up {
        // Nothing in a read-only subvolume can be deleted.
        let _ = sys::make_subvolume_writable(directory);
    }
    if refused != Errno::NOTEMPTY {
        return Err(refused);
    }
    for nested in sys::nested_subvolumes(directory)? {
        let (above, last) = above(sys::path(&nested)).ok_or(Errno::INVAL)?;
        let mut current = rustix::io::dup(directory)?;
        for name in above {
            current = sys::open_directory_same_mount(current.as_fd(), name)?;
        }
        let inner = sys::open_directory_same_mount(current.as_fd(), &*last)?;
        destroy_subvolume(current.as_fd(), &last, inner.as_fd(), opens_up)?;
    }
    sys::delete_subvolume(parent, name)
}
