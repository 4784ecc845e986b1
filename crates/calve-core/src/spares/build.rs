//! Builds a spare: a clone by the engine, and a record of its source.
//!
//! The order gives the record its meaning: dirty data is written back, so that the kernel notices the next store
//! through any mapping; entries are recorded; then contents are read. Later changes show in the change times.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::Mode;
use rustix::io::Errno;

use super::set::SpareOrigin;
use crate::claim::hand_over::fitness;
use crate::claim::record::{self, Writers};
use crate::claim::store::{Set, SpareDirectory, new_spare_name};
use crate::clone::stage::StagedTree;
use crate::error::{Error, IoContext};
use crate::options::CloneOptions;
use crate::progress::{CancelToken, Progress};
use crate::remove::delete::{Deletion, delete};
use crate::staging::RootKind;
use crate::sys;
use crate::tree::exclude::Exclusions;
use crate::tree::location::Location;
use crate::tree::notes::{NoteSummary, Notes};
use crate::tree::own::sweep_records;
use crate::tree::source::Source;
use crate::tree::stable::{self, Moment};
use crate::vocabulary::operation::Operation;
use crate::vocabulary::reason::SkipReason;
use crate::vocabulary::strategy::Requirement;

pub(super) const NO_ROOM: &str = "less than a fifth of the disk would stay free";

/// Builds one more spare. The caller holds the store's lock.
pub(super) fn build(
    set: &Set,
    origin: &SpareOrigin,
    cancel: &CancelToken,
    progress: &Arc<Progress>,
) -> Result<(), Error> {
    let src = origin.path();
    let options = CloneOptions { cancel: cancel.clone(), progress: progress.clone(), ..clone_options(set, origin) };
    let directory = Arc::new(set.create_directory()?);
    let built_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let name = new_spare_name(u64::try_from(built_ns).unwrap_or(u64::MAX));
    let spare_path = set.directory_path().join(sys::path(&name));
    rustix::fs::mkdirat(&directory, &*name, Mode::RWXU).io(Operation::CreateDirectory, &spare_path)?;
    let made = match SpareDirectory::open(&directory, name.clone()) {
        Some(found) => fill(set, &found, src, built_ns as u64, &options),
        None => Err(Error::io(Operation::OpenDirectory, &spare_path, Errno::NOENT)),
    };
    // The set may have been removed meanwhile.
    let made = made.and_then(|()| if set.is_defined() { Ok(()) } else { Err(Error::Interrupted) });
    if made.is_err() {
        let _ = delete(directory.as_fd(), &name, &spare_path, &Deletion::uncancelled());
    }
    made
}

fn clone_options(set: &Set, origin: &SpareOrigin) -> CloneOptions {
    let mut options = set.definition.shape.options();
    if let SpareOrigin::Template(template) = origin {
        template.restrict(&mut options);
    }
    options
}

/// Estimates the bytes that one more spare takes.
pub(super) fn cost(set: &Set, origin: &SpareOrigin) -> Result<u64, Error> {
    let options = clone_options(set, origin);
    let source = Source::open(origin.path())?;
    let destination = Location::of_destination(&set.directory_path().join("tree"))?;
    refuse(&source, &destination, set.definition.shape.staged)?;
    if shares(&source, &destination, &options)? {
        return Ok(0);
    }
    Ok(record::take(
        &source,
        &Exclusions::new(&options.exclude)?,
        Moment::of_file_systems(),
        Writers::Possible,
        &options,
    )?
    .allocated_bytes)
}

