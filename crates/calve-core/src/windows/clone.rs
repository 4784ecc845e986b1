//! The plot of a clone: check, probe, choose, stage, fill, verify, publish, report.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::ERROR_DIRECTORY;

use super::compare::{Comparison, compare};
use super::delete::{Deletion, sweep};
use super::exclude::Exclude;
use super::facts::{Facts, check_room, resolved};
use super::file::special;
use super::fill::{Files, Fill, Tally, fill};
use super::guard;
use super::location::{Location, code, ends_with_separator, is_inside};
use super::notes::Notes;
use super::pool::thread_count;
use super::staging::Staging;
use crate::choice::Criteria;
use crate::error::Error;
use crate::hidden::Purpose;
use crate::options::{CloneOptions, Durability, Existing, Requirement, Strategy, Verify};
use crate::report::{Bytes, CloneReport, Plan, Refusal};
use crate::sys::{self, Info};

/// What is to be cloned.
pub(super) struct Source {
    given: PathBuf,
    /// The source, or the directory that it is in when it is none itself.
    directory: PathBuf,
    single: Option<OsString>,
    info: Info,
}

impl Source {
    pub(super) fn open(given: &Path) -> Result<Self, Error> {
        let missing = |error| match error {
            Error::ParentMissing(_) => Error::Missing(given.to_path_buf()),
            other => other,
        };
        // `link\` means the directory behind the link; a root and `.` have no name.
        let place = if ends_with_separator(given) { None } else { Location::open(given).map_err(missing)? };
        let path = match &place {
            Some(place) => place.path().to_path_buf(),
            None if sys::verbatim(given).is_ok_and(|path| !path.exists()) => {
                return Err(Error::Missing(given.to_path_buf()));
            }
            None => resolved(given, given)?,
        };
        let info = match &place {
            Some(place) => place.look()?.ok_or_else(|| Error::Missing(given.to_path_buf()))?,
            None => sys::look(&path).map_err(|error| Error::io("look at", given, error))?,
        };
        if let Some(kind) = special(info.tag) {
            return Err(Error::NotClonable { path: given.to_path_buf(), kind });
        }
        let is_directory = info.is_directory() && !info.is_link();
        let (directory, single) = match place {
            _ if is_directory => (path, None),
            Some(place) => (place.parent().to_path_buf(), Some(place.name().to_owned())),
            None => return Err(Error::io("open directory", given, code(ERROR_DIRECTORY))),
        };
        Ok(Self { given: given.to_path_buf(), directory, single, info })
    }

