//! A worker of the per-file engine, and the work it hands to others.

use std::ffi::{CStr, CString};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use rustix::fs::{FileType, OFlags, RawMode, Stat};
use rustix::io::Errno;

use super::contents::{Flush, Mover};
use super::groups::AllocationGroups;
use super::hard_links::Links;
use super::metadata::MetadataKeeper;
use super::request::{Fill, FillTally};
use super::set_tries::SetTries;
use crate::error::Error;
use crate::options::{Decision, EntryDecider, UnreadableEntry};
use crate::sys::ListingBuffer;
use crate::tree::node::{Names, Node};
use crate::tree::pending_stack::{PendingDirectories, PendingStack};
use crate::tree::pool::{Pool, open_directories_per_worker};
use crate::vocabulary::hidden_name::is_calves_own;
use crate::vocabulary::operation::Operation;
use crate::vocabulary::reason::SkipReason;

pub(super) struct FillState {
    pub(super) links: Links,
    pub(super) flush: Flush,
    pub(super) groups: AllocationGroups,
    /// The staged root: a walk that meets it shows that the destination is inside the source.
    pub(super) staged: (u64, u64),
    /// Directories that their owner could no longer change: closed when everything below is done.
    pub(super) closed: Mutex<Vec<ClosedDirectory>>,
    pub(super) sets: SetTries,
}

pub(super) enum Task {
    /// Directories in `parent` that exist in its copy.
    Directories { parent: Arc<Node>, names: Names },
    /// One entry of the root, and nothing else.
    Single { name: CString, kind: FileType },
    /// Some entries of one very large directory.
    Entries { large: Arc<LargeDirectory>, names: Names },
}

/// A directory whose entries are made in batches by several workers; the last one finishes it.
pub(super) struct LargeDirectory {
    pub(super) node: Arc<Node>,
    pub(super) stat: Stat,
    pub(super) unfinished: AtomicUsize,
    pub(super) held_back: Mutex<Names>,
}

impl LargeDirectory {
    pub(super) fn new(node: Arc<Node>, stat: Stat) -> Arc<Self> {
        Arc::new(Self { node, stat, unfinished: AtomicUsize::new(1), held_back: Mutex::default() })
    }
}

/// Entries of a directory left for later.
#[derive(Default)]
pub(super) struct Later {
    pub(super) below: Names,
    pub(super) held_back: Names,
}

pub(super) struct Pair {
    pub(super) src: OwnedFd,
    pub(super) dst: OwnedFd,
}

#[derive(Clone, Copy)]
pub(super) struct BorrowedPair<'d> {
    pub(super) node: &'d Arc<Node>,
    pub(super) src: BorrowedFd<'d>,
    pub(super) dst: BorrowedFd<'d>,
}

impl<'d> BorrowedPair<'d> {
    pub(super) fn entry(self, name: &'d CStr) -> EntryPair<'d> {
        EntryPair { node: self.node, src: self.src, dst: self.dst, name }
    }
}

/// An entry that is or may be in both directories of a pair.
#[derive(Clone, Copy)]
pub(super) struct EntryPair<'d> {
    pub(super) node: &'d Arc<Node>,
    pub(super) src: BorrowedFd<'d>,
    pub(super) dst: BorrowedFd<'d>,
    pub(super) name: &'d CStr,
}

impl EntryPair<'_> {
    pub(super) fn path(&self) -> PathBuf {
        self.node.path_of(self.name)
    }
}

pub(super) struct ClosedDirectory {
    pub(super) node: Arc<Node>,
    pub(super) stat: Stat,
    pub(super) flags: u32,
}

pub(super) type NamedSubdirectories = PendingDirectories<Pair, ()>;

pub(super) struct DirectoryToFill {
    pub(super) node: Arc<Node>,
    pub(super) pair: Pair,
    pub(super) stat: Stat,
    pub(super) group: Option<usize>,
}

/// The directory asked about last. Finding its path and its decider takes longer than most answers.
struct AskedDirectory<'f> {
    node: Arc<Node>,
    path: PathBuf,
    decide: Box<EntryDecider<'f>>,
}

pub(super) struct FillWorker<'f> {
    pub(super) fill: &'f Fill<'f>,
    pub(super) shared: &'f FillState,
    pub(super) pool: &'f Pool<Task>,
    pub(super) keeper: MetadataKeeper<'f>,
    pub(super) mover: Mover<'f>,
    pub(super) tally: FillTally,
    pub(super) listing: ListingBuffer,
    asked: Option<AskedDirectory<'f>>,
    pub(super) pending: PendingStack<Pair, ()>,
    pub(super) put_off: Vec<DirectoryToFill>,
    pub(super) put_off_limit: usize,
    /// Files that belong together are left to the end of their directory.
    pub(super) holds_back: bool,
}

