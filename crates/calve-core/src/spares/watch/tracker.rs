//! Tracks the changes in one tree.
//!
//! No event is lost: a directory is listed after its watch begins, the kernel queues events while it makes the changes,
//! and the queue is emptied before a question is answered.
//!
//! Stores through a mapping (mmap(2)) and some writes (AIO) make no event, but need the file to be open for writing. So
//! an opened file is suspect until a lease shows that it is not open for writing: see [`Tracker::check_writers`]. A
//! change by one name of a file is reported to the directory of that name only, and a writer keeps the name by which it
//! opened the file, even when that is gone. So a removed name may have been a second one of another entry, which
//! changed by it: from then on nothing is known, until everything is compared anew.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::claim::check::node;
use crate::sys::{self, Listing, ListingBuffer, WatchEvent, WatchEventKind, Watches};
use crate::tree::exclude::Exclusions;
use crate::tree::location::identity;
use crate::tree::node::open_source;
use crate::tree::source::Source;
use crate::vocabulary::hidden_name::is_calves_own;

/// Why nothing is known about a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UntrackedReason {
    /// It needs more than a quarter of the user's watches.
    TooManyDirectories,
    /// The system gives no more watches.
    NoWatches,
    /// A name was removed by which another entry may have changed.
    Removal,
    /// The system's queue of events overflowed.
    Overflow,
    /// The tree was moved, removed, unmounted or replaced.
    Gone,
    /// Something is mounted in it.
    Mounted,
    /// The file system does not report every change.
    FileSystem,
    /// A directory of it cannot be read.
    Unreadable,
}

/// The number of directories that all trackers may watch together.
pub(crate) struct WatchBudget {
    directories: usize,
    /// Each clone of this is one taken share.
    taken: Rc<()>,
}

impl WatchBudget {
    pub(crate) fn new(directories: usize) -> Rc<Self> {
        Rc::new(Self { directories, taken: Rc::default() })
    }

    /// Takes the share of one directory. Dropping it gives it back.
    fn take(&self) -> Option<Rc<()>> {
        (Rc::strong_count(&self.taken) <= self.directories).then(|| Rc::clone(&self.taken))
    }
}

pub(crate) struct Tracker {
    path: PathBuf,
    identity: (u64, u64),
    exclude: Exclusions,
    watches: Watches,
    budget: Rc<WatchBudget>,
    directories: HashMap<i32, Directory>,
    /// The watch of the directory at each path.
    by_path: BTreeMap<PathBuf, i32>,
    sequence: u64,
    /// New directories that are not watched yet.
    came: Vec<PathBuf>,
    /// The cookie of a file that was moved away. The next event says where to.
    moved: Option<u32>,
    lost: Option<UntrackedReason>,
    is_unsettled: bool,
    settling: Vec<i32>,
    buffer: ListingBuffer,
}

struct Directory {
    path: PathBuf,
    identity: (u64, u64),
    changed: u64,
    /// Files that may be open for writing.
    suspects: HashMap<CString, Suspicion>,
    /// Names that got another entry after the first listing.
    replaced: HashSet<CString>,
    /// It has a file that cannot be leased: another user's.
    is_open_ended: bool,
    _share: Rc<()>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Suspicion {
    /// It was opened by this name: this directory gets the events of writes.
    ByThisName,
    /// A writer may have opened it by a name that is gone, or by one in another directory, which gets the events.
    ByAnyName,
}

const BATCH: usize = 64;

impl Tracker {
    pub(crate) fn start(
        source: &Source,
        exclude: Exclusions,
        budget: &Rc<WatchBudget>,
    ) -> Result<Self, UntrackedReason> {
        if !sys::tells_watches(source.directory()) {
            return Err(UntrackedReason::FileSystem);
        }
        let mut tracker = Self {
            path: source.path().to_path_buf(),
            identity: source.identity(),
            exclude,
            watches: Watches::new().map_err(|_| UntrackedReason::NoWatches)?,
            budget: Rc::clone(budget),
            directories: HashMap::new(),
            by_path: BTreeMap::new(),
            sequence: 0,
            came: vec![PathBuf::new()],
            moved: None,
            lost: None,
            is_unsettled: false,
            settling: Vec::new(),
            buffer: ListingBuffer::new(),
        };
        tracker.catch_up()?;
        Ok(tracker)
    }