    pub(super) fn given(&self) -> &Path {
        &self.given
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn single(&self) -> Option<&OsStr> {
        self.single.as_deref()
    }
}

struct Checked {
    source: Source,
    place: Location,
    exclude: Exclude,
}

/// Refuses what makes no sense, before anything is made.
fn check(src: &Path, dst: &Path, options: &CloneOptions) -> Result<Checked, Error> {
    let exclude = Exclude::new(&options.exclude)?.and_select(options.select.clone());
    let source = Source::open(src)?;
    let place = Location::open(dst)?.ok_or_else(|| Error::DestinationExists(dst.to_path_buf()))?;
    let (src_owned, dst_owned) = (src.to_path_buf(), dst.to_path_buf());
    if source.single.is_none() && is_inside(place.parent(), source.info.identity) {
        return Err(Error::DestinationInsideSource { src: src_owned, dst: dst_owned });
    }
    let Some(existing) = place.look()? else { return Ok(Checked { source, place, exclude }) };
    if existing.identity == source.info.identity {
        return Err(Error::Same { src: src_owned, dst: dst_owned });
    }
    let is_directory = existing.is_directory() && !existing.is_link();
    if is_directory && is_inside(&source.directory, existing.identity) {
        return Err(Error::SourceInsideDestination { src: src_owned, dst: dst_owned });
    }
    match options.existing {
        Existing::Refuse => Err(Error::DestinationExists(dst_owned)),
        // Only a file can be replaced by a file in one step.
        Existing::Replace if source.single.is_none() || existing.is_directory() => {
            Err(Error::ReplaceUnsupported(dst_owned))
        }
        Existing::Replace => {
            guard::check(&place, &options.protect)?;
            Ok(Checked { source, place, exclude })
        }
    }
}

/// Makes `dst` an independent, writable copy of `src` by the fastest strategy that these two places offer.
///
/// `dst` is exactly what will be there, never a directory to copy into; its parent must exist. It is absent (or as it was) or
/// complete at any time, whatever happens to this process. The source is never written.
///
/// # Errors
/// Nothing is left behind, whatever the error. [`Error::RequirementRefused`] when a requirement cannot be met.
pub fn clone_tree(src: &Path, dst: &Path, options: &CloneOptions) -> Result<CloneReport, Error> {
    let started = Instant::now();
    let checked = check(src, dst, options)?;
    let Checked { source, place, exclude } = &checked;
    let notes = Notes::default();
    let trash_waits = sweep_leftovers(place, &notes, options)?;
    let mut facts = Facts::from_places(source, place)?;
    let staging = Staging::make(place)?;
    facts.try_in(source, &staging)?;
    let (strategy, refused) = facts.choose(&Criteria::of(options))?;
    if strategy == Strategy::Copy {
        check_room(source, place, &facts)?;
    }
    let tally = make(&checked, &staging, strategy, &notes, options)?;
    if let Some(error) = missing(source, &tally, &notes) {
        return Err(error);
    }
    if options.verify == Verify::Contents {
        let (shown_src, cancel) = (source.given(), &options.cancel);
        let comparison = Comparison { src: source.directory(), dst: staging.path(), shown_src, exclude, cancel };
        compare(&comparison, source.single())?;
    }
    options.still_wanted()?;
    staging.publish(source.single(), options.existing)?;
    Ok(report(&checked, strategy, refused, tally, notes, trash_waits, started.elapsed()))
}

fn make(
    checked: &Checked,
    staging: &Staging<'_>,
    strategy: Strategy,
    notes: &Notes,
    options: &CloneOptions,
) -> Result<Tally, Error> {
    let Checked { source, place, exclude } = checked;
    let files = match strategy {
        Strategy::Reflink => Files::Reflink { strict: options.requires(Requirement::Cow) },
        Strategy::Hardlink => {
            let message =
                "hard links: source and clone are the same files, so a write in place on either side changes both";
            notes.warn("not_independent", None, message.into());
            Files::Hardlink
        }
        _ => Files::Copy,
    };
    fill(&Fill {
        src: source.directory(),
        dst: staging.path(),
        shown_src: source.given(),
        shown_dst: place.given(),
        single: source.single(),
        files,
        sync: options.durability == Durability::Synced,
        exclude,
        notes,
        progress: &options.progress,
        cancel: &options.cancel,
        threads: thread_count(options.threads),
    })
}

/// A source that is one entry, and of which nothing was made: gone since it was looked at.
fn missing(source: &Source, tally: &Tally, notes: &Notes) -> Option<Error> {
    if source.single.is_none() || tally.entries.total() > 0 {
        return None;
    }
    let path = source.given().to_path_buf();
    Some(match notes.tell().skipped.first() {
        Some(skipped) => Error::NotClonable { path, kind: skipped.reason },
        None => Error::Missing(path),
    })
}

fn report(
    checked: &Checked,
    strategy: Strategy,
    refused: Vec<Refusal>,
    tally: Tally,
    notes: Notes,
    trash_waits: bool,
    elapsed: Duration,
) -> CloneReport {
    let told = notes.tell();
    CloneReport {
        src: checked.source.given().to_path_buf(),
        dst: checked.place.given().to_path_buf(),
        strategy,
        refused,
        entries: Some(tally.entries),
        bytes: Some(Bytes { inlined: Some(0), ..tally.bytes }),
        fell_back: told.fell_back,
        skipped: told.skipped,
        changed: told.changed,
        warnings: told.warnings,
        trashed: None,
        trash_waits,
        elapsed,
    }
}

/// Staged trees of killed processes, in this place, go first: they may hold the space that is needed now. Says whether there is trash
/// too, which is left to the reaper.
fn sweep_leftovers(place: &Location, notes: &Notes, options: &CloneOptions) -> Result<bool, Error> {
    let deletion = Deletion { progress: &options.progress, cancel: &options.cancel };
    let swept = match sweep(place.parent(), &place.given_parent(), Purpose::Staging, deletion) {
        Ok(swept) => swept,
        Err(Error::Interrupted) => return Err(Error::Interrupted),
        Err(_) => return Ok(false),
    };
    for path in swept.removed {
        notes.warn("swept", Some(path), "removed what an earlier, killed run had left".into());
    }
    if let Some(error) = swept.failure {
        notes.warn("not_swept", None, format!("could not remove what an earlier run had left: {error}"));
    }
    Ok(swept.saw_trash)
}

/// What [`clone_tree`] would use, and why nothing better. Tries as much, and makes nothing that stays.
pub fn plan(src: &Path, dst: &Path, options: &CloneOptions) -> Result<Plan, Error> {
    let Checked { source, place, .. } = check(src, dst, options)?;
    let mut facts = Facts::from_places(&source, &place)?;
    let staging = Staging::make(&place)?;
    facts.try_in(&source, &staging)?;
    let (strategy, refused) = facts.choose(&Criteria::of(options))?;
    Ok(Plan { strategy, refused })
}
