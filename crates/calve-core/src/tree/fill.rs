//! Filling an empty staged tree from a source: the per-file engine, shared by `reflink`, `copy` and `hardlink`.
//!
//! A task is a directory. A worker reads it once, makes every entry in it, gives the copy its final metadata, and only then goes
//! into the directories below, so nothing has to be visited twice and no directory has to stay open for its children. Tasks
//! hold names, not descriptors: a descriptor is private to its worker, and can be opened again from the root.

pub(crate) mod contents;
mod descend;
pub(crate) mod entry;
mod groups;
mod links;
mod log;
pub(crate) mod metadata;
pub(crate) mod room;
mod sets;

use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FileType, Mode, OFlags, RawMode, Stat};
use rustix::io::Errno;

use self::contents::{Contents, Flush, Mover};
use self::descend::{DirectoryToFill, NamedSubdirectories};
use self::groups::AllocationGroups;
use self::links::Links;
use self::metadata::{Fault, Keeper, NewFileDefaults, Side, Target, same_version, times};
use self::sets::SetsOfFill;
use super::ahead::PendingStack;
use super::exclude::Exclusions;
use super::location::identity;
use super::names::Names;
use super::node::Node;
use super::notes::Notes;
use super::pool::{Pool, open_directories_per_worker};
use super::stable::Moment;
use crate::choice::Strategy;
use crate::error::{Error, TemplateError};
use crate::hidden::is_calves_own;
use crate::operation::Operation;
use crate::options::{CloneOptions, Decision, Mounts, UnreadableEntry};
use crate::reason::SkipReason;
use crate::report::{Bytes, Entries};
use crate::sys::{self, Listing, ListingBuffer, XattrTarget};

/// How the regular files of a tree are made.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Files<'a> {
    Clone(Contents),
    Hardlink,
    /// By one call each, and so are the `whole` directories (relative to the source, with the number of entries in each).
    Clonefile {
        whole: &'a HashMap<PathBuf, u64>,
    },
}

/// One filling: what all workers know.
pub(crate) struct Fill<'a> {
    pub(crate) src_root: BorrowedFd<'a>,
    pub(crate) dst_root: BorrowedFd<'a>,
    pub(crate) src_path: &'a Path,
    pub(crate) dst_path: &'a Path,
    pub(crate) paths: Paths,
    pub(crate) files: Files<'a>,
    /// The caller insists on shared extents: a file that cannot be shared ends the run.
    pub(crate) strict: bool,
    pub(crate) exclude: &'a Exclusions,
    /// The source is the upper directory of an overlay.
    pub(crate) is_upper: bool,
    pub(crate) created: NewFileDefaults,
    /// The destination knows files without copy-on-write (btrfs).
    pub(crate) keeps_nocow: bool,
    pub(crate) threads: usize,
    pub(crate) notes: &'a Notes,
    pub(crate) options: &'a CloneOptions,
}

/// The entries that were made.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct FillTally {
    pub(crate) entries: Entries,
    pub(crate) bytes: Bytes,
    pub(crate) inlined_bytes: u64,
}

/// The state that workers share while they run.
struct FillState {
    links: Links,
    flush: Flush,
    groups: AllocationGroups,
    /// The staged root: should the walk meet it, the destination is inside the source.
    staged: (u64, u64),
    /// Directories that their owner could not change any more: they are closed when everything below is done.
    closed: Mutex<Vec<ClosedDirectory>>,
    sets: SetsOfFill,
}

enum Task {
    /// Directories that are in `parent` and have been made in its copy.
    Directories { parent: Arc<Node>, names: Names },
    /// One entry of the root, and nothing else.
    Single { name: CString, kind: FileType },
    /// Some entries of one very large directory.
    Entries { large: Arc<LargeDirectory>, names: Names },
}

/// A directory whose entries are made in batches, by several workers; the last one finishes it.
struct LargeDirectory {
    node: Arc<Node>,
    stat: Stat,
    unfinished: AtomicUsize,
    /// Shared by all workers.
    held_back: Mutex<Names>,
}

