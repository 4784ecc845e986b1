//! A tree made under a hidden name and then published: one clone, or a caller's mix of several clones and its own work.

mod from_spare;
pub(crate) mod supersede;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::check::{check_existing, sweep_leftovers};
use super::finish::{check_made, give_metadata, reopen};
use super::scrub::{scrub, scrub_own};
use crate::claim::hand_over::{available, none_of_source, without_spare};
use crate::claim::names::RecordedTree;
use crate::claim::store::places_below;
use crate::error::{Error, IoContext, StatedRequirement};
use crate::options::{CloneOptions, Durability};
use crate::remove::delete::{Deletion, delete};
use crate::report::{CloneReport, TrashedTree, Warning};
use crate::staging::{Leftover, RootKind, Staging};
use crate::strategy::IN_ORDER;
use crate::strategy::criteria::{Criteria, RefusalReason};
use crate::strategy::facts::{Facts, created_in};
use crate::strategy::method::{ClonePart, Failure, Job, Method, Outcome, StrategyRun, WholeRoot};
use crate::strategy::select::choose;
use crate::sys;
use crate::tree::exclude::Exclusions;
use crate::tree::fill::metadata::NewFileDefaults;
use crate::tree::held_times::HeldTimes;
use crate::tree::location::{DIRECTORY, Location, make_below};
use crate::tree::node::{above, open_above};
use crate::tree::notes::Notes;
use crate::tree::pool::thread_count;
use crate::tree::source::Source;
use crate::tree::stable::{Since, watchable};
use crate::vocabulary::operation::Operation;
use crate::vocabulary::reason::WarningCode;
use crate::vocabulary::strategy::{Choice, Refusal, Requirement, Strategy};

#[derive(Debug, Default)]
pub struct StageReport {
    /// The entry that [`ExistingDestination::Replace`] moved away.
    pub trashed: Option<TrashedTree>,
    /// The old tree that [`supersede`](supersede::supersede) kept, because both it and its replacement were written to.
    pub kept: Option<PathBuf>,
    /// There is trash beside the destination: work for [`crate::reap`].
    pub trash_waits: bool,
    pub warnings: Vec<Warning>,
}

/// Gives `make` a hidden sibling of `dst` to fill, and then gives that the name `dst` in one step.
///
/// `dst` is absent (or as it was) or complete at any time, whatever happens to this process. Until publication, only
/// its owner can enter the staged tree, on btrfs a subvolume. Leftovers of killed runs beside `dst` are removed first.
/// Each clone into the tree is verified and stable as its own options demand; `options` are about the whole tree.
///
/// With `parent`, publishes in that open directory, wherever it is; the path above `dst`'s name is then for messages.
///
/// # Errors
/// Fails when `make`, staging or publishing fails. Leaves nothing behind.
pub fn stage_in<T, E: From<Error>>(
    parent: Option<OwnedFd>,
    dst: &Path,
    options: &CloneOptions,
    make: impl FnOnce(&mut StagedTree<'_>) -> Result<T, E>,
) -> Result<(T, StageReport), E> {
    let notes = Notes::default();
    let destination = match parent {
        Some(parent) => Location::in_directory(parent, dst)?,
        None => Location::of_destination(dst)?,
    };
    let trash_waits = start(&destination, &notes, options)?;
    let mut staged = StagedTree::reserve(&destination, RootKind::Subvolume, options)?;
    let made = make(&mut staged)?;
    let trashed = staged.publish(&notes)?;
    Ok((made, report(trashed, None, trash_waits, &notes)))
}

/// Checks that the destination may be used, and sweeps beside it. Returns whether there is trash.
fn start(destination: &Location, notes: &Notes, options: &CloneOptions) -> Result<bool, Error> {
    check_existing(destination, destination.stat()?.is_some(), options)?;
    sweep_leftovers(destination, notes, options)
}

fn report(trashed: Option<TrashedTree>, kept: Option<PathBuf>, trash_waits: bool, notes: &Notes) -> StageReport {
    StageReport { trash_waits: trash_waits || trashed.is_some(), trashed, kept, warnings: notes.summary().warnings }
}

/// A tree under a hidden name beside its destination.
pub struct StagedTree<'p> {
    destination: &'p Location,
    pub(super) staging: Staging<'p>,
    options: &'p CloneOptions,
    root_kind: RootKind,
    /// The source, if the root is a clone.
    origin: Option<Origin>,
    /// The names in the root, if it was a spare.
    names: Option<RecordedTree>,
}

