//! Hands a spare over: lock, check, rename, update.
//!
//! The spare is renamed to its destination's staging name before anything in it changes. From then on it is a staged
//! tree like any other: published complete, or swept.

use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::ask::ask;
use super::check::{CheckFailure, CheckRequest, SpareDifferences, check};
use super::names::RecordedTree;
use super::record::{Head, Record, RecordedState};
use super::select::select;
use super::store::{Home, Set, SpareDirectory, SpareSource, TREE, spares_in};
use crate::error::{Error, IoContext, StatedRequirement};
use crate::options::{CloneOptions, RecordBody};
use crate::report::{SpareCheck, SpareReport};
use crate::staging::Staging;
use crate::strategy::criteria::RefusalReason;
use crate::strategy::method::{ClonePart, WholeRoot, close_to_others};
use crate::sys;
use crate::tree::location::DIRECTORY;
use crate::tree::pool::thread_count;
use crate::tree::source::Source;
use crate::vocabulary::operation::Operation;
use crate::vocabulary::strategy::{Choice, Requirement, Strategy};

pub(crate) struct NoSpare {
    /// Why no spare fits, if the user keeps spares of this source.
    pub(crate) refused: Option<RefusalReason>,
    /// A refill should build another one.
    pub(crate) wanted: bool,
}

/// A claimed spare, under the staging name.
pub(crate) struct Spare {
    pub(crate) report: SpareReport,
    pub(crate) differences: SpareDifferences,
    /// The root's state before it was closed to others.
    pub(crate) whole: WholeRoot,
    /// The names that stay in it, if only a part of the source is selected.
    pub(crate) names: Option<RecordedTree>,
    pub(crate) wanted: bool,
}

pub(crate) fn none_of_source() -> RefusalReason {
    RefusalReason::new("there is no spare of this source")
}

/// Adds the reason for the missing spare to the refusals, if a spare was named or might meet the requirement, too.
pub(crate) fn without_spare(
    mut error: Error,
    reason: Option<RefusalReason>,
    source: &Source,
    options: &CloneOptions,
) -> Error {
    let is_named = options.strategy == Choice::Only(Strategy::Spare);
    if let Error::RequirementRefused { requirement, refused, detail: None } = &mut error
        && (is_named || matches!(requirement, StatedRequirement::Property(_)))
    {
        let is_possible = is_named || options.spares.is_some() && source.single().is_none();
        let reason = reason.or_else(|| is_possible.then(none_of_source));
        refused.splice(0..0, reason.map(|reason| reason.by(Strategy::Spare)));
    }
    error
}

pub(crate) fn claim(part: &ClonePart<'_>, staging: &mut Staging<'_>) -> Result<Result<Spare, NoSpare>, Error> {
    // An unusable store must not prevent a clone.
    let sets = match sets_of(part.source, part.options) {
        Ok(sets) => sets,
        Err(refused) => return Ok(Err(NoSpare { refused: Some(refused), wanted: false })),
    };
    let (mut nearest, mut wanted) = (None, false);
    for set in sets {
        match of_set(part, staging, &set) {
            Ok(spare) => return Ok(Ok(spare)),
            Err(refused) => {
                wanted |= refused.wanted && !set.paused;
                refused.keep_nearest(&mut nearest)?;
            }
        }
    }
    Ok(Err(NoSpare { refused: nearest.map(|(_, why)| why), wanted }))
}

/// Returns the sets of a source, or none if the options rule out spares. Fails if the store is out of reach.
fn sets_of(source: &Source, options: &CloneOptions) -> Result<Vec<Set>, RefusalReason> {
    let may_be_spare = matches!(options.strategy, Choice::Fastest | Choice::Only(Strategy::Spare));
    match &options.spares {
        Some(using) if may_be_spare && source.single().is_none() => {
            Home::sets_at(&using.home, Some(&source_of(source, options))).map_err(unreachable)
        }
        _ => Ok(Vec::new()),
    }
}

fn unreachable(error: Error) -> RefusalReason {
    RefusalReason::new(format!("the spares cannot be reached: {error}"))
}

/// Fails with the reason why no spare would be used, without checking entries. `None`: the source has no set.
pub(crate) fn available(
    source: &Source,
    parent: BorrowedFd<'_>,
    options: &CloneOptions,
) -> Result<(), Option<RefusalReason>> {
    let mut nearest = None;
    for set in sets_of(source, options).map_err(Some)? {
        let Err(refused) = in_set(&set, source, parent, options) else { return Ok(()) };
        refused.keep_nearest(&mut nearest).map_err(|error| Some(unreachable(error)))?;
    }
    Err(nearest.map(|(_, why)| why))
}

fn in_set(set: &Set, source: &Source, parent: BorrowedFd<'_>, options: &CloneOptions) -> Result<(), ClaimRefusal> {
    let mut available = Err(ClaimRefusal::but_wanted("no spare is ready"));
    for found in spares_for(set, parent, options)? {
        if let Some(head) = found.head()?.filter(|head| fitness(&found, head, source).is_ok()) {
            available = check_cow(head.cow, options);
            if available.is_ok() {
                break;
            }
        }
    }
    available
}

