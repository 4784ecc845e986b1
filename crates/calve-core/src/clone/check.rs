//! What is refused before anything is made, and what earlier runs have left.

use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};

use crate::error::Error;
use crate::options::{CloneOptions, Existing};
use crate::remove::delete::Deletion;
use crate::remove::guard;
use crate::remove::sweep::sweep;
use crate::source::Source;
use crate::sys;
use crate::tree::exclude::Exclude;
use crate::tree::location::{Location, identity, is_inside};
use crate::tree::lock::Purpose;
use crate::tree::notes::Notes;
use crate::tree::pool::thread_count;

/// A clone that makes sense.
pub(crate) struct Checked {
    pub(crate) source: Source,
    pub(crate) place: Location,
    pub(crate) exclude: Exclude,
}

/// Refuses what makes no sense, before anything is made.
pub(crate) fn check(src: &Path, dst: &Path, options: &CloneOptions) -> Result<Checked, Error> {
    let exclude = Exclude::new(&options.exclude)?.and_select(options.select.clone());
    let source = Source::open(src)?;
    let place = Location::open(dst)?.ok_or_else(|| Error::DestinationExists(dst.to_path_buf()))?;
    let (src_owned, dst_owned) = (src.to_path_buf(), dst.to_path_buf());
    let failed = |errno| Error::io("open directory", place.parent_path(), errno);
    if source.single().is_none()
        && (is_inside(place.parent(), source.identity()).map_err(failed)?
            || sys::is_inside_by_another_mount(place.parent(), source.directory()))
    {
        return Err(Error::DestinationInsideSource { src: src_owned, dst: dst_owned });
    }
    let Some(existing) = place.stat()? else { return Ok(Checked { source, place, exclude }) };
    let existing_identity = identity(&existing);
    if existing_identity == source.identity() {
        return Err(Error::Same { src: src_owned, dst: dst_owned });
    }
    let is_directory = FileType::from_raw_mode(existing.st_mode) == FileType::Directory;
    if is_directory
        && (is_inside(source.directory(), existing_identity).map_err(failed)? || is_inside_by_mount(&source, &place))
    {
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

/// Whether the source is a part of the existing destination that is mounted elsewhere: replacing would take it away.
fn is_inside_by_mount(source: &Source, place: &Location) -> bool {
    let flags = sys::PATH_ONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    crate::sys::open_at(place.parent(), place.name(), flags, Mode::empty())
        .is_ok_and(|existing| sys::is_inside_by_another_mount(source.directory(), existing.as_fd()))
}

/// Staged trees of killed processes, in this place, go first: they may hold the space that is needed now. Says whether there is
/// trash too, which is left to the reaper.
pub(crate) fn sweep_leftovers(place: &Location, notes: &Notes, options: &CloneOptions) -> Result<bool, Error> {
    let deletion = Deletion {
        threads: thread_count(options.threads),
        progress: &options.progress,
        cancel: &options.cancel,
        last: None,
    };
    let swept = match sweep(place.parent(), place.parent_path(), Purpose::Staging, &deletion) {
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
    for path in swept.stuck_trash {
        notes.warn(
            "trash_stuck",
            Some(path),
            "removed earlier, but its files cannot be deleted; see who owns them".into(),
        );
    }
    Ok(swept.saw_trash)
}