struct Origin {
    source: Source,
    exclude: Exclusions,
    /// The root's metadata, if one call made all of it before it was closed to others.
    whole: Option<WholeRoot>,
    /// The source may not have changed since.
    started: Option<Since>,
}

impl<'p> StagedTree<'p> {
    pub(crate) fn reserve(
        destination: &'p Location,
        root_kind: RootKind,
        options: &'p CloneOptions,
    ) -> Result<Self, Error> {
        let staging = Staging::reserve(destination)?;
        Ok(StagedTree { destination, staging, options, root_kind, origin: None, names: None })
    }

    pub(crate) fn for_clone(destination: &'p Location, options: &'p CloneOptions) -> Result<Self, Error> {
        let kind = if options.internal.plain.is_some() { RootKind::Inheriting } else { RootKind::Closed };
        Self::reserve(destination, kind, options)
    }

    /// Returns the tree's current path, for programs to work in.
    pub fn path(&self) -> PathBuf {
        self.destination.parent_path().join(sys::path(self.staging.name()))
    }

    /// Returns the contents of the root, if it was a spare of which a selection was taken.
    pub fn take_names(&mut self) -> Option<RecordedTree> {
        self.names.take()
    }

    /// Makes the root: on btrfs a subvolume, elsewhere a directory. Returns whether it is a subvolume.
    pub fn make_root(&mut self) -> Result<bool, Error> {
        self.staging.make_root(self.root_kind)
    }

    /// Makes the root a clone of the selected part of `src`. Snapshots a btrfs subvolume, and removes the rest.
    /// Fails as [`crate::clone_tree`] does if the clone is not as `options` demand.
    pub fn clone_root(&mut self, src: &Path, options: &CloneOptions) -> Result<CloneReport, Error> {
        let started = Instant::now();
        let notes = Notes::default();
        let (source, exclude) = open_directory(src, options)?;
        let run = self.fill(source, exclude, &notes, options)?;
        Ok(run.report(src, self.destination.path(), &notes, started))
    }

    /// Makes `at`, a missing path below the root, a clone of the directory `src`.
    /// Fails as [`crate::clone_tree`] does if the clone is not as `options` demand.
    pub fn clone_below(&mut self, src: &Path, at: &Path, options: &CloneOptions) -> Result<CloneReport, Error> {
        let started = Instant::now();
        let notes = Notes::default();
        let dst = self.destination.path().join(at);
        let (source, exclude) = open_directory(src, options)?;
        let made = make_directories(self.root()?, at).io(Operation::CreateDirectory, &dst)?;
        let below = Some(made.as_fd());
        let part = ClonePart { source: &source, exclude: &exclude, below, dst: &dst, notes: &notes, options };
        let run = self.clone_part(&part)?;
        give_metadata(&source, made.as_fd(), options, &notes, &dst)?;
        Ok(run.report(src, &dst, &notes, started))
    }

    /// Makes the root a clone of `source`, or puts a source that is no directory into it.
    pub(crate) fn fill(
        &mut self,
        source: Source,
        exclude: Exclusions,
        notes: &Notes,
        options: &CloneOptions,
    ) -> Result<StrategyRun, Error> {
        let dst = self.destination.path();
        let part = ClonePart { source: &source, exclude: &exclude, below: None, dst, notes, options };
        let mut run = match self.spare(&part)? {
            Ok(run) => run,
            Err(without) if options.strategy == Choice::Only(Strategy::Spare) => {
                let requirement = StatedRequirement::Strategy(Strategy::Spare);
                let refused = vec![without.refused.unwrap_or_else(none_of_source).by(Strategy::Spare)];
                return Err(Error::RequirementRefused { requirement, refused, detail: None });
            }
            Err(without) => {
                let made = self.clone_part(&part);
                let mut run =
                    made.map_err(|error| without_spare(error, without.refused.clone(), part.source, options))?;
                run.refused.splice(0..0, without.refused.map(|reason| reason.by(Strategy::Spare)));
                run.spares_wanted = without.wanted;
                run
            }
        };
        if let Some((name, _)) = source.single() {
            self.staging.inside = Some(name.to_owned());
        }
        let Outcome { whole, started, .. } = &mut run.outcome;
        self.origin = Some(Origin { source, exclude, whole: whole.take(), started: *started });
        Ok(run)
    }