fn check_cow(is_cow: bool, options: &CloneOptions) -> Result<(), ClaimRefusal> {
    match options.requires(Requirement::Cow) && !is_cow {
        true => Err(ClaimRefusal::because("data was written to make it")),
        false => Ok(()),
    }
}

fn spares_for(set: &Set, parent: BorrowedFd<'_>, options: &CloneOptions) -> Result<Vec<SpareDirectory>, ClaimRefusal> {
    if !set.definition.shape.serves(options) {
        return Err(ClaimRefusal::because("its spares were built with different options").at(SetFit::Source));
    }
    let path = set.directory_path();
    let Some(directory) = set.open_directory()? else { return Err(ClaimRefusal::but_wanted("no spare is ready")) };
    let stat = |fd: BorrowedFd<'_>| rustix::fs::fstat(fd).io(Operation::Stat, &path);
    let out_of_reach = |why: &str| Err(ClaimRefusal::because(why).at(SetFit::Options));
    if stat(directory.as_fd())?.st_dev != stat(parent)?.st_dev {
        return out_of_reach("its spares are on another file system than the destination");
    }
    if sys::mount_identity(directory.as_fd()) != sys::mount_identity(parent) {
        return out_of_reach("its spares are seen through another mount than the destination");
    }
    Ok(spares_in(directory)?)
}

fn source_of(source: &Source, options: &CloneOptions) -> SpareSource {
    match &options.internal.frozen {
        Some(template) => SpareSource::Template(template.name.clone()),
        None => SpareSource::Directory(source.path().canonicalize().unwrap_or_else(|_| source.path().to_path_buf())),
    }
}

struct ClaimRefusal {
    why: Result<RefusalReason, Error>,
    /// Another spare built now would fit.
    wanted: bool,
    fit: SetFit,
}

/// How well a set fits a clone. The best-fitting set gives the reason: the user can do most about its spares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SetFit {
    /// Only the source fits.
    Source,
    /// The options fit, too, but the spares are in another place.
    Options,
    /// Everything fits: a ready spare would do.
    Place,
}

impl ClaimRefusal {
    fn because(why: impl Into<String>) -> Self {
        Self { why: Ok(RefusalReason::new(why)), wanted: false, fit: SetFit::Place }
    }

    fn but_wanted(why: impl Into<String>) -> Self {
        Self { wanted: true, ..Self::because(why) }
    }

    fn at(self, fit: SetFit) -> Self {
        Self { fit, ..self }
    }

    /// Keeps the reason, unless a better-fitting set has given one. Fails on an interruption.
    fn keep_nearest(self, nearest: &mut Option<(SetFit, RefusalReason)>) -> Result<(), Error> {
        let why = self.why?;
        if nearest.as_ref().is_none_or(|(fit, _)| *fit <= self.fit) {
            *nearest = Some((self.fit, why));
        }
        Ok(())
    }
}

/// An error of the store refuses its spares; an interruption ends the clone.
impl From<Error> for ClaimRefusal {
    fn from(error: Error) -> Self {
        match error {
            Error::Interrupted => Self { why: Err(error), wanted: false, fit: SetFit::Place },
            error => Self::because(error.to_string()),
        }
    }
}

fn of_set(part: &ClonePart<'_>, staging: &mut Staging<'_>, set: &Set) -> Result<Spare, ClaimRefusal> {
    let mut last = ClaimRefusal::but_wanted("no spare is ready");
    for found in spares_for(set, staging.parent(), part.options)? {
        match claim_one(part, staging, set, &found) {
            Ok(spare) => return Ok(spare),
            Err(refused @ ClaimRefusal { why: Err(_), .. }) => return Err(refused),
            Err(refused) => last = refused,
        }
    }
    Err(last)
}

fn claim_one(
    part: &ClonePart<'_>,
    staging: &mut Staging<'_>,
    set: &Set,
    found: &SpareDirectory,
) -> Result<Spare, ClaimRefusal> {
    let Some(_lock) = found.lock()? else {
        return Err(ClaimRefusal::but_wanted("its spares are being built or handed over"));
    };
    let Some(record) = found.record()? else { return Err(ClaimRefusal::but_wanted("no spare is ready")) };
    let unfit = |why: &str| {
        found.discard();
        Err(ClaimRefusal::but_wanted(why))
    };
    if let Err(why) = fitness(found, &record.head, part.source) {
        // An overlay has no spares, and tells nothing of the directory that it hides from `calve run`'s command.
        let is_hidden = sys::magic(part.source.directory()) == Ok(sys::OVERLAY_MAGIC);
        return if is_hidden { Err(ClaimRefusal::because(why)) } else { unfit(why) };
    }
    check_cow(record.head.cow, part.options)?;
    let (checked, mut differences, body) = match compare(part, set, found, &record) {
        Ok(compared) => compared,
        Err(CheckFailure::TooMuch) => return unfit("more than a quarter of the source has changed since it was built"),
        Err(CheckFailure::Damaged) => return unfit("its record is damaged"),
        Err(CheckFailure::Slow) => {
            return Err(ClaimRefusal::because("checking it means looking at every entry"));
        }
        Err(CheckFailure::Error(error)) => return Err(error.into()),
    };
    if part.options.requires(Requirement::Stable) && !differences.directories.is_empty() {
        return Err(ClaimRefusal::because("the source has changed since it was built"));
    }
    let mut names = None;
    if part.options.select.is_some() {
        let selected = body.or_else(|| record.body(read_before(part))).and_then(|body| {
            select(&body.bytes, part.exclude, &mut differences)?;
            Some(RecordedTree { body, touched: differences.directories.clone() })
        });
        if selected.is_none() {
            return unfit("its record is damaged");
        }
        names = selected;
    }
    let whole = take(staging, found)?;
    let report = SpareReport {
        built: UNIX_EPOCH + Duration::from_nanos(record.head.built_ns),
        checked,
        entries_checked: differences.checked,
        entries_updated: differences.count,
    };
    Ok(Spare { report, differences, whole, names, wanted: !set.paused })
}