impl LargeDirectory {
    fn new(node: Arc<Node>, stat: Stat) -> Arc<Self> {
        Arc::new(Self { node, stat, unfinished: AtomicUsize::new(1), held_back: Mutex::default() })
    }
}

/// The entries of a directory that are left for later.
#[derive(Default)]
struct Later {
    /// Directories to fill, which have been made.
    below: Names,
    /// Files that belong together.
    held_back: Names,
}

/// A directory of the source and its copy.
struct Pair {
    src: OwnedFd,
    dst: OwnedFd,
}

/// A directory that is being filled.
#[derive(Clone, Copy)]
struct BorrowedPair<'d> {
    node: &'d Arc<Node>,
    src: BorrowedFd<'d>,
    dst: BorrowedFd<'d>,
}

/// The meaning of the two paths for messages.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Paths {
    /// The roots; entries are below them.
    Below,
    /// The one entry itself.
    Same,
}

/// The entries to make in the destination's root.
pub(crate) enum Scope {
    /// Everything that is in the source's root.
    Tree,
    /// The entry of that name, which is not a directory.
    Single(CString, FileType),
    /// These entries of directories that are there, and the metadata of those directories.
    Parts(Vec<FillPart>),
}

/// Some entries of one directory. Its copy is there, and is as one that was just made but for what it contains.
pub(crate) struct FillPart {
    pub(crate) node: Arc<Node>,
    pub(crate) stat: Stat,
    pub(crate) names: Names,
}

/// Fills `dst_root`, an empty directory. Its own metadata is left to the caller, who publishes it.
pub(crate) fn fill(fill: &Fill<'_>, scope: Scope) -> Result<FillTally, Error> {
    let staged = rustix::fs::fstat(fill.dst_root).map_err(|errno| Error::io(Operation::Stat, fill.dst_path, errno))?;
    let shared = FillState {
        links: Links::default(),
        flush: match scope {
            Scope::Tree | Scope::Parts(_) => Flush::default(),
            Scope::Single(..) => Flush::never(),
        },
        groups: AllocationGroups::of(fill.dst_root, fill.threads),
        staged: identity(&staged),
        closed: Mutex::default(),
        sets: SetsOfFill::begin(),
    };
    let pool = Pool::new(fill.threads, fill.options.cancel.clone());
    let first = match scope {
        Scope::Single(name, kind) => Task::Single { name, kind },
        Scope::Tree => {
            // An empty name stands for the root itself.
            let mut root = Names::default();
            root.push(FileType::Directory, c"");
            Task::Directories { parent: Node::root(), names: root }
        }
        Scope::Parts(parts) => {
            for FillPart { node, stat, names } in parts {
                pool.give(Task::Entries { large: LargeDirectory::new(node, stat), names });
            }
            // Nothing: a list of names that is empty.
            Task::Directories { parent: Node::root(), names: Names::default() }
        }
    };
    let work = |pool: &Pool<Task>| {
        sys::private_descriptors(&[fill.src_root, fill.dst_root]);
        let mut worker = FillWorker::new(fill, &shared, pool);
        while let Some(task) = pool.next() {
            if let Err(error) = worker.run(task) {
                pool.fail(error);
            }
        }
        worker.tally
    };
    let tallies = log::forced_during(fill.dst_root, fill.options.latency, || pool.run(first, work))?;
    let closed = shared.closed.into_inner().unwrap_or_else(PoisonError::into_inner);
    close_directories(fill, closed)?;
    Ok(tallies.into_iter().fold(FillTally::default(), FillTally::plus))
}

/// A directory that is to be closed to its owner.
struct ClosedDirectory {
    node: Arc<Node>,
    stat: Stat,
    flags: u32,
}