    fn clone_part(&mut self, part: &ClonePart<'_>) -> Result<StrategyRun, Error> {
        let run = self.run(part)?;
        if run.strategy.is_at_once() {
            let deletion = Deletion::from_options(part.options);
            match part.exclude.is_empty() {
                true => scrub_own(self.root()?, part.dst, &places_of_own(part), part.notes, &deletion)?,
                false => scrub(self.root()?, part.dst, part.exclude, part.notes, &deletion)?,
            }
        }
        let made = part.below.map_or_else(|| self.root(), Ok)?;
        check_made(part, made, run.outcome.started)?;
        Ok(run)
    }

    /// Runs the fastest method that accepts; if it declines after all, the next.
    fn run(&mut self, part: &ClonePart<'_>) -> Result<StrategyRun, Error> {
        let mut facts = Facts::between(part.source, self.destination.parent());
        let mut criteria = Criteria::new(part.options);
        // In a tree made of several parts, the excess of a snapshot is removed.
        criteria.excludes &= self.root_kind != RootKind::Subvolume;
        let mut refused = Vec::new();
        if self.staging.root().is_some() {
            let at_once = IN_ORDER.iter().map(|method| method.strategy).filter(|strategy| strategy.is_at_once());
            refused.extend(at_once.map(|strategy| RefusalReason::new("it goes into an existing tree").by(strategy)));
        }
        let mut created = None;
        loop {
            // A method that makes the whole tree needs no trial with files first.
            let makes_all =
                |(method, _): &(&Method, _)| self.staging.root().is_none() && (method.is_one_call)(part.exclude);
            let (method, declined) = match choose(&facts, &criteria, &refused).ok().filter(makes_all) {
                Some(choice) => choice,
                None => {
                    if self.staging.root().is_none() {
                        self.make_root()?;
                    }
                    if created.is_none() {
                        created = Some(facts.try_in(part.source, &self.staging)?);
                    }
                    choose(&facts, &criteria, &refused)?
                }
            };
            refused = declined;
            let mut job = Job {
                part,
                staging: &mut self.staging,
                facts: &facts,
                created: created.unwrap_or(NewFileDefaults { uid: 0, gid: 0, mask: 0, times: HeldTimes::ALL }),
                threads: thread_count(part.options.threads),
            };
            match (method.run)(&mut job) {
                Ok(outcome) => {
                    let strategy = method.strategy;
                    return Ok(StrategyRun { strategy, refused, spare: None, spares_wanted: false, outcome });
                }
                Err(Failure::Error(error)) => return Err(error),
                Err(Failure::Refused(reason)) => refused.push(reason.by(method.strategy)),
            }
        }
    }

    /// Tries the same as a clone of `source`, and leaves nothing. Returns the method, or `None` for a spare.
    pub(crate) fn plan(mut self, source: &Source) -> Result<(Option<&'static Method>, Vec<Refusal>), Error> {
        let mut facts = Facts::between(source, self.destination.parent());
        self.make_root()?;
        facts.try_in(source, &self.staging)?;
        let no_spare = match available(source, self.destination.parent(), self.options) {
            Ok(()) if !self.options.requires(Requirement::Instant) => {
                return Ok((None, Vec::new()));
            }
            // A watcher, asked when the spare is claimed, may know.
            Ok(()) => Some(RefusalReason::new("checking it may mean looking at every entry")),
            Err(reason) => reason,
        };
        let chosen = choose(&facts, &Criteria::new(self.options), &[]);
        let (method, mut refused) =
            chosen.map_err(|error| without_spare(error, no_spare.clone(), source, self.options))?;
        refused.splice(0..0, no_spare.map(|reason| reason.by(Strategy::Spare)));
        if self.options.requires(Requirement::Stable) && !method.strategy.is_at_once() {
            watchable(source, self.options.mounts)?;
        }
        Ok((Some(method), refused))
    }

