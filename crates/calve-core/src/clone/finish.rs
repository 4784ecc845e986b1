//! From a staged tree to a published one: verify, sync, seal, publish, report.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, RawMode, Stat};
use rustix::io::Errno;

use crate::clone::check::Checked;
use crate::clone::staging::{Publication, Staging};
use crate::error::{Error, Required, Shown};
use crate::options::{CloneOptions, Durability, Requirement, Strategy, Verify};
use crate::report::{CloneReport, Refusal};
use crate::source::Source;
use crate::strategy::Outcome;
use crate::sys::{self, XattrTarget};
use crate::tree::compare::{Comparison, compare, compare_entry};
use crate::tree::exclude::Exclude;
use crate::tree::fill::entry::NO_DEVICES;
use crate::tree::fill::metadata::{Created, Keeper, Target, times};
use crate::tree::location::Location;
use crate::tree::notes::{NoteSummary, Notes};
use crate::tree::pool::thread_count;
use crate::tree::stable::{Moment, Quiet, changed};

/// A staged tree, and how it was made.
pub(crate) struct Made {
    pub(crate) strategy: Strategy,
    pub(crate) refused: Vec<Refusal>,
    pub(crate) outcome: Outcome,
    pub(crate) notes: Notes,
}

/// Gives the staged tree its name, unless something that was asked for does not hold.
pub(crate) fn finish(
    checked: &Checked,
    staging: Staging<'_>,
    made: Made,
    options: &CloneOptions,
) -> Result<CloneReport, Error> {
    let Checked { source, place, .. } = checked;
    let Made { strategy, refused, outcome, notes } = made;
    let mut staging = staging;
    let told = notes.tell();
    if let Some(missing) = missing(source, &staging, &told) {
        return Err(missing);
    }
    if options.requires(Requirement::Stable) && !told.changed.is_empty() {
        let detail = format!("{} entries changed while they were cloned", told.changed.len());
        return Err(refusal(Requirement::Stable, detail));
    }
    if let (Verify::Contents, Some(root)) = (options.verify, staging.root()) {
        verify(source, &checked.exclude, root, &told, options)?;
    }
    let io = |operation| move |errno| Error::io(operation, place.path(), errno);
    if let (Durability::Synced, Some(root)) = (options.durability, staging.root()) {
        sys::sync_file_system(root).map_err(io("sync"))?;
    }
    if let Some(since) = outcome.started {
        require_quiet(source, &checked.exclude, since, options)?;
    }
    match source.single() {
        Some((name, _)) => staging.publish_inside(name.to_owned()),
        None => match (&outcome.whole, staging.root()) {
            (Some(whole), Some(root)) => {
                reopen(root, whole, &notes).map_err(io("set the mode of the staged tree of"))?
            }
            _ => seal_staged(source, &staging, &notes, place)?,
        },
    }
    if let (Durability::Synced, Some(root)) = (options.durability, staging.root()) {
        sys::sync_file(root).map_err(io("sync"))?;
    }
    options.still_wanted()?;
    let Publication { trashed, left, .. } = staging.publish(options.existing, &options.protect)?;
    if let Some(error) = left {
        let message = format!("what was replaced is still there under a hidden name: {error}");
        notes.warn("old_not_removed", None, message);
    }
    if options.durability == Durability::Synced {
        sys::sync_file(place.parent()).map_err(io(crate::error::SYNC_NAME))?;
    }
    let told = notes.tell();
    Ok(CloneReport {
        src: source.path().to_path_buf(),
        dst: place.path().to_path_buf(),
        strategy,
        refused,
        entries: outcome.entries,
        bytes: outcome.bytes,
        fell_back: told.fell_back,
        skipped: told.skipped,
        changed: told.changed,
        warnings: told.warnings,
        trashed,
        trash_waits: false,
        elapsed: std::time::Duration::ZERO,
    })
}

/// A source that is one entry, and of which nothing was made: left out, or gone since it was looked at.
fn missing(source: &Source, staging: &Staging<'_>, told: &NoteSummary) -> Option<Error> {
    let ((name, _), root) = (source.single()?, staging.root()?);
    let made = rustix::fs::statat(root, name, AtFlags::SYMLINK_NOFOLLOW);
    if made.err() != Some(Errno::NOENT) {
        return None;
    }
    let path = source.path().to_path_buf();
    Some(match told.skipped.first() {
        Some(skipped) => Error::NotClonable { path, kind: skipped.reason },
        None => Error::Missing(path),
    })
}

