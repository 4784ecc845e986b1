//! Filling one directory, or a part of a very large one.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use rustix::fs::{Mode, Stat};

use super::metadata::same_version;
use super::worker::{
    BorrowedPair, ClosedDirectory, DirectoryToFill, FillWorker, LargeDirectory, Later, NamedSubdirectories,
    OWNER_MAY_SEARCH, Task,
};
use crate::error::Error;
use crate::options::Mounts;
use crate::sys::{self, Listing, ListingBuffer, XattrTarget};
use crate::tree::held_times::times;
use crate::tree::location::identity;
use crate::tree::node::{Names, Node};
use crate::tree::stable::check_frozen;
use crate::vocabulary::operation::Operation;
use crate::vocabulary::reason::SkipReason;

impl FillWorker<'_> {
    pub(super) fn run(&mut self, task: Task) -> Result<(), Error> {
        match task {
            Task::Directories { parent, names } => {
                self.pending.push(NamedSubdirectories { node: parent, open: None, names, more: () });
            }
            Task::Entries { large, names } => self.some_entries(&large, names)?,
            Task::Single { name, kind } => {
                let node = Node::root();
                let at = BorrowedPair { node: &node, src: self.fill.src_root, dst: self.fill.dst_root };
                self.holds_back = false;
                self.entry(at.entry(&name), kind, &mut Later::default())?;
            }
        }
        let result = self.descend();
        self.pending.clear();
        self.put_off.clear();
        result
    }

    pub(super) fn directory(
        &mut self,
        DirectoryToFill { node, pair, stat, group }: DirectoryToFill,
    ) -> Result<(), Error> {
        if identity(&stat) == self.shared.staged {
            // Through a bind mount; every other way was seen before anything was made.
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
            // The listing borrows the buffer while entries are made.
            let mut buffer = std::mem::take(&mut self.listing);
            let result = self.entries(at, &stat, &mut buffer, &mut later, &mut large);
            self.listing = buffer;
            result?;
        }
        match large {
            None => self.finish(at, &stat, &mut later)?,
            Some(large) => self.leave(&large, at, &mut later)?,
        }
        self.fill.options.progress.add(self.tally.entries.total() - before.0, self.tally.bytes.apparent - before.1);
        self.pending.push(NamedSubdirectories { node, open: Some(pair), names: later.below, more: () });
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
                // Not only at a directory's end: a server's data is three directories of 300 files and some small ones.
                self.share();
            }
            batches += usize::from(refill);
            if batches > 1 && refill && self.pool.nothing_offered() && !self.share() {
                // This large directory is the only work: offer this batch ahead. Other directories are better to share,
                // because two workers in one hinder each other (its lock, on XFS also its allocation group's).
                let mut names = Names::from([(entry.kind, entry.name.to_owned())]);
                while !listing.at_refill() {
                    let Some(entry) = listing.next() else { break };
                    let entry = entry.map_err(|errno| failed(self, errno))?;
                    names.push_back((entry.kind, entry.name.to_owned()));
                }
                let shared = large.get_or_insert_with(|| LargeDirectory::new(Arc::clone(at.node), *stat));
                shared.unfinished.fetch_add(1, Ordering::Relaxed);
                self.pool.give(Task::Entries { large: Arc::clone(shared), names });
                continue;
            }
            self.entry(at.entry(entry.name), entry.kind, later)?;
        }
    }

    fn some_entries(&mut self, large: &Arc<LargeDirectory>, names: Names) -> Result<(), Error> {
        let before = (self.tally.entries.total(), self.tally.bytes.apparent);
        let pair = self.open_pair(&large.node)?;
        let at = BorrowedPair { node: &large.node, src: pair.src.as_fd(), dst: pair.dst.as_fd() };
        let mut later = Later::default();
        for (kind, name) in names {
            if self.pool.stopped() {
                return Ok(());
            }
            self.entry(at.entry(&name), kind, &mut later)?;
        }
        self.leave(large, at, &mut later)?;
        self.fill.options.progress.add(self.tally.entries.total() - before.0, self.tally.bytes.apparent - before.1);
        let node = Arc::clone(&large.node);
        self.pending.push(NamedSubdirectories { node, open: Some(pair), names: later.below, more: () });
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

    /// Makes the held-back entries, and gives a directory's copy its metadata. Nothing changes its times afterwards.
    fn finish(&mut self, at: BorrowedPair<'_>, stat: &Stat, later: &mut Later) -> Result<(), Error> {
        self.sets(at, later)?;
        let path = || at.node.path();
        self.check_frozen(stat, path)?;
        if at.node.parent().is_some() && !self.fill.options.internal.is_left_open(path) {
            let fault = |fault| self.fill.error(&path(), fault);
            self.keeper.load_xattrs(XattrTarget::Open(at.src)).map_err(fault)?;
            let mut staged = *stat;
            // Directories below are yet to be opened through this one.
            let locked = stat.st_mode & OWNER_MAY_SEARCH == 0;
            staged.st_mode |= OWNER_MAY_SEARCH;
            // Fails where there are no such attributes: nothing to keep.
            let _ = sys::copy_nocow(at.src, at.dst);
            let (src, dst) = (XattrTarget::Open(at.src), XattrTarget::Open(at.dst));
            self.keeper.keep(src, dst, &staged, None, &path).map_err(fault)?;
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

    pub(super) fn check_frozen(&self, stat: &Stat, path: impl Fn() -> PathBuf) -> Result<(), Error> {
        check_frozen(self.fill.options.internal.frozen.as_ref(), stat, || self.fill.src_path.join(path()))
    }

    /// Returns whether another file system is mounted here: by device, as cp does, and only with [`Mounts::Stay`].
    fn is_other_file_system(&self, stat: &Stat) -> Result<bool, Error> {
        if self.fill.options.mounts == Mounts::Cross {
            return Ok(false);
        }
        let root = rustix::fs::fstat(self.fill.src_root)
            .map_err(|errno| self.src_error(Operation::Stat, Path::new(""), errno))?;
        Ok(root.st_dev != stat.st_dev)
    }
}
