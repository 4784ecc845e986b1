//! Files that belong together ([`FileSet`]) are made one after the other, checked together before and after, and made
//! again until none has changed in between.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::time::Instant;

use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::Errno;

use super::entry::Obstacle;
use super::request::{Fill, FillTally};
use super::set_tries::FIRST_PAUSE;
use super::worker::{BorrowedPair, FillWorker, Later};
use crate::error::Error;
use crate::tree::file_set::{FileSet, is_made_again};
use crate::tree::node::{Names, unlock_file};
use crate::tree::notes::Notes;
use crate::tree::set_state::{FileSetState, ListedSets};
use crate::vocabulary::operation::Operation;

struct Attempt {
    made: Vec<CString>,
    tally: FillTally,
    /// Everything is there, unchanged since the look.
    is_complete: bool,
}

impl FillWorker<'_> {
    pub(super) fn sets(&mut self, at: BorrowedPair<'_>, later: &mut Later) -> Result<(), Error> {
        if later.held_back.is_empty() {
            return Ok(());
        }
        let mut sets: BTreeMap<FileSet, BTreeSet<CString>> = BTreeMap::new();
        for (_, name) in std::mem::take(&mut later.held_back) {
            let set = FileSet::from_name(name.to_bytes()).unwrap_or_else(|| FileSet::of_sqlite(name.to_bytes()));
            sets.entry(set).or_default().insert(name);
        }
        let holds_back = std::mem::replace(&mut self.holds_back, false);
        let mut in_directory = ListedSets::default();
        if sets.keys().any(FileSet::is_known_by_others) {
            in_directory
                .renew(at.src)
                .map_err(|errno| self.src_error(Operation::ReadDirectory, &at.node.path(), errno))?;
        }
        let made = sets.into_iter().try_for_each(|(set, listed)| self.set(at, &set, &listed, &mut in_directory, later));
        self.holds_back = holds_back;
        made
    }

    /// Makes the files of a set. `listed` has those found in the directory at first, `in_directory` a later listing's.
    fn set(
        &mut self,
        at: BorrowedPair<'_>,
        set: &FileSet,
        listed: &BTreeSet<CString>,
        in_directory: &mut ListedSets,
        later: &mut Later,
    ) -> Result<(), Error> {
        let is_alone = || {
            let mut names = in_directory.names(set).chain(listed);
            let first = names.next();
            names.all(|name| Some(name) == first)
        };
        if set.is_known_by_others() && is_alone() {
            return listed.iter().try_for_each(|name| self.entry(at.entry(name), FileType::RegularFile, later));
        }
        let (mut pause, mut found) = (FIRST_PAUSE, BTreeSet::new());
        while !self.pool.stopped() {
            let started = Instant::now();
            let before = self.look(at, set, in_directory)?;
            if !before.has(&set.main_file()) {
                return listed.iter().try_for_each(|name| self.entry(at.entry(name), FileType::RegularFile, later));
            }
            if !before.shows_changes() && self.shared.sets.may_try_again(started, &mut pause) {
                continue;
            }
            let notes = Notes::default();
            let attempt = self.attempt(at, &before, listed, &mut found, &notes)?;
            let after = self.look(at, set, in_directory)?;
            let changed = notes.summary().changed;
            let is_whole = attempt.is_complete
                && before.lasted_until(&after)
                && changed
                    .iter()
                    .filter_map(|path| path.file_name())
                    .all(|name| is_made_again(name.as_encoded_bytes()));
            let may_be_made_again = !before.has_links() && !after.has_links();
            if !is_whole && may_be_made_again && self.shared.sets.may_try_again(started, &mut pause) {
                self.take_back(at, &attempt.made)?;
                continue;
            }
            self.fill.notes.add_all_but_changed(notes);
            self.tally = self.tally.plus(attempt.tally);
            if is_whole {
                return Ok(());
            }
            attempt.made.iter().chain(&found).for_each(|name| self.fill.notes.changed(at.node.path_of(name)));
            for name in listed.iter().filter(|name| !attempt.made.contains(name)) {
                self.entry(at.entry(name), FileType::Unknown, later)?;
            }
            return Ok(());
        }
        Ok(())
    }

    /// Makes the files, with separate notes that do not count if the try fails. `found` gets files that were made and
    /// counted before they were known to belong to a set.
    fn attempt(
        &self,
        at: BorrowedPair<'_>,
        before: &FileSetState,
        listed: &BTreeSet<CString>,
        found: &mut BTreeSet<CString>,
        notes: &Notes,
    ) -> Result<Attempt, Error> {
        let fill = Fill { notes, ..*self.fill };
        let mut worker = FillWorker::new(&fill, self.shared, self.pool);
        worker.holds_back = false;
        let (mut made, mut is_complete) = (Vec::new(), true);
        for (name, stat) in before.files.iter() {
            let copy = crate::sys::stat_at(at.dst, name).ok();
            if let Some(copy) = copy.filter(|_| !listed.contains(name)) {
                found.insert(name.clone());
                let version = |stat: &Stat| (stat.st_size, stat.st_mtime, stat.st_mtime_nsec);
                if version(stat) == version(&copy) && !self.shared.sets.began.may_hide_in(stat) {
                    continue;
                }
                if before.has_links() {
                    is_complete = false;
                    continue;
                }
                self.take_back(at, std::slice::from_ref(name))?;
            }
            let is_new = !listed.contains(name) && !found.contains(name);
            if is_new && (worker.is_calves_own(at.entry(name)) || worker.excluded(at.entry(name), false)) {
                continue;
            }
            let counted = worker.tally;
            match worker.regular_file(at.entry(name), &mut Names::default()) {
                Ok(()) => made.push(name.clone()),
                Err(Obstacle::OtherKind | Obstacle::Gone) => is_complete &= is_made_again(name.to_bytes()),
                Err(Obstacle::Fault(fault)) => return Err(fill.error(&at.entry(name).path(), fault)),
                Err(Obstacle::Error(error)) => return Err(error),
            }
            if found.contains(name) {
                worker.tally = counted;
            }
        }
        Ok(Attempt { made, tally: worker.tally, is_complete })
    }

    /// Removes copies of different moments.
    fn take_back(&self, at: BorrowedPair<'_>, made: &[CString]) -> Result<(), Error> {
        for name in made {
            let removed = match rustix::fs::unlinkat(at.dst, name, AtFlags::empty()) {
                // The copy of a locked file is locked.
                Err(Errno::PERM) if unlock_file(at.dst, name) => rustix::fs::unlinkat(at.dst, name, AtFlags::empty()),
                other => other,
            };
            match removed {
                // Unreadable files were left out.
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(self.dst_error(Operation::Remove, &at.node.path_of(name), errno)),
            }
        }
        Ok(())
    }

    fn look(&self, at: BorrowedPair<'_>, set: &FileSet, in_directory: &mut ListedSets) -> Result<FileSetState, Error> {
        let failed = |errno| self.src_error(Operation::Stat, &at.node.path(), errno);
        FileSetState::look(at.src, set, in_directory).map_err(failed)
    }
}