pub(crate) fn refusal(requirement: Requirement, detail: String) -> Error {
    Error::RequirementRefused {
        requirement: Required::Property(requirement),
        refused: Vec::new(),
        detail: Some(detail),
    }
}

/// Each entry was watched while it was cloned. This looks at all of them once more: none may have changed since the beginning, so
/// that the clone is the source as it was at one moment.
pub(crate) fn require_quiet(
    source: &Source,
    exclude: &Exclude,
    since: Moment,
    options: &CloneOptions,
) -> Result<(), Error> {
    let (mounts, threads, cancel) = (options.mounts, thread_count(options.threads), &options.cancel);
    match changed(&Quiet { source, since, exclude, mounts, threads, cancel, renamed: None })? {
        None => Ok(()),
        Some(path) => {
            let path = if path.as_os_str().is_empty() { source.path().to_path_buf() } else { source.path().join(path) };
            Err(refusal(Requirement::Stable, format!("`{}` changed while the clone was made", Shown(path))))
        }
    }
}

/// Compares the staged tree `dst` with its source.
pub(crate) fn verify(
    source: &Source,
    exclude: &Exclude,
    dst: BorrowedFd<'_>,
    told: &NoteSummary,
    options: &CloneOptions,
) -> Result<(), Error> {
    let lost = |code| told.warnings.iter().any(|warning| warning.code == code);
    let comparison = Comparison {
        src: source.directory(),
        dst,
        src_path: source.path(),
        threads: thread_count(options.threads),
        cancel: &options.cancel,
        exclude,
        mounts: options.mounts,
        devices: !told.skipped_for.contains(&NO_DEVICES),
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
fn seal_staged(source: &Source, staging: &Staging<'_>, notes: &Notes, place: &Location) -> Result<(), Error> {
    let failed = |errno| match errno {
        Errno::NOENT => Error::StagingLost(place.parent_path().to_path_buf()),
        _ => Error::io("stat the staged tree of", place.path(), errno),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = crate::sys::open_at(staging.parent(), staging.name(), flags | OFlags::NOFOLLOW, Mode::empty())
        .map_err(failed)?;
    seal(source, root.as_fd(), notes, place.path())
}

/// Gives a directory the source's metadata. `path` is for messages.
pub(crate) fn seal(source: &Source, root: BorrowedFd<'_>, notes: &Notes, path: &Path) -> Result<(), Error> {
    let now = rustix::fs::fstat(root).map_err(|errno| Error::io("stat the staged tree of", path, errno))?;
    let created = Created { uid: now.st_uid, gid: now.st_gid, mask: 0o777 };
    let mut keeper = Keeper::new(created, notes);
    let src = XattrTarget::Open(source.directory());
    let stat = source.stat();
    let _ = sys::copy_nocow(source.directory(), root);
    keeper
        .load_xattrs(src)
        .and_then(|_| {
            let target = Target::Open(root);
            let mode = Some(now.st_mode & 0o7777);
            keeper.keep(src, target, stat, mode, &Default::default)
        })
        .map_err(|fault| Error::io(fault.operation, path, fault.errno))
}

/// Gives a root that was made by one call, and then closed to others, its mode and times back.
pub(crate) fn reopen(root: BorrowedFd<'_>, whole: &Stat, notes: &Notes) -> sys::Result<()> {
    const SET_GID: RawMode = 0o2000;
    rustix::fs::fchmod(root, Mode::from_raw_mode(whole.st_mode & 0o7777))?;
    rustix::fs::futimens(root, &times(whole))?;
    // Nobody but root can set it for a group that they are not in.
    if whole.st_mode & SET_GID != 0 && rustix::fs::fstat(root)?.st_mode & SET_GID == 0 {
        notes.not_kept("set_id_dropped", "set-user-ID or set-group-ID bits", Errno::PERM, Default::default);
    }
    Ok(())
}
