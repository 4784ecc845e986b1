//! Compares a source with the record of a spare, entry by entry, in one parallel walk.
//!
//! A directory with the recorded times has the recorded names, so it is not listed: its entries are looked up by name.

use std::collections::{BTreeMap, HashSet};
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use rustix::fs::{FileType, OFlags, Stat};
use rustix::io::Errno;

use super::record::{Block, RecordedState, blocks, device};
use crate::error::Error;
use crate::options::Decision;
use crate::progress::CancelToken;
use crate::sys::{self, Listing, ListingBuffer};
use crate::tree::exclude::Exclusions;
use crate::tree::location::DIRECTORY;
pub(crate) use crate::tree::node::node_of as node;
use crate::tree::node::{Node, open_source};
use crate::tree::pool::Pool;
use crate::tree::source::Source;
use crate::vocabulary::hidden_name::is_calves_own;
use crate::vocabulary::operation::Operation;
use crate::vocabulary::reason::SkipReason;

pub(crate) struct CheckRequest<'a> {
    pub(crate) source: &'a Source,
    pub(crate) exclude: &'a Exclusions,
    /// `None`: all directories.
    pub(crate) only: Option<&'a HashSet<PathBuf>>,
    pub(crate) threads: usize,
    pub(crate) cancel: &'a CancelToken,
}

#[derive(Debug, Default)]
pub(crate) struct SpareDifferences {
    pub(crate) checked: u64,
    pub(crate) count: u64,
    pub(crate) directories: BTreeMap<PathBuf, DirectoryChanges>,
    /// Entries that the selection leaves out, with the reason for the report.
    pub(crate) left: Vec<(PathBuf, SkipReason)>,
    /// Directories that hold a file with several names.
    pub(crate) with_links: Vec<PathBuf>,
    /// Inodes with several names, one of which differs.
    linked: HashSet<u64>,
}

#[derive(PartialEq, Eq)]
pub(crate) enum EntryChange {
    /// No change that matters to a selection.
    Same,
    /// Made again, as an entry of this type.
    Other(FileType),
    Gone,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DirectoryChanges {
    pub(crate) gone: Vec<CString>,
    /// Entries to make, after removing those that exist.
    pub(crate) made: Vec<(FileType, CString)>,
}

impl DirectoryChanges {
    pub(crate) fn change_of(&self, name: &CStr) -> EntryChange {
        if self.gone.iter().any(|gone| gone.as_c_str() == name) {
            return EntryChange::Gone;
        }
        let made = self.made.iter().find(|(_, made)| made.as_c_str() == name);
        made.map_or(EntryChange::Same, |(kind, _)| EntryChange::Other(*kind))
    }
}

pub(crate) enum CheckFailure {
    /// More than a quarter of the entries differ.
    TooMuch,
    Damaged,
    /// Every entry would have to be checked, but the caller requires an instant clone.
    Slow,
    Error(Error),
}

impl From<Error> for CheckFailure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

const BATCH: usize = 64;

pub(crate) fn check(check: &CheckRequest<'_>, body: &[u8], entries: u64) -> Result<SpareDifferences, CheckFailure> {
    let blocks = blocks(body).ok_or(CheckFailure::Damaged)?;
    let root = check.source.identity().0;
    // With more differences, a new clone is faster than an update. A tiny tree may differ in all its entries.
    let most = (entries / 4).max(64);
    let (next, differing) = (AtomicUsize::new(0), AtomicU64::new(0));
    let moved = moved(check, &blocks);
    let wanted = |block: &Block<'_>| {
        let is_moved = || moved.iter().any(|moved| block.path.starts_with(moved));
        check.only.is_none_or(|only| only.contains(block.path) || is_moved())
    };
    let pool: Pool<()> = Pool::new(check.threads, check.cancel.clone());
    let work = |pool: &Pool<()>| {
        let mut worker = CheckWorker {
            check,
            device: root,
            has_links: false,
            touched: DirectoryChanges::default(),
            found: SpareDifferences::default(),
        };
        while !pool.stopped()
            && let Some(batch) = blocks.chunks(BATCH).nth(next.fetch_add(1, Ordering::Relaxed))
        {
            let before = worker.found.count;
            for block in batch.iter().filter(|block| wanted(block)) {
                if let Err(error) = worker.block(block) {
                    pool.fail(error);
                }
            }
            let more = worker.found.count - before;
            if differing.fetch_add(more, Ordering::Relaxed) + more > most {
                pool.stop();
            }
        }
        worker.found
    };
    let mut all = SpareDifferences::default();
    for mut found in pool.run((), work)? {
        all.checked += found.checked;
        all.count += found.count;
        all.directories.append(&mut found.directories);
        all.left.append(&mut found.left);
        all.with_links.append(&mut found.with_links);
        all.linked.extend(found.linked);
    }
    if all.count > most {
        return Err(CheckFailure::TooMuch);
    }
    // All names of a file are made again together. Otherwise they would become different files.
    if !all.linked.is_empty() {
        let is_linked = |(state, _): (RecordedState, bool)| all.linked.contains(&state.inode);
        for block in &blocks {
            for entry in block.entries().filter(|entry| entry.known.is_some_and(is_linked)) {
                let touched = all.directories.entry(block.path.to_path_buf()).or_default();
                if touched.change_of(entry.name) == EntryChange::Same {
                    touched.made.push((FileType::Unknown, entry.name.to_owned()));
                    all.count += 1;
                }
            }
        }
    }
    Ok(all)
}

