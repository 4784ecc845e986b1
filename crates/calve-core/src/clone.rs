//! The plot of a clone: check, probe, choose, stage, run, verify, publish, report.

use std::os::fd::AsFd;
use std::path::Path;
use std::time::Instant;

use rustix::fs::{FileType, Mode, OFlags};

use crate::error::{Error, Required};
use crate::options::{CloneOptions, Durability, Existing, Requirement, Strategy, Verify};
use crate::probe::Facts;
use crate::report::{CloneReport, Refusal, Warning};
use crate::source::Source;
use crate::strategy::{self, Failure, Job, Method, Outcome, Wish};
use crate::sys::XattrTarget;
use crate::tree::compare::{Comparison, compare, compare_entry};
use crate::tree::delete::Deletion;
use crate::tree::exclude::Exclude;
use crate::tree::lock::Purpose;
use crate::tree::metadata::{Created, Keeper, Target, times};
use crate::tree::notes::{Notes, Told};
use crate::tree::place::{Place, is_inside};
use crate::tree::pool::thread_count;
use crate::tree::staging::{Published, Staging};
use crate::tree::sweep::sweep;
use crate::{Progress, guard};

/// Makes `dst` an independent, writable copy of `src` by the fastest strategy that these two places offer.
///
/// `dst` is exactly what will be there, never a directory to copy into; its parent must exist. It is absent (or as it was)
/// or complete at any time, whatever happens to this process. The source is never written.
///
/// # Errors
/// Nothing is left behind, whatever the error. [`Error::RequirementRefused`] when a requirement cannot be met.
pub fn clone_tree(src: &Path, dst: &Path, options: &CloneOptions) -> Result<CloneReport, Error> {
    let started = Instant::now();
    let Checked { source, place, exclude } = check(src, dst, options)?;
    let notes = Notes::default();
    let trash_waits = sweep_leftovers(&place, &notes);
    let wish = Wish::of(options);
    let mut facts = Facts::from_places(&source, place.parent());
    let mut staging = Staging::reserve(&place)?;
    let mut created = None;
    let mut refused: Vec<Refusal> = Vec::new();
    let (method, outcome) = loop {
        // Files are tried only when it matters: a snapshot needs none.
        let by_itself = |method: &dyn Method| matches!(method.strategy(), Strategy::Snapshot | Strategy::Clonefile);
        let first = strategy::choose(&facts, &wish, &refused).ok().filter(|(method, _)| by_itself(*method));
        let (method, declined) = match first {
            Some(choice) => choice,
            None => {
                if staging.root().is_none() {
                    staging.make_directory()?;
                    created = Some(facts.try_in(&source, &staging)?);
                }
                strategy::choose(&facts, &wish, &refused)?
            }
        };
        refused = declined;
        let mut job = Job {
            source: &source,
            dst_path: dst,
            staging: &mut staging,
            options,
            exclude: &exclude,
            facts: &facts,
            notes: &notes,
            created: created.unwrap_or(Created { uid: 0, gid: 0, mask: 0 }),
            threads: thread_count(options.threads),
        };
        match method.run(&mut job) {
            Ok(outcome) => break (method, outcome),
            Err(Failure::Error(error)) => return Err(error),
            Err(Failure::Refused(reason)) => refused.push(reason.by(method.strategy())),
        }
    };
    let report = finish(&source, &place, staging, method, outcome, refused, notes, options, started)?;
    Ok(CloneReport { trash_waits: trash_waits || report.trashed.is_some(), ..report })
}

/// What [`clone_tree`] would use, and why nothing better. Tries as much, and makes nothing that stays.
pub fn plan(src: &Path, dst: &Path, options: &CloneOptions) -> Result<Plan, Error> {
    let Checked { source, place, .. } = check(src, dst, options)?;
    let mut facts = Facts::from_places(&source, place.parent());
    let mut staging = Staging::reserve(&place)?;
    staging.make_directory()?;
    facts.try_in(&source, &staging)?;
    let (method, refused) = strategy::choose(&facts, &Wish::of(options), &[])?;
    Ok(Plan { strategy: method.strategy(), refused })
}

/// The answer of [`plan`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The strategy that would be used.
    pub strategy: Strategy,
    /// The better ones, and why they would not be.
    pub refused: Vec<Refusal>,
}

struct Checked {
    source: Source,
    place: Place,
    exclude: Exclude,
}

/// Refuses what makes no sense, before anything is made.
fn check(src: &Path, dst: &Path, options: &CloneOptions) -> Result<Checked, Error> {
    let exclude = Exclude::new(&options.exclude)?;
    let source = Source::open(src)?;
    let place = Place::open(dst)?.ok_or_else(|| Error::DestinationExists(dst.to_path_buf()))?;
    let (src_owned, dst_owned) = (src.to_path_buf(), dst.to_path_buf());
    let failed = |errno| Error::io("open directory", place.parent_path(), errno);
    if source.single().is_none() && is_inside(place.parent(), source.identity()).map_err(failed)? {
        return Err(Error::DestinationInsideSource { src: src_owned, dst: dst_owned });
    }
    let Some(existing) = place.stat()? else { return Ok(Checked { source, place, exclude }) };
    let identity = crate::tree::place::identity(&existing);
    if identity == source.identity() {
        return Err(Error::Same { src: src_owned, dst: dst_owned });
    }
    let is_directory = FileType::from_raw_mode(existing.st_mode) == FileType::Directory;
    if is_directory && is_inside(source.directory(), identity).map_err(failed)? {
        return Err(Error::SourceInsideDestination { src: src_owned, dst: dst_owned });
    }
    match options.existing {
        Existing::Refuse => Err(Error::DestinationExists(dst_owned)),
        Existing::Replace => {
            guard::check(&place, &options.protect)?;
            Ok(Checked { source, place, exclude })
        }
    }
}