    /// Deletes the entry at `at`, a path below the root, through no link. Returns the number of deleted entries.
    pub fn remove(&self, at: &Path) -> Result<u64, Error> {
        let path = self.destination.path().join(at);
        match open_above(self.root()?, at, OFlags::RDONLY) {
            Ok((directory, name)) => delete(directory.as_fd(), &name, &path, &Deletion::from_options(self.options)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(0),
            Err(errno) => Err(Error::io(Operation::Remove, &path, errno)),
        }
    }

    pub(crate) fn root(&self) -> Result<BorrowedFd<'_>, Error> {
        self.staging.root().ok_or_else(|| Error::StagingLost(self.destination.parent_path().to_path_buf()))
    }

    /// Gives the root its metadata last: until then only its owner can enter. Fails if the caller has cancelled.
    fn seal(&self, notes: &Notes) -> Result<(), Error> {
        let path = self.destination.path();
        let root = self.root()?;
        match &self.origin {
            _ if self.staging.inside.is_some() => {}
            None => {
                let mask = created_in(&self.staging)?.mask;
                rustix::fs::fchmod(root, Mode::from_raw_mode(mask | Mode::RWXU.bits()))
                    .io(Operation::SetStagedMode, path)?;
            }
            Some(Origin { whole: Some(whole), .. }) => reopen(root, whole, notes).io(Operation::SetStagedMode, path)?,
            Some(Origin { source, .. }) => {
                give_metadata(source, root, self.options, notes, path)?;
            }
        }
        if self.options.durability == Durability::Synced {
            sys::sync_file_system(root).io(Operation::Sync, path)?;
        }
        self.options.check_cancelled()
    }

    pub(crate) fn publish(self, notes: &Notes) -> Result<Option<TrashedTree>, Error> {
        self.seal(notes)?;
        let (destination, options) = (self.destination, self.options);
        let leftover = self.staging.publish(options.existing, &options.protect)?;
        conclude(destination, leftover, notes, options)
    }
}

/// Makes a publication durable, and notes anything it left. Returns the trash.
fn conclude(
    destination: &Location,
    leftover: Leftover,
    notes: &Notes,
    options: &CloneOptions,
) -> Result<Option<TrashedTree>, Error> {
    let trashed = leftover.unwrap_or_else(|error| {
        let detail = format!("what was replaced is still there under a hidden name: {error}");
        notes.warn(WarningCode::OldNotRemoved, None, detail);
        None
    });
    if options.durability == Durability::Synced {
        let synced = sys::sync_file(destination.parent());
        synced.io(Operation::SyncName, destination.path())?;
    }
    Ok(trashed)
}

/// Returns the directories that may contain Calve's own entries: the source's root, and those with spares. Elsewhere
/// only a walk could find what a running or killed command has not cleaned up yet.
fn places_of_own(part: &ClonePart<'_>) -> Vec<PathBuf> {
    let spares = part.options.spares.as_ref().map(|spares| places_below(&spares.home, part.source.path()));
    let mut places = spares.unwrap_or_default();
    places.push(PathBuf::new());
    places.sort();
    places.dedup();
    places
}

/// Returns whether a directory is a btrfs subvolume.
pub fn is_subvolume(path: &Path) -> Result<bool, Error> {
    let directory = sys::open_at(rustix::fs::CWD, path, DIRECTORY).io(Operation::OpenDirectory, path)?;
    let stat = rustix::fs::fstat(&directory).io(Operation::OpenDirectory, path)?;
    sys::is_subvolume(directory.as_fd(), &stat).io(Operation::OpenDirectory, path)
}

fn open_directory(src: &Path, options: &CloneOptions) -> Result<(Source, Exclusions), Error> {
    let source = Source::open(src)?;
    source.expect_directory(Operation::OpenDirectory)?;
    Ok((source, Exclusions::new(&options.exclude)?.and_select(options.select.clone())))
}

/// Makes the new directory `at` and the missing ones above it, through no link.
fn make_directories(root: BorrowedFd<'_>, at: &Path) -> sys::Result<OwnedFd> {
    let (directory, name) = above(at).ok_or(Errno::INVAL)?;
    let parent = make_below(root, directory, Mode::from_raw_mode(0o777))?;
    rustix::fs::mkdirat(&parent, &*name, Mode::RWXU)?;
    sys::open_at(&parent, &*name, DIRECTORY)
}
