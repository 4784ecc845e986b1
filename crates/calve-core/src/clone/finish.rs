//! Checks a staged clone, and gives its root the metadata of the source.

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, RawMode};
use rustix::io::Errno;

use crate::error::{Error, IoContext, ShownPath};
use crate::options::{CloneOptions, CloneVerification};
use crate::strategy::method::{ClonePart, WholeRoot};
use crate::sys;
use crate::tree::compare::{Comparison, compare, compare_entry};
use crate::tree::fill::metadata::keep_directory;
use crate::tree::held_times::{HeldTimes, times};
use crate::tree::node::full_path;
use crate::tree::notes::{NoteSummary, Notes};
use crate::tree::source::Source;
use crate::tree::stable::{Since, StabilityCheck, changed};
use crate::vocabulary::operation::Operation;
use crate::vocabulary::reason::{SkipReason, WarningCode};
use crate::vocabulary::strategy::Requirement;

/// Checks that `made` is as requested. The source may not have changed since `started`.
pub(super) fn check_made(part: &ClonePart<'_>, made: BorrowedFd<'_>, started: Option<Since>) -> Result<(), Error> {
    let summary = part.notes.summary();
    if let Some((name, _)) = part.source.single() {
        let found = sys::stat_at(made, name);
        if found.err() == Some(Errno::NOENT) {
            let path = part.source.path().to_path_buf();
            return Err(match summary.skipped.first() {
                Some(skipped) => Error::NotClonable { path, kind: skipped.reason.text() },
                // It has gone since it was looked at.
                None => Error::Missing(path),
            });
        }
    }
    if part.options.requires(Requirement::Stable) && !summary.changed.is_empty() {
        let detail = format!("{} entries changed while they were cloned", summary.changed.len());
        return Err(Error::unmet(Requirement::Stable, detail));
    }
    if part.options.verify == CloneVerification::Contents {
        verify(part, made, &summary)?;
    }
    let Some(since) = started else { return Ok(()) };
    // Each entry was watched while it was cloned. None may have changed since the start: the clone is of one moment.
    let ClonePart { source, exclude, options, .. } = *part;
    let check = StabilityCheck { source, since, exclude, options, renamed: None };
    require_stable(&check, "changed while the clone was made")
}

pub(super) fn require_stable(check: &StabilityCheck<'_>, what: &str) -> Result<(), Error> {
    let Some(below) = changed(check)? else { return Ok(()) };
    if check.since.was_set_back() {
        let detail = "the clock was set back, so change times cannot be trusted".into();
        return Err(Error::unmet(Requirement::Stable, detail));
    }
    let root = check.source.path();
    let path = full_path(root, &below);
    Err(Error::unmet(Requirement::Stable, format!("`{}` {what}", ShownPath(path))))
}

fn verify(part: &ClonePart<'_>, made: BorrowedFd<'_>, summary: &NoteSummary) -> Result<(), Error> {
    let lost = |code| summary.warnings.iter().any(|warning| warning.code == code);
    // The call for a whole tree has warned of everything that it drops.
    let is_clonefile = lost(WarningCode::ClonefileDrops);
    let comparison = Comparison {
        src: part.source.directory(),
        dst: made,
        src_path: part.source.path(),
        exclude: part.exclude,
        options: part.options,
        devices: !summary.skipped_for.contains(&SkipReason::Device),
        owners: !lost(WarningCode::OwnerNotKept) && (!is_clonefile || rustix::process::geteuid().is_root()),
        xattrs: !lost(WarningCode::XattrNotKept),
        links: !lost(WarningCode::HardLinkNotKept) && !lost(WarningCode::NotIndependent) && !is_clonefile,
        set_ids: !lost(WarningCode::OwnerNotKept) && !is_clonefile,
        times: if lost(WarningCode::TimesNotKept) { HeldTimes::find(made) } else { HeldTimes::ALL },
    };
    match part.source.single() {
        Some((name, _)) => compare_entry(&comparison, name),
        None => compare(&comparison),
    }
}

pub(super) fn give_metadata(
    source: &Source,
    root: BorrowedFd<'_>,
    options: &CloneOptions,
    notes: &Notes,
    path: &Path,
) -> Result<(), Error> {
    if options.internal.is_left_open(PathBuf::new) {
        return Ok(());
    }
    let now = rustix::fs::fstat(root).io(Operation::Stat, path)?;
    let times = HeldTimes::find(root);
    let (src, stat) = (source.directory(), source.stat());
    let _ = sys::copy_nocow(src, root);
    let keeper = keep_directory((src, stat), (root, &now), times, options.internal.plain.as_ref(), notes)
        .map_err(|fault| Error::io(fault.operation, path, fault.errno))?;
    keeper.set_flags(root, keeper.flags(src), stat, &Default::default);
    Ok(())
}

/// Restores mode and times of a root that was made by one call and then closed to others.
pub(super) fn reopen(root: BorrowedFd<'_>, whole: &WholeRoot, notes: &Notes) -> sys::Result<()> {
    const SET_GID: RawMode = 0o2000;
    let WholeRoot { stat: whole, locks } = whole;
    rustix::fs::fchmod(root, Mode::from_raw_mode(whole.st_mode & 0o7777))?;
    rustix::fs::futimens(root, &times(whole))?;
    // Only root can set it for a group that it is not in.
    if whole.st_mode & SET_GID != 0 && rustix::fs::fstat(root)?.st_mode & SET_GID == 0 {
        notes.not_kept(WarningCode::SetIdDropped, "set-user-ID or set-group-ID bits", Errno::PERM, Default::default);
    }
    sys::lock(root, *locks)
}