fn fill(set: &Set, found: &SpareDirectory, src: &Path, built_ns: u64, options: &CloneOptions) -> Result<(), Error> {
    let Some(_lock) = found.lock()? else {
        return Err(Error::io(Operation::LockSpares, found.path(), Errno::WOULDBLOCK));
    };
    let source = Source::open(src)?;
    let destination = Location::of_destination(&found.path().join("tree"))?;
    refuse(&source, &destination, set.definition.shape.staged)?;
    let exclude = Exclusions::new(&options.exclude)?;
    let moment = stable::begin(&source, options.mounts)?.moment;
    let mut taken = record::take(&source, &exclude, moment, Writers::Possible, options)?;
    check_room(&source, &taken, &destination, options)?;
    let mount = |directory| sys::mount_identity(directory).io(Operation::Stat, src);
    taken.head.mounts = [mount(source.directory())?, mount(found.directory.as_fd())?];
    taken.head.built_ns = built_ns;
    let notes = Notes::default();
    let kind = if set.definition.shape.staged { RootKind::Subvolume } else { RootKind::Closed };
    let mut staged = StagedTree::reserve(&destination, kind, options)?;
    let run = staged.fill(source, exclude, &notes, options)?;
    let summary = notes.summary();
    if let Some(reason) = incomplete(&summary) {
        return Err(Error::NoSpare { path: src.to_path_buf(), reason });
    }
    staged.publish(&notes)?;
    let written = run.outcome.bytes.unwrap_or_default().written;
    taken.head.written_bytes = written;
    taken.head.cow = run.strategy.meets(Requirement::Cow) && summary.fell_back.is_empty() && written == 0;
    taken.write(found.directory.as_fd(), found.path())
}

/// Refuses a source whose spares cannot be kept there.
pub(super) fn refuse(source: &Source, destination: &Location, staged: bool) -> Result<(), Error> {
    unfit(source, staged)?;
    if source.contains(destination)? {
        let reason = "the spare would be inside it";
        return Err(Error::NoSpare { path: source.path().to_path_buf(), reason });
    }
    Ok(())
}

/// Refuses a source whose spares would be useless or could not be checked, wherever they are.
pub(super) fn unfit(source: &Source, staged: bool) -> Result<(), Error> {
    let no = |reason| Err(Error::NoSpare { path: source.path().to_path_buf(), reason });
    if source.single().is_some() {
        return no("it is not a directory");
    }
    let shows = sys::shows_stores(source.directory());
    if !shows.io(Operation::Open, source.path())? {
        return no("on its file system programs can change files through a mapping (mmap) without a trace");
    }
    let is_subvolume = sys::is_subvolume(source.directory(), source.stat());
    if is_subvolume.io(Operation::Stat, source.path())? && !staged {
        return no("it is a btrfs subvolume, whose snapshot is as fast and never old");
    }
    Ok(())
}

fn check_room(
    source: &Source,
    taken: &record::RecordDraft,
    destination: &Location,
    options: &CloneOptions,
) -> Result<(), Error> {
    let status = rustix::fs::fstatvfs(destination.parent()).io(Operation::Stat, destination.path())?;
    if shares(source, destination, options)? {
        return Ok(());
    }
    let available = sys::available(&status).saturating_sub(taken.allocated_bytes);
    if available < status.f_blocks.saturating_mul(status.f_frsize) / 5 {
        return Err(Error::NoSpare { path: source.path().to_path_buf(), reason: NO_ROOM });
    }
    Ok(())
}

fn shares(source: &Source, destination: &Location, options: &CloneOptions) -> Result<bool, Error> {
    Ok(!crate::clone::strategy(source.path(), destination.path(), options)?.needs_room())
}

/// Returns why the spare is incomplete: the receipt of a later clone would have to report it.
fn incomplete(summary: &NoteSummary) -> Option<&'static str> {
    if summary.skipped_for.iter().any(|reason| ![SkipReason::Excluded, SkipReason::CalvesOwn].contains(reason)) {
        return Some("entries of it cannot be cloned");
    }
    summary.warnings.iter().any(|warning| warning.code.is_loss()).then_some("not all of its metadata can be kept")
}

/// Deletes the leftovers of killed processes, and spares that no longer fit.
pub(super) fn sweep(set: &Set, source: Option<&Source>, deletion: &Deletion) -> Result<u64, Error> {
    let mut removed = 0;
    sweep_records(&set.records);
    for found in set.spares()? {
        let Some(_lock) = found.lock()? else { continue };
        let pair = found.head()?.zip(source);
        if pair.is_none_or(|(head, source)| fitness(&found, &head, source).is_err()) {
            delete(found.parent.as_fd(), &found.name, found.path(), deletion)?;
            removed += 1;
        }
    }
    Ok(removed)
}
