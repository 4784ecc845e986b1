//! `calve rm --pending`: trash that could not be deleted when it was removed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use calve_core::{Background, CancelToken, Error, Remedy, RemoveReport, ShownPath, is_trash, pending_trash};
use calve_receipt::{PendingReceipt, PendingReceipts, PendingState};

use crate::cli::RmArguments;
use crate::failure::{FAILED, Failure};
use crate::output;
use crate::sys::is_root;
use crate::wording::word;

pub(super) fn run(arguments: &RmArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let mut receipts = PendingReceipts { pending: Vec::new() };
    let mut failed = false;
    for directory in directories(&arguments.paths) {
        let before = pending_trash(&directory)?;
        let may_try = !arguments.dry_run && !before.is_empty();
        let failure = may_try.then(|| try_again(&directory, cancel)).transpose()?.flatten();
        let after = if arguments.dry_run { before.clone() } else { pending_trash(&directory)? };
        if before.is_empty() {
            output::note(&format!("nothing waits to be deleted in `{}`", ShownPath(&directory)));
        }
        for trash in &before {
            let left = after.iter().find(|left| left.path == trash.path);
            let state = match left {
                None => PendingState::Deleted,
                Some(left) if left.is_stuck => PendingState::Stuck,
                Some(_) => PendingState::Waiting,
            };
            let mut receipt = PendingReceipt::new(trash, state);
            receipt.reason = failure.as_ref().filter(|error| is_about(error, &trash.path)).map(Error::to_string);
            receipts.pending.push(receipt);
            output::note(&sentence(&trash.path, state, arguments.dry_run));
        }
        if let Some(error) = failure {
            failed = true;
            let stuck = after.iter().find(|trash| trash.is_stuck);
            let hint = stuck.map(|trash| hint(&trash.path, &error) + "; then run this again");
            output::error(&error.to_string(), hint.as_deref());
        }
    }
    if arguments.json {
        output::json(&receipts)?;
    }
    if failed { Err(Failure::Reported(FAILED)) } else { Ok(()) }
}

/// Deletes what can be deleted, and returns the first reason why not everything could.
fn try_again(directory: &Path, cancel: &CancelToken) -> Result<Option<Error>, Failure> {
    let opened = fs_err::File::open(directory)?.into();
    Ok(calve_core::reap(opened, directory, Background::No, cancel)?.failure)
}

fn is_about(error: &Error, trash: &Path) -> bool {
    matches!(error, Error::Io { path, .. } if path.starts_with(trash))
}

/// Returns the directories that trash of these paths would be in: beside them, and in them.
fn directories(paths: &[PathBuf]) -> BTreeSet<PathBuf> {
    let mut directories = BTreeSet::new();
    for path in paths {
        let parent = path.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
        directories.extend(parent.filter(|parent| parent.is_dir()).map(Path::to_path_buf));
        directories.extend(path.is_dir().then(|| path.clone()));
    }
    if paths.is_empty() {
        directories.insert(".".into());
    }
    directories
}

fn sentence(path: &Path, state: PendingState, dry_run: bool) -> String {
    let path = ShownPath(path);
    match state {
        PendingState::Stuck if dry_run => format!("`{path}` could not be deleted"),
        PendingState::Stuck => format!("`{path}` is still there"),
        PendingState::Waiting if dry_run => format!("`{path}` waits to be deleted"),
        PendingState::Waiting => format!("`{path}` is being deleted by another process"),
        PendingState::Deleted => format!("deleted `{path}`"),
    }
}

fn hint(trash: &Path, error: &Error) -> String {
    if let Error::Io { path, .. } = error
        && error.remedy() == Some(Remedy::RunAsOwnerOrClearImmutable)
        && is_root()
    {
        let path = word(path);
        return format!("it may be marked as immutable or append-only (lsattr); clear that: chattr -ia {path}");
    }
    format!("delete what other users own as root: sudo calve rm --wait {}", word(trash))
}

/// Says that a tree is out of sight and not deleted, where `calve rm --wait` failed half-way.
pub(super) fn left_in_trash(path: &Path, error: Error) -> Failure {
    let Error::Io { path: place, .. } = &error else { return error.into() };
    let is_trash = |above: &&Path| above.file_name().is_some_and(|name| is_trash(name.as_encoded_bytes()));
    let Some(trash) = place.ancestors().find(is_trash).filter(|trash| *trash != path) else { return error.into() };
    let text = format!("`{}` is out of sight, but not all of it could be deleted: {error}", ShownPath(path));
    let again = trash.parent().filter(|parent| !parent.as_os_str().is_empty());
    let again = again.map(|parent| format!("; `calve rm --pending {}` tries again", word(parent)));
    Failure::stated(FAILED, text, hint(trash, &error) + &again.unwrap_or_default())
}

/// Warns of trash beside the removed tree that an earlier removal could not delete.
pub(super) fn warn_of_stuck(report: &RemoveReport) {
    let parent = report.path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    for trash in pending_trash(parent).unwrap_or_default().iter().filter(|trash| trash.is_stuck) {
        let path = ShownPath(&trash.path);
        output::say(&format!(
            "warning: `{path}`, removed earlier, could not be deleted; `calve rm --pending {}` says why",
            ShownPath(parent)
        ));
    }
}