    /// Processes all events before this call. Returns the moment, for [`Self::changed_since`].
    pub(crate) fn catch_up(&mut self) -> Result<u64, UntrackedReason> {
        self.drain();
        while self.lost.is_none() && !self.came.is_empty() {
            match self.root() {
                Some(root) => {
                    while let Some(path) = self.came.pop() {
                        self.enter(root.directory(), path);
                    }
                }
                None => self.lose(UntrackedReason::Gone),
            }
            self.drain();
        }
        if self.moved.is_some() {
            self.lose(UntrackedReason::Removal);
        }
        self.lost.map_or(Ok(self.sequence), Err)
    }

    pub(crate) fn changed_since(&self, moment: u64) -> impl Iterator<Item = &Path> {
        let changed = move |one: &&Directory| one.changed > moment || one.is_open_ended || !one.suspects.is_empty();
        self.directories.values().filter(changed).map(|one| one.path.as_path())
    }

    /// Returns a descriptor that is readable when there are events.
    pub(crate) fn queue(&self) -> BorrowedFd<'_> {
        self.watches.queue()
    }

    pub(crate) fn watched(&self) -> usize {
        self.directories.len()
    }

    /// Opens the tree. It is not kept open, because it could not be unmounted then.
    fn root(&self) -> Option<Source> {
        Source::open(&self.path).ok().filter(|root| root.identity() == self.identity)
    }

    fn lose(&mut self, why: UntrackedReason) {
        self.lost.get_or_insert(why);
    }

    fn drain(&mut self) {
        let mut events = Vec::new();
        if self.watches.drain(|event| events.push(event)).is_err() {
            self.lose(UntrackedReason::Overflow);
        }
        events.iter().for_each(|event| self.apply(event));
    }

    fn apply(&mut self, event: &WatchEvent) {
        match event.happening {
            WatchEventKind::Overflow => return self.lose(UntrackedReason::Overflow),
            WatchEventKind::Unmounted => return self.lose(UntrackedReason::Gone),
            _ => {}
        }
        let Some(directory) = self.directories.get_mut(&event.watch) else { return };
        let is_root = directory.path.as_os_str().is_empty();
        match event.happening {
            // The parent reports changes of any other directory.
            WatchEventKind::DirectoryTaken if is_root => return self.lose(UntrackedReason::Gone),
            WatchEventKind::DirectoryTaken => return,
            WatchEventKind::WatchEnded => return self.forget(event.watch),
            WatchEventKind::Opened if event.is_directory => return,
            _ => {}
        }
        let name = match event.name.as_deref() {
            Some(name) if is_calves_own(name.to_bytes()) => return,
            name => name,
        };
        if event.happening != WatchEventKind::Opened {
            self.sequence += 1;
            directory.changed = self.sequence;
        }
        let Some(name) = name else { return };
        if event.is_directory {
            let path = directory.path.join(sys::path(name));
            return self.subdirectory(event.happening, path);
        }
        self.file(event, name);
    }

    fn subdirectory(&mut self, happening: WatchEventKind, path: PathBuf) {
        match happening {
            WatchEventKind::Changed => {
                if let Some(directory) = self.by_path.get(&path).and_then(|watch| self.directories.get_mut(watch)) {
                    directory.changed = self.sequence;
                }
            }
            WatchEventKind::Made | WatchEventKind::MovedHere => {
                self.forget_tree(&path);
                self.came.push(path);
            }
            _ => self.lose(UntrackedReason::Removal),
        }
    }