/// Returns the directories to check whose path now leads to another directory: their descendants need a check, too.
fn moved<'b>(check: &CheckRequest<'_>, blocks: &[Block<'b>]) -> Vec<&'b Path> {
    let Some(only) = check.only else { return Vec::new() };
    let is_other = |block: &&Block<'_>| {
        let directory = open_directory(check.source.directory(), block.path);
        let stat = directory.and_then(rustix::fs::fstat);
        !stat.is_ok_and(|stat| stat.st_ino == block.identity.inode)
    };
    blocks.iter().filter(|block| only.contains(block.path)).filter(is_other).map(|block| block.path).collect()
}

struct CheckWorker<'a> {
    check: &'a CheckRequest<'a>,
    device: u64,
    has_links: bool,
    touched: DirectoryChanges,
    found: SpareDifferences,
}

impl CheckWorker<'_> {
    fn block(&mut self, block: &Block<'_>) -> Result<(), Error> {
        let failed = |errno| Error::io(Operation::Stat, self.check.source.path().join(block.path), errno);
        // Its parent reports it as missing.
        let Some(directory) =
            sys::unless_gone(open_directory(self.check.source.directory(), block.path)).map_err(failed)?
        else {
            return Ok(());
        };
        let stat = rustix::fs::fstat(&directory).map_err(failed)?;
        self.found.checked += 1;
        let same = !block.recent && RecordedState::new(&stat) == block.identity && device(&stat) == self.device;
        if !same {
            self.found.count += 1;
            self.new_names(block, directory.as_fd()).map_err(failed)?;
        }
        for entry in block.entries() {
            let Some((known, recent)) = entry.known else {
                // A directory has its own block. Here only its type matters.
                if !same {
                    self.directory_entry(directory.as_fd(), entry.name).map_err(failed)?;
                }
                continue;
            };
            self.found.checked += 1;
            let known = (!recent).then_some(known);
            self.entry(block, directory.as_fd(), entry.name, known).map_err(failed)?;
        }
        if std::mem::take(&mut self.has_links) {
            self.found.with_links.push(block.path.to_path_buf());
        }
        let touched = std::mem::take(&mut self.touched);
        if !same || !touched.made.is_empty() || !touched.gone.is_empty() {
            self.found.directories.insert(block.path.to_path_buf(), touched);
        }
        Ok(())
    }

    /// `known` is `None` if the record says nothing, because it was taken too soon after a change.
    fn entry(
        &mut self,
        block: &Block<'_>,
        directory: BorrowedFd<'_>,
        name: &CStr,
        known: Option<RecordedState>,
    ) -> sys::Result<()> {
        let found = sys::find_at(directory, name)?;
        self.has_links |= found.is_some_and(|stat| stat.st_nlink > 1);
        match found {
            Some(stat) if known == Some(RecordedState::new(&stat)) && device(&stat) == self.device => return Ok(()),
            Some(stat) if sys::is_directory(stat) => self.new_directory(node(&block.path.join(sys::path(name))))?,
            _ => {}
        }
        self.differs(found, name);
        Ok(())
    }

    fn directory_entry(&mut self, parent: BorrowedFd<'_>, name: &CStr) -> sys::Result<()> {
        let found = sys::find_at(parent, name)?;
        if !found.is_some_and(sys::is_directory) {
            self.differs(found, name);
        }
        Ok(())
    }

    fn differs(&mut self, found: Option<Stat>, name: &CStr) {
        self.found.count += 1;
        match found {
            // Its other names show the removal in their change time.
            None => self.touched.gone.push(name.to_owned()),
            Some(stat) => {
                self.note_links(&stat);
                self.touched.made.push((sys::kind(stat), name.to_owned()));
            }
        }
    }

    fn note_links(&mut self, stat: &Stat) {
        if !sys::is_directory(stat) && stat.st_nlink > 1 {
            self.found.linked.insert(stat.st_ino);
        }
    }

    fn new_names(&mut self, block: &Block<'_>, directory: BorrowedFd<'_>) -> sys::Result<()> {
        let known: HashSet<&CStr> = block.entries().map(|entry| entry.name).collect();
        let readable = open_source(directory, c".", DIRECTORY)?;
        let decide = self.check.exclude.inside(block.path);
        for (name, _) in sys::list(readable.as_fd())? {
            if known.contains(&*name) || is_calves_own(name.to_bytes()) {
                continue;
            }
            let Some(stat) = sys::find_at(directory, &*name)? else { continue };
            // Even if it is left out: a recorded file may have changed through this name.
            self.note_links(&stat);
            let path = block.path.join(sys::path(&name));
            match decide(&path, sys::is_directory(stat)) {
                Decision::Take => {}
                Decision::Leave => continue,
                Decision::LeaveBecause(reason) => {
                    self.found.left.push((path, reason));
                    continue;
                }
            }
            if sys::is_directory(stat) {
                self.new_directory(node(&path))?;
            }
            self.differs(Some(stat), &name);
        }
        Ok(())
    }

    /// Walks a directory that the record lacks, for files with names elsewhere: moving it does not change them.
    fn new_directory(&mut self, root: Arc<Node>) -> sys::Result<()> {
        let mut ahead = vec![root];
        let mut buffer = ListingBuffer::new();
        while let Some(node) = ahead.pop() {
            let Some(directory) = sys::unless_gone(node.open_source(self.check.source.directory()))? else { continue };
            let mut listing = Listing::new(directory.as_fd(), &mut buffer)?;
            while let Some(entry) = listing.next() {
                let name = entry?.name;
                let Some(stat) = sys::find_at(&directory, name)? else { continue };
                self.found.checked += 1;
                self.found.count += 1;
                self.note_links(&stat);
                if sys::is_directory(stat) {
                    ahead.push(Node::child(&node, name));
                }
            }
        }
        Ok(())
    }
}

pub(crate) fn open_directory(root: BorrowedFd<'_>, path: &Path) -> sys::Result<OwnedFd> {
    let flags = sys::PATH_ONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    if path.as_os_str().is_empty() {
        return sys::open_at(root, c".", flags);
    }
    match sys::open_beneath(root, path, flags) {
        // The path is too long for one call, or the kernel lacks the call.
        Err(Errno::NAMETOOLONG | Errno::NOSYS) => node(path).open(root, sys::PATH_ONLY),
        other => other,
    }
}
