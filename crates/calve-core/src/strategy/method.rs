//! A strategy's interface: its properties, its job and its outcome.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Instant;

use rustix::fs::{Mode, Stat};

use super::criteria::{Criteria, RefusalReason};
use super::facts::Facts;
use crate::error::Error;
use crate::options::CloneOptions;
use crate::report::{Bytes, CloneReport, Entries, SpareReport};
use crate::staging::Staging;
use crate::tree::exclude::Exclusions;
use crate::tree::fill::metadata::NewFileDefaults;
use crate::tree::notes::Notes;
use crate::tree::source::Source;
use crate::tree::stable::Since;
use crate::vocabulary::strategy::{Refusal, Requirement, Strategy};

pub(crate) struct Method {
    pub(crate) strategy: Strategy,
    /// Accepts or declines by the facts. Pure: no system calls.
    pub(crate) accepts: fn(&Facts, &Criteria<'_>) -> Result<(), RefusalReason>,
    /// The requirements that its clones meet. Per-file strategies check `stable` at work, and again before publishing.
    pub(crate) meets: &'static [Requirement],
    /// No match for the others: only callers that name it get it.
    pub(crate) is_used_only_when_named: bool,
    /// It visits every entry, and can keep less than everything ([`PlainCopy`](crate::options::internal::PlainCopy)).
    pub(crate) makes_each_file: bool,
    /// Returns whether it makes the whole tree by itself, without a trial with files first.
    pub(crate) is_one_call: fn(&Exclusions) -> bool,
    /// Makes the clone under the staging name. The root's metadata is set later; until then other users cannot enter.
    pub(crate) run: fn(&mut Job<'_, '_>) -> Result<Outcome, Failure>,
}

/// A source, and its place in a staged tree.
pub(crate) struct ClonePart<'a> {
    pub(crate) source: &'a Source,
    pub(crate) exclude: &'a Exclusions,
    /// The directory in the staged tree to fill, if not its root.
    pub(crate) below: Option<BorrowedFd<'a>>,
    pub(crate) dst: &'a Path,
    pub(crate) notes: &'a Notes,
    pub(crate) options: &'a CloneOptions,
}

pub(crate) struct Job<'a, 'p> {
    pub(crate) part: &'a ClonePart<'a>,
    pub(crate) staging: &'a mut Staging<'p>,
    pub(crate) facts: &'a Facts,
    pub(crate) created: NewFileDefaults,
    pub(crate) threads: usize,
}

#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) entries: Option<Entries>,
    pub(crate) bytes: Option<Bytes>,
    /// The root as one call made it, with all metadata, before [`close_to_others`].
    pub(crate) whole: Option<WholeRoot>,
    /// For `stable`: the moment before anything was read.
    pub(crate) started: Option<Since>,
}

pub(crate) struct StrategyRun {
    pub(crate) strategy: Strategy,
    pub(crate) refused: Vec<Refusal>,
    pub(crate) spare: Option<SpareReport>,
    pub(crate) spares_wanted: bool,
    pub(crate) outcome: Outcome,
}

impl StrategyRun {
    pub(crate) fn report(self, src: &Path, dst: &Path, notes: &Notes, started: Instant) -> CloneReport {
        let summary = notes.summary();
        CloneReport {
            src: src.to_path_buf(),
            dst: dst.to_path_buf(),
            strategy: self.strategy,
            refused: self.refused,
            spare: self.spare,
            spares_wanted: self.spares_wanted,
            entries: self.outcome.entries,
            bytes: self.outcome.bytes,
            fell_back: summary.fell_back,
            skipped: summary.skipped,
            changed: summary.changed,
            warnings: summary.warnings,
            trashed: None,
            trash_waits: false,
            elapsed: started.elapsed(),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct WholeRoot {
    pub(crate) stat: Stat,
    pub(crate) locks: u32,
}

/// Closes a tree to other users until it is published. Returns the root's attributes from before. Changes only the
/// mode, and with it an access control list's mask: setting the mode again restores both.
pub(crate) fn close_to_others(root: BorrowedFd<'_>) -> crate::sys::Result<WholeRoot> {
    let stat = rustix::fs::fstat(root)?;
    let locks = crate::sys::unlock(root)?;
    rustix::fs::fchmod(root, Mode::RWXU)?;
    Ok(WholeRoot { stat, locks })
}

pub(crate) enum Failure {
    /// It declines after all, and leaves nothing; the next one may be tried.
    Refused(RefusalReason),
    Error(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}