    fn file(&mut self, event: &WatchEvent, name: &CStr) {
        // A file moved within the tree still exists, and is checked under its new name.
        if let Some(cookie) = self.moved.take()
            && (event.happening, event.cookie) != (WatchEventKind::MovedHere, cookie)
        {
            return self.lose(UntrackedReason::Removal);
        }
        let Some(directory) = self.directories.get_mut(&event.watch) else { return };
        match event.happening {
            WatchEventKind::Opened => {
                directory.suspects.entry(name.to_owned()).or_insert(Suspicion::ByThisName);
                self.is_unsettled = true;
            }
            WatchEventKind::Made | WatchEventKind::MovedHere => {
                directory.suspects.insert(name.to_owned(), Suspicion::ByAnyName);
                self.is_unsettled = true;
                // The records have the first entry of a name, but not one that replaced it and is now replaced itself.
                if !directory.replaced.insert(name.to_owned()) {
                    self.lose(UntrackedReason::Removal);
                }
            }
            WatchEventKind::MovedAway => {
                directory.suspects.remove(name);
                self.moved = Some(event.cookie);
            }
            WatchEventKind::Removed => self.lose(UntrackedReason::Removal),
            // It may have been a writer's last write.
            _ => self.is_unsettled |= !directory.suspects.is_empty(),
        }
    }

    fn forget_tree(&mut self, path: &Path) {
        let below = self.by_path.range::<Path, _>((std::ops::Bound::Included(path), std::ops::Bound::Unbounded));
        let gone: Vec<i32> = below.take_while(|(one, _)| one.starts_with(path)).map(|(_, watch)| *watch).collect();
        for watch in gone {
            self.watches.remove(watch);
            self.forget(watch);
        }
    }

    fn forget(&mut self, watch: i32) {
        if let Some(directory) = self.directories.remove(&watch)
            && self.by_path.get(&directory.path) == Some(&watch)
        {
            self.by_path.remove(&directory.path);
        }
    }

    fn enter(&mut self, root: BorrowedFd<'_>, path: PathBuf) {
        let mut waiting = vec![path];
        while self.lost.is_none()
            && let Some(path) = waiting.pop()
        {
            match self.enter_one(root, path, &mut waiting) {
                // It is gone or no longer a directory: another event says so.
                Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(Errno::XDEV) => self.lose(UntrackedReason::Mounted),
                Err(Errno::NOSPC | Errno::NOMEM) => self.lose(UntrackedReason::NoWatches),
                Err(_) => self.lose(UntrackedReason::Unreadable),
            }
        }
    }

    fn enter_one(&mut self, root: BorrowedFd<'_>, path: PathBuf, waiting: &mut Vec<PathBuf>) -> sys::Result<()> {
        let directory = open(root, &path)?;
        let Some(share) = self.budget.take() else {
            self.lose(UntrackedReason::TooManyDirectories);
            return Ok(());
        };
        let watch = self.watches.add(directory.as_fd())?;
        let stat = rustix::fs::fstat(&directory)?;
        self.note_path(watch, &path, identity(&stat), share);
        // From here on all changes are reported.
        let mut files = Vec::new();
        let mut listing = Listing::new(directory.as_fd(), &mut self.buffer)?;
        while let Some(entry) = listing.next() {
            let entry = entry?;
            if is_calves_own(entry.name.to_bytes()) {
                continue;
            }
            match sys::kind_of(&directory, entry.name, entry.kind).unwrap_or(FileType::Unknown) {
                FileType::Directory => {
                    let below = path.join(sys::path(entry.name));
                    if self.exclude.is_empty() || !self.exclude.matches(&below, true) {
                        waiting.push(below);
                    }
                }
                FileType::RegularFile => files.push(entry.name.to_owned()),
                _ => {}
            }
        }
        if let Some(known) = self.directories.get_mut(&watch) {
            known.suspects = files.into_iter().map(|name| (name, Suspicion::ByAnyName)).collect();
        }
        self.settle_in(watch, directory.as_fd());
        Ok(())
    }

    fn note_path(&mut self, watch: i32, path: &Path, identity: (u64, u64), share: Rc<()>) {
        // The directory may have been moved, with the event still in the queue.
        self.forget(watch);
        if let Some(before) = self.by_path.insert(path.to_path_buf(), watch)
            && before != watch
        {
            self.watches.remove(before);
            self.directories.remove(&before);
        }
        self.sequence += 1;
        let (path, changed) = (path.to_path_buf(), self.sequence);
        let directory = Directory {
            path,
            identity,
            changed,
            suspects: HashMap::new(),
            replaced: HashSet::new(),
            is_open_ended: false,
            _share: share,
        };
        self.directories.insert(watch, directory);
    }

