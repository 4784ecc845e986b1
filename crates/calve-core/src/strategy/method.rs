//! What a strategy is, what it gets, and what comes of it.

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
    /// Accepts or declines, going by the facts. Pure: no system calls.
    pub(crate) accepts: fn(&Facts, &Criteria<'_>) -> Result<(), RefusalReason>,
    /// The requirements that its clones meet. The per-file strategies check `stable` while they work, and once more before publishing.
    pub(crate) meets: &'static [Requirement],
    /// It is no match for the others: only a caller that names it gets it.
    pub(crate) is_used_only_when_named: bool,
    /// It comes to every entry of the source, and can take over less than everything ([`PlainCopy`](crate::options::internal::PlainCopy)).
    pub(crate) makes_each_file: bool,
    /// Returns whether it makes the whole tree by itself, so that nothing has to be tried with files first.
    pub(crate) is_one_call: fn(&Exclusions) -> bool,
    /// Makes the clone under the staging name. The metadata of the root is set later, and other users cannot enter until then.
    pub(crate) run: fn(&mut Job<'_, '_>) -> Result<Outcome, Failure>,
}

/// A source, and the place in a staged tree that it is to be cloned to.
pub(crate) struct ClonePart<'a> {
    pub(crate) source: &'a Source,
    pub(crate) exclude: &'a Exclusions,
    /// The directory in the staged tree that is to be filled, when it is not its root.
    pub(crate) below: Option<BorrowedFd<'a>>,
    /// For messages.
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
    /// The root as one call made it, with all of its metadata, before it was closed to others by [`close_to_others`].
    pub(crate) whole: Option<WholeRoot>,
    /// For `stable`: the moment before anything was read.
    pub(crate) started: Option<Since>,
}

/// How a clone was made, and what came of it.
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

/// The root of a tree before it was closed to others.
#[derive(Debug, Clone)]
pub(crate) struct WholeRoot {
    pub(crate) stat: Stat,
    /// The flags that forbid changes ([`crate::sys::unlock`]).
    pub(crate) locks: u32,
}

/// Closes a tree to other users until it is published. Returns the root's attributes from before. Only the mode changes, and with it an access
/// control list's mask: setting the mode again brings both back.
pub(crate) fn close_to_others(root: BorrowedFd<'_>) -> crate::sys::Result<WholeRoot> {
    let stat = rustix::fs::fstat(root)?;
    let locks = crate::sys::unlock(root)?;
    rustix::fs::fchmod(root, Mode::RWXU)?;
    Ok(WholeRoot { stat, locks })
}

/// Why nothing was made.
pub(crate) enum Failure {
    /// It declines after all; the next one may be tried. Nothing of it is left.
    Refused(RefusalReason),
    Error(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}