/// Sets the modes and flags that were held back, deepest first.
fn close_directories(fill: &Fill<'_>, mut closed: Vec<ClosedDirectory>) -> Result<(), Error> {
    closed.sort_by_key(|one| std::cmp::Reverse(one.node.path().components().count()));
    let keeper = Keeper::new(fill.created, fill.options.plain.as_ref(), fill.notes);
    for ClosedDirectory { node, stat, flags } in closed {
        let failed = |errno| Error::io(Operation::SetMode, fill.dst_path.join(node.path()), errno);
        let directory = node.open(fill.dst_root, OFlags::RDONLY).map_err(failed)?;
        rustix::fs::fchmod(&directory, Mode::from_raw_mode(stat.st_mode & 0o7777)).map_err(failed)?;
        keeper.set_flags(directory.as_fd(), flags, &stat, &|| node.path());
    }
    Ok(())
}

struct FillWorker<'f> {
    fill: &'f Fill<'f>,
    shared: &'f FillState,
    pool: &'f Pool<Task>,
    keeper: Keeper<'f>,
    mover: Mover<'f>,
    tally: FillTally,
    listing: ListingBuffer,
    /// The path of the directory whose entries were asked about last, and the directory.
    asked: Option<(Arc<Node>, PathBuf)>,
    ahead: PendingStack<Pair, ()>,
    put_off: Vec<DirectoryToFill>,
    put_off_limit: usize,
    /// It leaves files that belong together to the end of their directory.
    holds_back: bool,
}

/// Directories that all workers together put off.
const MOST_PUT_OFF: usize = 32;