    /// Clears the suspects that are not open for writing.
    ///
    /// Leasing a file fails while a process has it open or mapped for writing. Then the queue is emptied: it now has
    /// the end of every writer that opened the file by this name, which counts as a change. While the lease holds, the
    /// file cannot be opened for writing, and later openings are later in the queue. So a cleared file is known not to
    /// be written. If it may have been written by another name, it counts as changed when it is cleared.
    ///
    /// Each call does only a part, because this takes a while after a read of the whole tree.
    pub(crate) fn check_writers(&mut self) {
        /// Directories in one call: some milliseconds.
        const PART: usize = 128;
        if self.settling.is_empty() {
            let suspected = self.directories.iter().filter(|(_, one)| !one.suspects.is_empty());
            self.settling = suspected.map(|(watch, _)| *watch).collect();
        }
        let Some(root) = self.root() else { return self.lose(UntrackedReason::Gone) };
        let rest = self.settling.split_off(self.settling.len().min(PART));
        for watch in std::mem::replace(&mut self.settling, rest) {
            let Some(known) = self.directories.get(&watch) else { continue };
            let Ok(directory) = open(root.directory(), &known.path) else { continue };
            // Another directory may be there by now, with the event still in the queue.
            if rustix::fs::fstat(&directory).is_ok_and(|stat| identity(&stat) == known.identity) {
                self.settle_in(watch, directory.as_fd());
            }
        }
        self.drain();
        // The calls above made events, too.
        self.is_unsettled = false;
    }

    /// Returns whether there are suspects that [`Self::check_writers`] has not tried to clear.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.is_unsettled || self.is_settling()
    }

    /// Returns whether [`Self::check_writers`] has begun a round and not finished it.
    pub(crate) fn is_settling(&self) -> bool {
        !self.settling.is_empty()
    }

    fn settle_in(&mut self, watch: i32, directory: BorrowedFd<'_>) {
        let Some(known) = self.directories.get_mut(&watch) else { return };
        let suspects: Vec<(CString, Suspicion)> = std::mem::take(&mut known.suspects).into_iter().collect();
        for batch in suspects.chunks(BATCH) {
            let leased: Vec<_> = batch.iter().map(|(name, _)| lease(directory, name)).collect();
            self.drain();
            let Some(known) = self.directories.get_mut(&watch) else { return };
            for ((name, suspicion), lease) in batch.iter().zip(&leased) {
                match lease {
                    Err(Errno::AGAIN) => {
                        known.suspects.insert(name.clone(), Suspicion::ByAnyName);
                        continue;
                    }
                    Err(_) => known.is_open_ended = true,
                    Ok(_) if *suspicion == Suspicion::ByAnyName => {
                        self.sequence += 1;
                        known.changed = self.sequence;
                    }
                    Ok(_) => {}
                }
                // Opened by the lease above, or by an opening that is over or only reads.
                if known.suspects.get(name) == Some(&Suspicion::ByThisName) {
                    known.suspects.remove(name);
                }
            }
        }
    }
}

/// Leases a file until the descriptor is dropped: it cannot be written meanwhile. Returns `None` if it is gone or not a
/// regular file. Fails with EAGAIN if it is open for writing, or leased for writing by another program.
fn lease(directory: BorrowedFd<'_>, name: &CStr) -> sys::Result<Option<OwnedFd>> {
    let leased = || {
        if sys::kind(sys::stat_at(directory, name)?) != FileType::RegularFile {
            return Ok(None);
        }
        let file = open_source(directory, name, sys::FILE)?;
        sys::lease(file.as_fd())?;
        Ok(Some(file))
    };
    match leased() {
        Err(Errno::NOENT | Errno::LOOP) => Ok(None),
        leased => leased,
    }
}

/// Fails with EXDEV if something is mounted at the directory or above it.
fn open(root: BorrowedFd<'_>, path: &Path) -> sys::Result<OwnedFd> {
    match (path.parent(), path.file_name()) {
        (Some(above), Some(name)) => {
            let above = node(above).open(root, sys::PATH_ONLY)?;
            let name = CString::new(name.as_bytes()).map_err(|_| Errno::INVAL)?;
            sys::open_directory_same_mount(above.as_fd(), &name)
        }
        _ => node(path).open_source(root),
    }
}