/// Staged trees of killed processes, in this place, go first: they may hold the space that is needed now. Says whether there is
/// trash too, which is left to the reaper.
fn sweep_leftovers(place: &Place, notes: &Notes) -> bool {
    let deletion = Deletion {
        threads: thread_count(None),
        progress: &Progress::default(),
        cancel: &crate::Cancel::default(),
        last: None,
    };
    let Ok(swept) = sweep(place.parent(), place.parent_path(), Purpose::Staging, &deletion) else { return false };
    for path in swept.removed {
        notes.warn("swept", Some(path), "removed what an earlier, killed run had left".into());
    }
    if let Some(error) = swept.failure {
        notes.warn("not_swept", None, format!("could not remove what an earlier run had left: {error}"));
    }
    swept.saw_trash
}

#[allow(clippy::too_many_arguments, reason = "the second half of the plot, not a function of its own")]
fn finish(
    source: &Source,
    place: &Place,
    staging: Staging<'_>,
    method: &dyn Method,
    outcome: Outcome,
    refused: Vec<Refusal>,
    notes: Notes,
    options: &CloneOptions,
    started: Instant,
) -> Result<CloneReport, Error> {
    let mut staging = staging;
    let sealing = Notes::default();
    let mut told = notes.tell();
    if options.requires(Requirement::Stable) && !told.changed.is_empty() {
        let detail = format!("{} entries changed while they were cloned", told.changed.len());
        return Err(refusal(Requirement::Stable, detail));
    }
    if options.verify == Verify::Contents {
        verify(source, &staging, &told, options)?;
    }
    let io = |operation| move |errno| Error::io(operation, place.path(), errno);
    if let (Durability::Synced, Some(root)) = (options.durability, staging.root()) {
        crate::sys::sync_file_system(root).map_err(io("sync"))?;
    }
    match source.single() {
        Some((name, _)) => staging.publish_inside(name.to_owned()),
        None if !outcome.sealed => seal(source, &staging, &sealing, place)?,
        None => {}
    }
    if let (Durability::Synced, Some(root)) = (options.durability, staging.root()) {
        crate::sys::sync_file(root).map_err(io("sync"))?;
    }
    if options.cancel.is_cancelled() {
        return Err(Error::Interrupted);
    }
    let Published { trashed, left } = staging.publish(options.existing)?;
    if let Some(error) = left {
        let message = format!("what was replaced is still there under a hidden name: {error}");
        told.warnings.push(Warning { code: "old_not_removed", path: None, message });
    }
    if options.durability == Durability::Synced {
        crate::sys::sync_file(place.parent()).map_err(io(crate::error::SYNC_NAME))?;
    }
    told.warnings.extend(sealing.tell().warnings);
    Ok(CloneReport {
        src: source.path().to_path_buf(),
        dst: place.path().to_path_buf(),
        strategy: method.strategy(),
        refused,
        entries: outcome.entries,
        bytes: outcome.bytes,
        fell_back: told.fell_back,
        skipped: told.skipped,
        changed: told.changed,
        warnings: told.warnings,
        trashed,
        trash_waits: false,
        elapsed: started.elapsed(),
    })
}

fn refusal(requirement: Requirement, detail: String) -> Error {
    Error::RequirementRefused {
        requirement: Required::Property(requirement),
        refused: Vec::new(),
        detail: Some(detail),
    }
}

fn verify(source: &Source, staging: &Staging<'_>, told: &Told, options: &CloneOptions) -> Result<(), Error> {
    let Some(dst) = staging.root() else { return Ok(()) };
    let lost = |code| told.warnings.iter().any(|warning| warning.code == code);
    let skipped: Vec<_> = told.skipped.iter().map(|skipped| skipped.path.clone()).collect();
    let comparison = Comparison {
        src: source.directory(),
        dst,
        src_path: source.path(),
        threads: thread_count(options.threads),
        cancel: &options.cancel,
        skipped: &skipped,
        owners: !lost("owner_not_kept"),
        xattrs: !lost("xattr_not_kept"),
        links: !lost("hard_link_not_kept") && !lost("not_independent"),
    };
    match source.single() {
        Some((name, _)) => compare_entry(&comparison, name),
        None => compare(&comparison),
    }
}

/// Gives the staged root the source's metadata, last: until then only its owner can enter.
fn seal(source: &Source, staging: &Staging<'_>, notes: &Notes, place: &Place) -> Result<(), Error> {
    let failed = |errno| Error::io("stat the staged tree of", place.path(), errno);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::openat(staging.parent(), staging.name(), flags | OFlags::NOFOLLOW, Mode::empty())
        .map_err(failed)?;
    let now = rustix::fs::fstat(&root).map_err(failed)?;
    let created = Created { uid: now.st_uid, gid: now.st_gid, mask: 0o777 };
    let mut keeper = Keeper::new(created, notes);
    let src = XattrTarget::Open(source.directory());
    let stat = source.stat();
    let _ = crate::sys::copy_nocow(source.directory(), root.as_fd());
    keeper
        .load_xattrs(src)
        .and_then(|_| {
            let target = Target::Open(root.as_fd());
            let mode = Some(now.st_mode & 0o7777);
            keeper.keep(src, target, stat, mode, &Default::default)
        })
        .map_err(|fault| Error::io(fault.operation, place.path(), fault.errno))?;
    rustix::fs::futimens(&root, &times(stat)).map_err(failed)
}