/// Fails with the reason if the record does not belong to this source, to these mounts and this boot.
pub(crate) fn fitness(found: &SpareDirectory, head: &Head, source: &Source) -> Result<(), &'static str> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    if head.boot != sys::boot_identity() {
        return Err("it was built before the system was started");
    }
    if u128::from(head.built_ns) > now.as_nanos() {
        return Err("the clock was set back after it was built");
    }
    if head.device != source.identity().0 || head.root.inode != source.identity().1 {
        return Err("the source is another directory than the one it was built from");
    }
    if [source.directory(), found.directory.as_fd()].map(sys::mount_identity) != head.mounts.map(Ok) {
        return Err("the source's file system, or its own, was mounted again, or is seen through another mount");
    }
    Ok(())
}

/// Returns the body that `SpareUse::with_record_of` passed on.
fn read_before<'p>(part: &ClonePart<'p>) -> Option<&'p Arc<RecordBody>> {
    part.options.spares.as_ref()?.record.as_ref()
}

type SpareComparison = (SpareCheck, SpareDifferences, Option<Arc<RecordBody>>);

fn compare(
    part: &ClonePart<'_>,
    set: &Set,
    found: &SpareDirectory,
    record: &Record,
) -> Result<SpareComparison, CheckFailure> {
    let frozen = matches!(set.definition.source, SpareSource::Template(_));
    // The root's state tells the tree from another one at its path.
    if frozen && record.head.root == RecordedState::new(part.source.stat()) {
        return Ok((SpareCheck::Frozen, SpareDifferences::default(), None));
    }
    // A watcher gets no events of mounts.
    let is_whole = sys::mounts_below(part.source.directory()).is_ok_and(|mounts| mounts.is_empty());
    let store = part.options.spares.as_ref().filter(|_| is_whole);
    let only = store.and_then(|using| ask(&using.home, &found.id(set))).map(directories);
    if only.as_ref().is_some_and(HashSet::is_empty) {
        return Ok((SpareCheck::Watched, SpareDifferences::default(), None));
    }
    if only.is_none() && part.options.requires(Requirement::Instant) {
        return Err(CheckFailure::Slow);
    }
    let body = record.body(read_before(part)).ok_or(CheckFailure::Damaged)?;
    let threads = thread_count(part.options.threads);
    let work = CheckRequest {
        source: part.source,
        exclude: part.exclude,
        only: only.as_ref(),
        // With a cold cache, half of them wait for the disk.
        threads: if part.options.threads.is_none() { threads * 2 } else { threads },
        cancel: &part.options.cancel,
    };
    let differences = check(&work, &body.bytes, record.head.entries)?;
    Ok((if only.is_some() { SpareCheck::Watched } else { SpareCheck::Walked }, differences, Some(body)))
}

/// Returns the directories whose entries may have changed if these paths have.
pub(crate) fn directories(paths: Vec<PathBuf>) -> HashSet<PathBuf> {
    let mut directories = HashSet::new();
    for path in paths {
        directories.extend(path.parent().map(Path::to_path_buf));
        directories.insert(path);
    }
    directories
}

/// Moves the spare to the staging name, closed to others until it is published. The caller holds its lock.
fn take(staging: &mut Staging<'_>, found: &SpareDirectory) -> Result<WholeRoot, ClaimRefusal> {
    let tree = sys::open_at(&found.directory, TREE, DIRECTORY).io(Operation::MoveSpare, found.path())?;
    let whole = close_to_others(tree.as_fd()).io(Operation::MoveSpare, found.path())?;
    match staging.adopt(found.directory.as_fd(), TREE, tree) {
        Ok(()) => {
            found.remove_empty();
            Ok(whole)
        }
        Err(errno) => {
            found.discard();
            let why = std::io::Error::from(errno);
            Err(ClaimRefusal::because(format!("it cannot be moved to the destination: {why}")))
        }
    }
}
