//! Notes for the end of a walk, from all workers: each kind counted, with its first path.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use crate::report::{Fallback, SkippedEntry, Warning};
use crate::vocabulary::reason::{SkipReason, WarningCode};
use crate::vocabulary::strategy::Strategy;

/// A longer list is cut, and says so: a receipt must not grow with the tree.
const MOST: usize = 10_000;

#[derive(Default)]
pub(crate) struct Notes(Mutex<NoteLists>);

#[derive(Default, Clone)]
struct NoteLists {
    summary: NoteSummary,
    skipped_beyond: u64,
    changed_beyond: u64,
    not_kept: Vec<LostAttribute>,
}

#[derive(Clone)]
struct LostAttribute {
    code: WarningCode,
    what: String,
    errno: i32,
    entries: u64,
    first: PathBuf,
}

#[derive(Default, Clone)]
pub(crate) struct NoteSummary {
    pub(crate) fell_back: Vec<Fallback>,
    pub(crate) skipped: Vec<SkippedEntry>,
    /// Every reason for skipping something. Never cut: there are few.
    pub(crate) skipped_for: Vec<SkipReason>,
    pub(crate) changed: Vec<PathBuf>,
    pub(crate) warnings: Vec<Warning>,
}

impl NoteLists {
    fn add_fallback(&mut self, from: Strategy, errno: i32, files: u64, path: impl FnOnce() -> PathBuf) {
        let list = &mut self.summary.fell_back;
        match list.iter_mut().find(|known| (known.from, known.errno) == (from, errno)) {
            Some(known) => known.files += files,
            None => list.push(Fallback { from, to: Strategy::Copy, errno, files, first_path: path() }),
        }
    }

    fn add_lost(&mut self, code: WarningCode, what: &str, errno: i32, entries: u64, path: impl FnOnce() -> PathBuf) {
        let same = |known: &&mut LostAttribute| (known.code, &*known.what, known.errno) == (code, what, errno);
        match self.not_kept.iter_mut().find(same) {
            Some(known) => known.entries += entries,
            None => self.not_kept.push(LostAttribute { code, what: what.into(), errno, entries, first: path() }),
        }
    }
}

impl Notes {
    pub(crate) fn fell_back(&self, from: Strategy, reason: Errno, path: impl FnOnce() -> PathBuf) {
        self.lock().add_fallback(from, reason.raw_os_error(), 1, path);
    }

    pub(crate) fn skipped(&self, path: PathBuf, reason: SkipReason) {
        let NoteLists { summary, skipped_beyond, .. } = &mut *self.lock();
        if !summary.skipped_for.contains(&reason) {
            summary.skipped_for.push(reason);
        }
        push(&mut summary.skipped, SkippedEntry { path, reason }, skipped_beyond);
    }

    pub(crate) fn changed(&self, path: PathBuf) {
        let NoteLists { summary, changed_beyond, .. } = &mut *self.lock();
        push(&mut summary.changed, path, changed_beyond);
    }

    pub(crate) fn not_kept(&self, code: WarningCode, what: &str, reason: Errno, path: impl FnOnce() -> PathBuf) {
        self.lock().add_lost(code, what, reason.raw_os_error(), 1, path);
    }

    /// Adds the notes of another run, except for changed entries.
    pub(crate) fn add_all_but_changed(&self, other: Self) {
        let other = other.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        for skipped in other.summary.skipped {
            self.skipped(skipped.path, skipped.reason);
        }
        let mut notes = self.lock();
        for Fallback { from, errno, files, first_path, .. } in other.summary.fell_back {
            notes.add_fallback(from, errno, files, || first_path);
        }
        for LostAttribute { code, what, errno, entries, first } in other.not_kept {
            notes.add_lost(code, &what, errno, entries, || first);
        }
        notes.summary.warnings.extend(other.summary.warnings);
    }

    pub(crate) fn warn(&self, code: WarningCode, path: Option<PathBuf>, message: String) {
        self.lock().summary.warnings.push(Warning { code, path, message });
    }

    pub(crate) fn summary(&self) -> NoteSummary {
        let NoteLists { mut summary, skipped_beyond, changed_beyond, not_kept } = self.lock().clone();
        for lost in not_kept {
            let entries = if lost.entries == 1 { "one entry".into() } else { format!("{} entries", lost.entries) };
            let reason = io::Error::from_raw_os_error(lost.errno);
            summary.warnings.push(Warning {
                code: lost.code,
                path: Some(lost.first),
                message: format!("{} not kept on {entries}: {reason}", lost.what),
            });
        }
        for (list, beyond) in [("skipped", skipped_beyond), ("changed", changed_beyond)] {
            if beyond > 0 {
                let message = format!("`{list}` lists the first {MOST} entries; there are {beyond} more");
                summary.warnings.push(Warning { code: WarningCode::ListTruncated, path: None, message });
            }
        }
        // Workers report in any order; readers and tests want one.
        summary.skipped.sort_by(|a, b| a.path.cmp(&b.path));
        summary.changed.sort();
        summary.changed.dedup();
        summary
    }

    fn lock(&self) -> MutexGuard<'_, NoteLists> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn push<T>(list: &mut Vec<T>, one: T, beyond: &mut u64) {
    if list.len() < MOST {
        list.push(one);
    } else {
        *beyond += 1;
    }
}
