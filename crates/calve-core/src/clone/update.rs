//! The common part of reverting a clone and following a source: a record tells the changes, and the clone is updated.

use std::path::Path;

use rustix::fs::Mode;

use super::finish::give_metadata;
use crate::claim::check::{CheckFailure, CheckRequest, SpareDifferences, check};
use crate::claim::record::{self, RecordDraft, Writers};
use crate::claim::update::update;
use crate::error::{Error, IoContext};
use crate::options::CloneOptions;
use crate::progress::CancelToken;
use crate::staging::{RootKind, Staging};
use crate::strategy::facts::Facts;
use crate::sys;
use crate::tree::exclude::Exclusions;
use crate::tree::fill::Fill;
use crate::tree::fill::contents::ContentsMethod;
use crate::tree::fill::metadata::NewFileDefaults;
use crate::tree::location::Location;
use crate::tree::notes::Notes;
use crate::tree::pool::thread_count;
use crate::tree::source::Source;
use crate::tree::stable::Moment;
use crate::vocabulary::operation::Operation;
use crate::vocabulary::strategy::Choice;

impl RecordDraft {
    /// Records the state of an open directory. Every change since `moment` must show.
    pub(super) fn take(source: &Source, moment: Moment, writers: Writers, cancel: &CancelToken) -> Result<Self, Error> {
        let options = CloneOptions { cancel: cancel.clone(), ..CloneOptions::default() };
        record::take(source, &Exclusions::default(), moment, writers, &options)
    }

    /// Returns whether `now` is still the same directory, with nothing mounted in it.
    pub(super) fn is(&self, now: &Source) -> bool {
        now.single().is_none()
            && now.identity() == (self.head.device, self.head.root.inode)
            && sys::mounts_below(now.directory()).is_ok_and(|mounts| mounts.is_empty())
    }

    /// Returns the changes since. `None`: more than a quarter of the entries changed, or files have several names.
    pub(super) fn differences(&self, now: &Source, options: &CloneOptions) -> Result<Option<SpareDifferences>, Error> {
        let exclude = Exclusions::default();
        let (threads, cancel) = (thread_count(options.threads), &options.cancel);
        let work = CheckRequest { source: now, exclude: &exclude, only: None, threads, cancel };
        match check(&work, &self.body, self.head.entries) {
            Ok(differences) if differences.with_links.is_empty() => Ok(Some(differences)),
            Ok(_) | Err(CheckFailure::TooMuch | CheckFailure::Damaged | CheckFailure::Slow) => Ok(None),
            Err(CheckFailure::Error(error)) => Err(error),
        }
    }
}

/// Returns the time of the directory's file system: any change of an inode tells it, even one that changes nothing.
pub(super) fn now(directory: &Source) -> Result<Moment, Error> {
    rustix::fs::fchmod(directory.directory(), Mode::from_raw_mode(directory.stat().st_mode & 0o7777))
        .and_then(|()| rustix::fs::fstat(directory.directory()))
        .map(|stat| Moment::of_change(&stat))
        .io(Operation::TellTime, directory.path())
}

#[derive(Debug)]
pub(super) struct UpdateMethods {
    contents: ContentsMethod,
    created: NewFileDefaults,
    keeps_nocow: bool,
    pub(super) directory_flags: Option<u32>,
}

impl UpdateMethods {
    /// Tries which methods work beside `clone`. Returns `None` if the strategy cannot.
    pub(super) fn find(source: &Source, clone: &Path, strategy: Choice) -> Result<Option<Self>, Error> {
        let destination = Location::of_destination(clone)?;
        let mut staging = Staging::reserve(&destination)?;
        staging.make_root(RootKind::Closed)?;
        let mut facts = Facts::between(source, destination.parent());
        let created = facts.try_in(source, &staging)?;
        let contents = match strategy {
            Choice::Only(strategy) if strategy.needs_room() => ContentsMethod::Copy,
            Choice::Only(_) if facts.reflink.is_err() => return Ok(None),
            _ => facts.contents(),
        };
        let directory_flags = staging.root().map(sys::chosen_flags);
        Ok(Some(Self { contents, created, keeps_nocow: facts.may_inline, directory_flags }))
    }

    /// Makes the clone equal the source where they differ. Returns false if something was left out or has changed.
    pub(super) fn update(
        &self,
        source: &Source,
        clone: &Source,
        differences: SpareDifferences,
        options: &CloneOptions,
    ) -> Result<bool, Error> {
        let notes = Notes::default();
        let exclude = Exclusions::default();
        let (from, to) = ((source.directory(), source.path()), (clone.directory(), clone.path()));
        let work = Fill {
            strict: matches!(self.contents, ContentsMethod::Reflink { .. }),
            keeps_nocow: self.keeps_nocow,
            ..Fill::new(from, to, self.contents, &exclude, self.created, (&notes, options))
        };
        update(&work, differences)?;
        // Telling the time has changed the root, and with it the source of its metadata.
        give_metadata(source, clone.directory(), options, &notes, clone.path())?;
        let summary = notes.summary();
        Ok(summary.skipped.is_empty() && summary.changed.is_empty() && summary.warnings.is_empty())
    }
}