const OWNER_MAY_SEARCH: RawMode = 0o100;
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl<'f> FillWorker<'f> {
    fn new(fill: &'f Fill<'f>, shared: &'f FillState, pool: &'f Pool<Task>) -> Self {
        // Their descriptors come out of the same sum.
        let put_off_limit = if shared.groups.matter() { (MOST_PUT_OFF / fill.threads).max(1) } else { 0 };
        let most_open = open_directories_per_worker(fill.threads, 2).saturating_sub(put_off_limit).max(1);
        Self {
            fill,
            shared,
            pool,
            keeper: Keeper::new(fill.created, fill.options.plain.as_ref(), fill.notes).of_upper(fill.is_upper),
            mover: Mover::new(&fill.options.cancel, &shared.flush),
            tally: FillTally::default(),
            listing: ListingBuffer::new(),
            asked: None,
            ahead: PendingStack::new(most_open),
            put_off: Vec::new(),
            put_off_limit,
            holds_back: sets::are_watched(fill),
        }
    }

    fn run(&mut self, task: Task) -> Result<(), Error> {
        match task {
            Task::Directories { parent, names } => {
                self.ahead.push(NamedSubdirectories { node: parent, open: None, names, more: () });
            }
            Task::Entries { large, names } => self.some_entries(&large, names)?,
            Task::Single { name, kind } => {
                let node = Node::root();
                let at = BorrowedPair { node: &node, src: self.fill.src_root, dst: self.fill.dst_root };
                self.holds_back = false;
                self.entry(at, &name, kind, &mut Later::default())?;
            }
        }
        let result = self.descend();
        self.ahead.clear();
        self.put_off.clear();
        result
    }

    /// Makes every entry of one directory, then finishes its copy.
    fn directory(&mut self, DirectoryToFill { node, pair, stat, group }: DirectoryToFill) -> Result<(), Error> {
        if identity(&stat) == self.shared.staged {
            // By way of a bind mount; every other way was seen before anything was made.
            let (src, dst) = (self.fill.src_path.to_path_buf(), self.fill.dst_path.to_path_buf());
            return Err(Error::DestinationInsideSource { src, dst });
        }
        let before = (self.tally.entries.total(), self.tally.bytes.apparent);
        self.tally.entries.directories += 1;
        let at = BorrowedPair { node: &node, src: pair.src.as_fd(), dst: pair.dst.as_fd() };
        let mut later = Later::default();
        let mut large: Option<Arc<LargeDirectory>> = None;
        if self.is_other_file_system(&stat)? {
            self.fill.notes.skipped(node.path(), SkipReason::OtherFileSystem);
        } else {
            // The buffer is lent to the listing; entries are made while it is read.
            let mut buffer = std::mem::replace(&mut self.listing, ListingBuffer::empty());
            let result = self.entries(at, &stat, &mut buffer, &mut later, &mut large);
            self.listing = buffer;
            result?;
        }
        match large {
            None => self.finish(at, &stat, &mut later)?,
            Some(large) => self.leave(&large, at, &mut later)?,
        }
        self.fill.options.progress.add(self.tally.entries.total() - before.0, self.tally.bytes.apparent - before.1);
        self.ahead.push(NamedSubdirectories { node, open: Some(pair), names: later.below, more: () });
        if let Some(group) = group {
            self.shared.groups.leave(group);
        }
        Ok(())
    }

    fn entries(
        &mut self,
        at: BorrowedPair<'_>,
        stat: &Stat,
        buffer: &mut ListingBuffer,
        later: &mut Later,
        large: &mut Option<Arc<LargeDirectory>>,
    ) -> Result<(), Error> {
        let failed = |worker: &Self, errno| worker.src_error(Operation::ReadDirectory, &at.node.path(), errno);
        let mut listing = Listing::new(at.src, buffer).map_err(|errno| failed(self, errno))?;
        let mut batches = 0;
        loop {
            let refill = listing.at_refill();
            let Some(entry) = listing.next() else { return Ok(()) };
            let entry = entry.map_err(|errno| failed(self, errno))?;
            if self.pool.stopped() {
                return Ok(());
            }
            if self.pool.hungry() {
                // Not only at the end of a directory: a server's data is three directories of 300 files, and some small ones.
                self.share();
            }
            batches += usize::from(refill);
            if batches > 1 && refill && self.pool.nothing_offered() && !self.share() {
                // This directory is large and the only work there is: a worker that becomes free gets this batch. Offered
                // ahead, since it would wait for the next one otherwise. Other directories are better to share: two workers
                // in one are in each other's way (the directory's lock, on XFS also that of its allocation group).
                let mut names = Names::default();
                names.push(entry.kind, entry.name);
                while !listing.at_refill() {
                    let Some(entry) = listing.next() else { break };
                    let entry = entry.map_err(|errno| failed(self, errno))?;
                    names.push(entry.kind, entry.name);
                }
                let shared = large.get_or_insert_with(|| LargeDirectory::new(Arc::clone(at.node), *stat));
                shared.unfinished.fetch_add(1, Ordering::Relaxed);
                self.pool.give(Task::Entries { large: Arc::clone(shared), names });
                continue;
            }
            self.entry(at, entry.name, entry.kind, later)?;
        }
    }

    /// Makes the part of a large directory that was given to this worker.
    fn some_entries(&mut self, large: &Arc<LargeDirectory>, mut names: Names) -> Result<(), Error> {
        let before = (self.tally.entries.total(), self.tally.bytes.apparent);
        let pair = self.open_pair(&large.node)?;
        let at = BorrowedPair { node: &large.node, src: pair.src.as_fd(), dst: pair.dst.as_fd() };
        let mut later = Later::default();
        let mut name = Vec::new();
        while let Some(kind) = names.take(&mut name) {
            if self.pool.stopped() {
                return Ok(());
            }
            let name = CStr::from_bytes_with_nul(&name).unwrap_or_default();
            self.entry(at, name, kind, &mut later)?;
        }
        self.leave(large, at, &mut later)?;
        self.fill.options.progress.add(self.tally.entries.total() - before.0, self.tally.bytes.apparent - before.1);
        let node = Arc::clone(&large.node);
        self.ahead.push(NamedSubdirectories { node, open: Some(pair), names: later.below, more: () });
        Ok(())
    }

    fn leave(&mut self, large: &LargeDirectory, at: BorrowedPair<'_>, later: &mut Later) -> Result<(), Error> {
        let of_all = || large.held_back.lock().unwrap_or_else(PoisonError::into_inner);
        of_all().append(&mut later.held_back);
        match large.unfinished.fetch_sub(1, Ordering::AcqRel) {
            1 => {
                std::mem::swap(&mut *of_all(), &mut later.held_back);
                self.finish(at, &large.stat, later)
            }
            _ => Ok(()),
        }
    }

    /// Makes what was held back, and gives the copy of a directory its metadata. Nothing in it will change its times again.
    fn finish(&mut self, at: BorrowedPair<'_>, stat: &Stat, later: &mut Later) -> Result<(), Error> {
        self.sets(at, later)?;
        let path = || at.node.path();
        self.check_frozen(stat, path)?;
        if at.node.parent().is_some() {
            let fault = |fault| self.fill.error(&path(), fault);
            self.keeper.load_xattrs(XattrTarget::Open(at.src)).map_err(fault)?;
            let mut staged = *stat;
            // Directories below are still to be opened through this one.
            let locked = stat.st_mode & OWNER_MAY_SEARCH == 0;
            staged.st_mode |= OWNER_MAY_SEARCH;
            // Fails where there are no such attributes; then there is nothing to keep.
            let _ = sys::copy_nocow(at.src, at.dst);
            let now = self.keeper.mode_after_umask(Mode::RWXU);
            self.keeper
                .keep(XattrTarget::Open(at.src), Target::Open(at.dst), &staged, Some(now), &path)
                .map_err(fault)?;
            let flags = self.keeper.flags(at.src);
            if locked || flags != 0 {
                let mut list = self.shared.closed.lock().unwrap_or_else(PoisonError::into_inner);
                list.push(ClosedDirectory { node: Arc::clone(at.node), stat: *stat, flags });
            }
            let _ = at.node.sealed.set((times(stat), Mode::from_raw_mode(staged.st_mode)));
        }
        let now = rustix::fs::fstat(at.src).map_err(|errno| self.src_error(Operation::Stat, &path(), errno))?;
        if !same_version(stat, &now) {
            self.fill.notes.changed(path());
        }
        Ok(())
    }

    /// Fails if the source is a template and this entry of it was changed.
    fn check_frozen(&self, stat: &Stat, path: impl Fn() -> PathBuf) -> Result<(), Error> {
        match &self.fill.options.frozen {
            Some(frozen) if Moment::of(stat).parts() > frozen.changed => {
                let path = self.fill.src_path.join(path());
                Err(TemplateError::Changed { name: frozen.name.clone(), path }.into())
            }
            _ => Ok(()),
        }
    }

    /// Returns whether another file system is mounted at this directory. Told by the device, as cp does, and only with [`Mounts::Stay`].
    fn is_other_file_system(&self, stat: &Stat) -> Result<bool, Error> {
        if self.fill.options.mounts == Mounts::Cross {
            return Ok(false);
        }
        let root = rustix::fs::fstat(self.fill.src_root)
            .map_err(|errno| self.src_error(Operation::Stat, Path::new(""), errno))?;
        Ok(root.st_dev != stat.st_dev)
    }

    fn open_pair(&self, node: &Node) -> Result<Pair, Error> {
        let src = node
            .open_source(self.fill.src_root)
            .map_err(|errno| self.src_error(Operation::OpenDirectory, &node.path(), errno))?;
        let dst = node
            .open(self.fill.dst_root, OFlags::RDONLY)
            .map_err(|errno| self.dst_error(Operation::OpenDirectory, &node.path(), errno))?;
        Ok(Pair { src, dst })
    }

    fn src_error(&self, operation: Operation, path: &Path, errno: Errno) -> Error {
        Error::io(operation, self.fill.shown(self.fill.src_path, path), errno)
    }

    fn dst_error(&self, operation: Operation, path: &Path, errno: Errno) -> Error {
        Error::io(operation, self.fill.shown(self.fill.dst_path, path), errno)
    }

    fn fault(&self, path: &Path, fault: Fault) -> Error {
        self.fill.error(path, fault)
    }

    /// Returns whether an entry of the source that could not be opened is left out, with a note, instead of ending the run.
    fn may_skip(&self, errno: Errno, path: impl FnOnce() -> PathBuf) -> bool {
        let skips =
            self.fill.options.unreadable == UnreadableEntry::Skip && matches!(errno, Errno::ACCESS | Errno::PERM);
        if skips {
            self.fill.notes.skipped(path(), SkipReason::Unreadable);
        }
        skips
    }

    /// Takes note of an entry that is gone since its directory was read, or is another one. A plain copy fails.
    fn vanished(&self, path: PathBuf) -> Result<(), Error> {
        if self.fill.options.plain.is_some() {
            return Err(self.src_error(Operation::Stat, &path, Errno::NOENT));
        }
        self.fill.notes.changed(path);
        Ok(())
    }

    /// Returns whether to stop working.
    fn stopped(&self) -> bool {
        self.pool.stopped()
    }

    /// Returns whether it is something that Calve itself has left in the source. Not so when it was named as the source.
    fn is_calves_own(&self, at: BorrowedPair<'_>, name: &CStr) -> bool {
        let own = is_calves_own(name.to_bytes())
            && matches!(self.fill.paths, Paths::Below)
            && self.fill.options.plain.is_none();
        if own {
            self.fill.notes.skipped(at.node.path_of(name), SkipReason::CalvesOwn);
        }
        own
    }

    fn excluded(&mut self, at: BorrowedPair<'_>, name: &CStr, is_directory: bool) -> bool {
        // Patterns are about what is in the source, not about the source itself.
        if self.fill.exclude.is_empty() || matches!(self.fill.paths, Paths::Same) {
            return false;
        }
        // Putting a path together takes longer than most answers: it is done once for each directory.
        let (node, mut path) = match self.asked.take() {
            Some((node, path)) if Arc::ptr_eq(&node, at.node) => (node, path),
            _ => (Arc::clone(at.node), at.node.path()),
        };
        path.push(OsStr::from_bytes(name.to_bytes()));
        let is_left = match self.fill.exclude.of(&path, is_directory) {
            Decision::Take => false,
            Decision::Leave => true,
            Decision::LeaveBecause(reason) => {
                self.fill.notes.skipped(path.clone(), reason);
                true
            }
        };
        path.pop();
        self.asked = Some((node, path));
        is_left
    }
}

