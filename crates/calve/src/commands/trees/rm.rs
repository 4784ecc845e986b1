use std::path::{Path, PathBuf};

use calve_core::error::Remedy;
use calve_core::internal::{ShownPath, check_removable, is_trash, pending_trash};
use calve_core::{CancelToken, Error, RemovalWait, RemoveOptions, RemoveReport, remove_tree};
use calve_git::environment::{check_original, linked_entry};

use crate::cli::RmArguments;
use crate::failure::{FAILED, Failure};
use crate::progress_bar::watched;
use crate::sys::is_root;
use crate::wording::word;
use crate::{home, operands, output, real_path, reaper};
use calve_receipt::human::{duration, entries};
use calve_receipt::{RemoveReceipts, path as receipt_path};

pub(crate) fn run(arguments: &RmArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let wait = if arguments.wait { RemovalWait::Yes } else { RemovalWait::No };
    let (protect, cancel) = (home::protected(), cancel.clone());
    let options = RemoveOptions { wait, protect, cancel, ..RemoveOptions::default() };
    let mut receipts = RemoveReceipts { removed: Vec::new(), would_remove: arguments.dry_run.then(Vec::new) };
    let mut gone = Vec::new();
    let ended = operands::each(&arguments.paths, |path| {
        check_no_worktree(path, arguments.force)?;
        match arguments.dry_run {
            true => plan_one(path, arguments, &options, &mut gone, &mut receipts),
            false => remove_one(path, arguments, &options, &mut receipts),
        }
    })?;
    output::json_if(arguments.json, &receipts)?;
    ended
}

/// Starts no reaper: the interrupting user may want a quiet disk.
const UNFINISHED: &str =
    "the rest has a hidden name, .calve-trash-*; the next `calve cp` or `calve rm` in that directory deletes it";

/// Fails for a linked worktree, which may have work that exists nowhere else. A copy of one is an ordinary tree.
fn check_no_worktree(path: &Path, is_forced: bool) -> Result<(), Failure> {
    if is_forced || path.is_symlink() || linked_entry(path).is_none() || check_original(path).is_err() {
        return Ok(());
    }
    let text = format!("refusing to remove `{}`: it is a git worktree", ShownPath(path));
    let word = word(path);
    let hint = format!("`calve worktree remove {word}` removes it, and loses no work; `-f` removes its files alone");
    Err(Failure::stated(FAILED, text, hint))
}

/// Adds a tree that would be removed, unless an earlier removal would take it along.
fn plan_one(
    path: &Path,
    arguments: &RmArguments,
    options: &RemoveOptions,
    gone: &mut Vec<PathBuf>,
    receipts: &mut RemoveReceipts,
) -> Result<(), Failure> {
    let real = real_path::parent(path).canonicalize().map(|parent| parent.join(path.file_name().unwrap_or_default()));
    let real = real.unwrap_or_else(|_| path.to_path_buf());
    let checked = match gone.iter().any(|gone| real.starts_with(gone)) {
        true => Err(Error::Missing(path.to_path_buf())),
        false => check_removable(path, options),
    };
    match checked {
        Err(Error::Missing(_)) if arguments.force => return Ok(()),
        other => other?,
    }
    output::note(&format!("would remove `{}`", ShownPath(path)));
    receipts.would_remove.get_or_insert_default().push(receipt_path(path));
    gone.push(real);
    Ok(())
}

fn remove_one(
    path: &Path,
    arguments: &RmArguments,
    options: &RemoveOptions,
    receipts: &mut RemoveReceipts,
) -> Result<(), Failure> {
    let report = match watched("deleted", &options.progress, || remove_tree(path, options)) {
        Err(Error::Missing(_)) if arguments.force => return Ok(()),
        Err(Error::Interrupted) => return Err(Failure::interrupted(UNFINISHED)),
        Err(error) => return Err(left_in_trash(path, error)),
        other => other?,
    };
    if let Some(trashed) = &report.trashed {
        reaper::start(&trashed.parent);
    }
    output::note(&sentence(&report));
    report.warnings.iter().for_each(|warning| output::warn(&warning.message));
    warn_of_stuck(&report);
    receipts.removed.push(report);
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

/// Reports a tree that is hidden but not deleted, after `calve rm --wait` failed half-way.
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

/// Warns of trash beside the removed tree that earlier removals could not delete.
fn warn_of_stuck(report: &RemoveReport) {
    for trash in
        pending_trash(real_path::parent(&report.path)).unwrap_or_default().iter().filter(|trash| trash.is_stuck)
    {
        let (path, command) = (ShownPath(&trash.path), word(&trash.path));
        output::warn(&format!("`{path}`, removed earlier, could not be deleted; `calve rm --wait {command}` says why"));
    }
}
