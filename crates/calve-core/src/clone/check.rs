//! Refuses impossible requests before anything is made, and sweeps what earlier runs have left.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::Error;
use crate::options::{CloneOptions, ExistingDestination};
use crate::remove::delete::Deletion;
use crate::remove::guard;
use crate::remove::sweep::sweep;
use crate::sys;
use crate::tree::exclude::Exclusions;
use crate::tree::location::{Identity, Location, canonical, identity};
use crate::tree::lock::Purpose;
use crate::tree::notes::Notes;
use crate::tree::source::Source;
use crate::vocabulary::reason::WarningCode;

pub(super) struct CloneRequest {
    pub(super) source: Source,
    pub(super) destination: Location,
    pub(super) exclude: Exclusions,
}

pub(super) fn check(src: &Path, dst: &Path, options: &CloneOptions) -> Result<CloneRequest, Error> {
    let exclude = Exclusions::new(&options.exclude)?.and_select(options.select.clone());
    let source = Source::open(src)?;
    let destination = Location::of_destination(dst)?;
    let existing = destination.stat()?.map(|stat| (identity(&stat), sys::is_directory(stat)));
    check_apart(&source, &destination, existing)?;
    if existing.is_some() && options.existing == ExistingDestination::Replace {
        check_link(&source, &destination)?;
    }
    check_existing(&destination, existing.is_some(), options)?;
    Ok(CloneRequest { source, destination, exclude })
}

pub(super) fn check_existing(destination: &Location, exists: bool, options: &CloneOptions) -> Result<(), Error> {
    match options.existing {
        _ if !exists => Ok(()),
        ExistingDestination::Refuse => Err(Error::DestinationExists(destination.path().to_path_buf())),
        ExistingDestination::Replace => guard::check(destination, &options.protect),
    }
}

/// Fails if one is the other or inside it. `existing`: the destination's identity, and whether it is a directory.
pub(super) fn check_apart(
    source: &Source,
    destination: &Location,
    existing: Option<(Identity, bool)>,
) -> Result<(), Error> {
    let (src, dst) = (source.path().to_path_buf(), destination.path().to_path_buf());
    if source.single().is_none() && source.contains(destination)? {
        return Err(Error::DestinationInsideSource { src, dst });
    }
    match existing {
        Some((existing, _)) if existing == source.identity() => Err(Error::Same { src, dst }),
        Some((existing, true)) if source.is_inside(destination, existing)? => {
            Err(Error::SourceInsideDestination { src, dst })
        }
        _ => Ok(()),
    }
}

/// Fails if the source is a link to, into or through the destination, and would replace its own target.
fn check_link(source: &Source, destination: &Location) -> Result<(), Error> {
    let place = |path: &Path| {
        let above = path.parent()?;
        let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        Some(canonical(above).ok()?.join(path.file_name()?))
    };
    let Some(dst) = place(destination.path()) else { return Ok(()) };
    let mut at = source.path().to_path_buf();
    // As many as the kernel follows.
    for _ in 0..40 {
        let Ok(target) = rustix::fs::readlink(&at, Vec::new()) else { break };
        let target = OsStr::from_bytes(target.to_bytes());
        let beside = at.parent().unwrap_or(Path::new("")).join(target);
        // A link to `..` has no name.
        let Some(next) = place(&beside).or_else(|| canonical(&beside).ok()) else { break };
        if next == dst {
            return Err(Error::Same { src: source.path().to_path_buf(), dst });
        }
        if next.starts_with(&dst) {
            return Err(Error::SourceInsideDestination { src: next, dst });
        }
        at = next;
    }
    Ok(())
}

/// Removes staged trees of killed processes, whose space may be needed. Returns whether trash waits for the reaper.
pub(super) fn sweep_leftovers(destination: &Location, notes: &Notes, options: &CloneOptions) -> Result<bool, Error> {
    let deletion = Deletion::from_options(options);
    let swept = match sweep(destination.parent(), destination.parent_path(), Purpose::Staging, &deletion) {
        Ok(swept) => swept,
        Err(Error::Interrupted) => return Err(Error::Interrupted),
        Err(_) => return Ok(false),
    };
    for path in swept.removed {
        notes.warn(WarningCode::Swept, Some(path), "removed what an earlier, killed run had left".into());
    }
    if let Some(error) = swept.failure {
        notes.warn(WarningCode::NotSwept, None, format!("could not remove what an earlier run had left: {error}"));
    }
    for path in swept.stuck_trash {
        let message = "removed earlier, but its files cannot be deleted; see who owns them";
        notes.warn(WarningCode::TrashStuck, Some(path), message.into());
    }
    Ok(swept.saw_trash)
}