impl Fill<'_> {
    fn error(&self, path: &Path, fault: Fault) -> Error {
        match (fault.errno, fault.side) {
            (Errno::CANCELED, _) => Error::Interrupted,
            (errno, Side::Src) => Error::io(fault.operation, self.shown(self.src_path, path), errno),
            (errno, Side::Dst) => Error::io(fault.operation, self.shown(self.dst_path, path), errno),
        }
    }

    fn shown(&self, root: &Path, path: &Path) -> PathBuf {
        match self.paths {
            // `join` would put a slash at the end for the root itself.
            Paths::Below if !path.as_os_str().is_empty() => root.join(path),
            _ => root.to_path_buf(),
        }
    }
}

impl FillTally {
    fn plus(mut self, other: Self) -> Self {
        self.entries += other.entries;
        self.bytes += other.bytes;
        self.inlined_bytes += other.inlined_bytes;
        self
    }
}

/// Which strategy a way of making files belongs to.
impl Files<'_> {
    fn strategy(self) -> Strategy {
        match self {
            Self::Clone(Contents::Reflink { .. }) => Strategy::Reflink,
            Self::Clone(Contents::Copy | Contents::CopyOnServer) => Strategy::Copy,
            Self::Hardlink => Strategy::Hardlink,
            Self::Clonefile { .. } => Strategy::Clonefile,
        }
    }
}
