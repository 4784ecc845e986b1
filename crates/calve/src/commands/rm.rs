//! `calve rm`.

use std::path::Path;
use std::sync::Arc;

use calve_core::{
    CancelToken, Error, Progress, Remedy, RemovalWait, RemoveOptions, RemoveReport, ShownPath, is_trash, pending_trash,
    remove_tree,
};

use super::{protected, reap};
use crate::cli::RmArguments;
use crate::failure::{FAILED, Failure, INTERRUPTED};
use crate::output;
use crate::progress_bar::Watch;
use crate::sys::is_root;
use crate::wording::word;
use calve_receipt::human::{duration, entries};
use calve_receipt::{RemoveReceipt, RemoveReceipts, path as receipt_path};

pub(crate) fn run(arguments: &RmArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let mut options = RemoveOptions::default();
    options.wait = if arguments.wait { RemovalWait::Yes } else { RemovalWait::No };
    options.protect = protected();
    options.progress = Arc::new(Progress::default());
    options.cancel = cancel.clone();
    let mut receipts = RemoveReceipts { removed: Vec::new(), would_remove: arguments.dry_run.then(Vec::new) };
    let mut worst = 0;
    for path in &arguments.paths {
        match one(path, arguments, &options, &mut receipts) {
            Ok(()) => {}
            // As rm does: the others are still removed.
            Err(failure) if arguments.paths.len() > 1 && failure.code() != INTERRUPTED => {
                output::failure(&failure);
                worst = worst.max(failure.code());
            }
            Err(failure) => return Err(failure),
        }
    }
    if arguments.json {
        output::json(&receipts)?;
    }
    if worst > 0 { Err(Failure::Reported(worst)) } else { Ok(()) }
}

/// No reaper is started: who interrupts may want the disk to be quiet.
const UNFINISHED: &str =
    "the rest has a hidden name, .calve-trash-*; the next `calve cp` or `calve rm` in that directory deletes it";

/// Removes one tree and adds it to the receipts. In a dry run, adds its path alone.
fn one(
    path: &Path,
    arguments: &RmArguments,
    options: &RemoveOptions,
    receipts: &mut RemoveReceipts,
) -> Result<(), Failure> {
    if arguments.dry_run {
        match calve_core::check_removable(path, options) {
            Err(Error::Missing(_)) if arguments.force => return Ok(()),
            other => other?,
        }
        output::note(&format!("would remove `{}`", ShownPath(path)));
        receipts.would_remove.get_or_insert_default().push(receipt_path(path));
        return Ok(());
    }
    let watch = Watch::start("deleted", &options.progress);
    let removed = remove_tree(path, options);
    drop(watch);
    let report = match removed {
        Err(Error::Missing(_)) if arguments.force => return Ok(()),
        Err(Error::Interrupted) => return Err(Failure::Interrupted(UNFINISHED)),
        Err(error) => return Err(left_in_trash(path, error)),
        other => other?,
    };
    if let Some(trashed) = &report.trashed {
        reap::start(&trashed.parent);
    }
    if !output::is_quiet() {
        output::say(&sentence(&report));
        for warning in &report.warnings {
            output::say(&format!("warning: {}", warning.message));
        }
        warn_of_stuck(&report);
    }
    receipts.removed.push(RemoveReceipt::from(&report));
    Ok(())
}

fn sentence(report: &RemoveReport) -> String {
    let took = duration(report.elapsed);
    let path = ShownPath(&report.path);
    match &report.trashed {
        Some(_) => format!("removed `{path}` in {took}; its files are being deleted in the background"),
        None => format!("removed `{path}`: {} deleted in {took}", entries(report.deleted)),
    }
}

/// Says that a tree is out of sight and not deleted, where `calve rm --wait` failed half-way.
fn left_in_trash(path: &Path, error: Error) -> Failure {
    let Error::Io { path: place, .. } = &error else { return error.into() };
    let is_trash = |above: &&Path| above.file_name().is_some_and(|name| is_trash(name.as_encoded_bytes()));
    let Some(trash) = place.ancestors().find(is_trash).filter(|trash| *trash != path) else { return error.into() };
    let text = format!("`{}` was moved to the trash, but deleting it there failed: {error}", ShownPath(path));
    let trash = word(trash);
    let hint = if error.remedy() == Some(Remedy::RunAsOwnerOrClearImmutable) && is_root() {
        let place = word(place);
        format!(
            "it may be marked as immutable or append-only (lsattr); clear that: chattr -ia {place}; then calve rm --wait {trash}"
        )
    } else {
        format!("delete what other users own as root: sudo calve rm --wait {trash}")
    };
    Failure::stated(FAILED, text, hint)
}

/// Warns of trash beside the removed tree that an earlier removal could not delete.
fn warn_of_stuck(report: &RemoveReport) {
    let parent = report.path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    for trash in pending_trash(parent).unwrap_or_default().iter().filter(|trash| trash.is_stuck) {
        let (path, command) = (ShownPath(&trash.path), word(&trash.path));
        output::say(&format!(
            "warning: `{path}`, removed earlier, could not be deleted; `calve rm --wait {command}` says why"
        ));
    }
}