/// Directories that all workers together may put off.
pub(super) const MOST_PUT_OFF: usize = 32;

pub(super) const OWNER_MAY_SEARCH: RawMode = 0o100;

impl<'f> FillWorker<'f> {
    pub(super) fn new(fill: &'f Fill<'f>, shared: &'f FillState, pool: &'f Pool<Task>) -> Self {
        // Their descriptors come out of the same sum.
        let put_off_limit = if shared.groups.matter() { (MOST_PUT_OFF / fill.threads).max(1) } else { 0 };
        let most_open = open_directories_per_worker(fill.threads, 2).saturating_sub(put_off_limit).max(1);
        Self {
            fill,
            shared,
            pool,
            keeper: fill.keeper(),
            mover: Mover::new(&fill.options.cancel, &shared.flush),
            tally: FillTally::default(),
            listing: ListingBuffer::new(),
            asked: None,
            pending: PendingStack::new(most_open),
            put_off: Vec::new(),
            put_off_limit,
            holds_back: fill.are_sets_watched(),
        }
    }

    pub(super) fn open_pair(&self, node: &Node) -> Result<Pair, Error> {
        let src = node
            .open_source(self.fill.src_root)
            .map_err(|errno| self.src_error(Operation::OpenDirectory, &node.path(), errno))?;
        let dst = node
            .open(self.fill.dst_root, OFlags::RDONLY)
            .map_err(|errno| self.dst_error(Operation::OpenDirectory, &node.path(), errno))?;
        Ok(Pair { src, dst })
    }

    pub(super) fn src_error(&self, operation: Operation, path: &Path, errno: Errno) -> Error {
        Error::io(operation, self.fill.shown(self.fill.src_path, path), errno)
    }

    pub(super) fn dst_error(&self, operation: Operation, path: &Path, errno: Errno) -> Error {
        Error::io(operation, self.fill.shown(self.fill.dst_path, path), errno)
    }

    /// Returns whether an unopenable entry of the source is left out, with a note, instead of ending the run.
    pub(super) fn may_skip(&self, errno: Errno, path: impl FnOnce() -> PathBuf) -> bool {
        let skips =
            self.fill.options.unreadable == UnreadableEntry::Skip && matches!(errno, Errno::ACCESS | Errno::PERM);
        if skips {
            self.fill.notes.skipped(path(), SkipReason::Unreadable);
        }
        skips
    }

    /// Notes an entry that is gone or replaced since its directory was read. A plain copy fails.
    pub(super) fn vanished(&self, path: PathBuf) -> Result<(), Error> {
        if self.fill.options.internal.plain.is_some() {
            return Err(self.src_error(Operation::Stat, &path, Errno::NOENT));
        }
        self.fill.notes.changed(path);
        Ok(())
    }

    /// Returns whether Calve itself left this entry in the source. An entry named as the source does not count.
    pub(super) fn is_calves_own(&self, at: EntryPair<'_>) -> bool {
        let own = is_calves_own(at.name.to_bytes())
            && self.fill.single.is_none()
            && self.fill.options.internal.plain.is_none();
        if own {
            self.fill.notes.skipped(at.path(), SkipReason::CalvesOwn);
        }
        own
    }

    pub(super) fn excluded(&mut self, at: EntryPair<'_>, is_directory: bool) -> bool {
        // Patterns are about entries of the source, not the source itself.
        if self.fill.exclude.is_empty() || self.fill.single.is_some() {
            return false;
        }
        let mut asked = match self.asked.take() {
            Some(asked) if Arc::ptr_eq(&asked.node, at.node) => asked,
            _ => {
                let path = at.node.path();
                let decide = Box::new(self.fill.exclude.inside(&path));
                AskedDirectory { node: Arc::clone(at.node), path, decide }
            }
        };
        asked.path.push(crate::sys::path(at.name));
        let is_left = match (asked.decide)(&asked.path, is_directory) {
            Decision::Take => false,
            Decision::Leave => true,
            Decision::LeaveBecause(reason) => {
                self.fill.notes.skipped(asked.path.clone(), reason);
                true
            }
        };
        asked.path.pop();
        self.asked = Some(asked);
        is_left
    }
}
