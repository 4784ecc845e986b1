use std::path::{Path, PathBuf};

use calve_core::error::PrivateError;
use calve_core::internal::{EntryKind, ShownPath};
use calve_core::overlay_run::{Changes, ChangesUse, PrivateOverlay};
use calve_core::{CancelToken, CloneOptions, CloneReport, Error};
use calve_receipt::human::{count, counted};

use crate::failure::{Failure, USAGE};
use crate::host::Program;
use crate::wording::word;
use crate::{home, output, real_path, wording};

pub(super) struct PrivateCopy {
    pub(super) overlay: PrivateOverlay,
    pub(super) changes: Changes,
}

/// Counts the changes. A file turned directory counts as deleted; directories count only if no file is involved.
pub(super) fn summary(changes: &Changes) -> String {
    let is_file = |kind: Option<EntryKind>| kind.is_some_and(|kind| kind != EntryKind::Directory);
    let (mut changed, mut new, mut deleted, mut directories) = (0, 0, 0, 0);
    for change in changes.iter() {
        *match (is_file(change.before), is_file(change.after)) {
            (true, true) => &mut changed,
            (false, true) => &mut new,
            (true, false) => &mut deleted,
            (false, false) => &mut directories,
        } += 1;
    }
    if changes.is_empty() {
        return if changes.are_of_times() { "only times changed" } else { "nothing changed" }.into();
    }
    let mut text = format!("{} changed, {} new, {} deleted", counted(changed, "file"), count(new), count(deleted));
    if directories > 0 {
        text += &format!("; {}", counted(directories, "directory"));
    }
    text
}

pub(super) fn keep_copy(overlay: &PrivateOverlay, dst: &Path, cancel: &CancelToken) -> Result<CloneReport, Error> {
    let options = CloneOptions { cancel: cancel.clone(), ..CloneOptions::default() };
    let report = overlay.keep(dst, &options)?;
    wording::clone::attention(&report).iter().for_each(|line| output::warn(line));
    Ok(report)
}

/// Keeps a copy beside the tree that did not take the changes, maybe hours of work. Returns true if nothing is lost.
pub(super) fn keep_beside(copy: &PrivateCopy, error: &Error) -> bool {
    match error {
        Error::Private(PrivateError::HalfApplied { .. }) => return true,
        Error::Interrupted => return false,
        _ if copy.changes.is_empty() => return true,
        _ => {}
    }
    let dst = free_name_beside(copy.overlay.tree());
    match copy.overlay.keep(&dst, &CloneOptions::default()) {
        Ok(report) => {
            output::warn(&format!("a copy with the command's changes is kept in `{}`", ShownPath(&dst)));
            wording::clone::attention(&report).iter().for_each(|line| output::warn(line));
            true
        }
        Err(error) => {
            output::failure(&error.into());
            false
        }
    }
}

/// Moves the changed entries to a permanent place, which takes neither time nor disk space.
pub(super) fn set_aside(copy: &mut PrivateCopy) {
    let overlay = &mut copy.overlay;
    if overlay.changes(ChangesUse::Show).is_ok_and(|changes| changes.is_empty()) {
        return;
    }
    let aside = changes_directory(None).map(|directory| directory.join(overlay.tree().file_name().unwrap_or_default()));
    let aside = aside.map(|tree| free_name_beside(&tree));
    match aside.and_then(|dst| Ok(overlay.set_aside(&dst).map(|()| dst)?)) {
        Ok(dst) => output::warn(&format!(
            "the entries that the command changed in `{}` are kept in `{}`; a character device stands for one that it deleted",
            ShownPath(overlay.tree()),
            ShownPath(&dst)
        )),
        Err(failure) => drop(output::failure(&failure)),
    }
}

/// Names what [`set_aside`] kept of trees of this name: its message may have gone with the terminal.
pub(super) fn say_set_aside(directory: &Path, tree: &Path) {
    let all = fs_err::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    for path in all.filter(|path| path.file_stem() == tree.file_name()) {
        let (shown, word) = (ShownPath(&path), word(&path));
        output::note(&format!(
            "an earlier run's changes are still in `{shown}`: copy what you need, then calve rm {word}"
        ));
    }
}

fn free_name_beside(tree: &Path) -> PathBuf {
    let mut name = tree.file_name().unwrap_or_default().to_os_string();
    name.push(".run");
    let free = (1..).map(|number| {
        let mut name = name.clone();
        if number > 1 {
            name.push(format!("-{number}"));
        }
        tree.with_file_name(name)
    });
    free.take(1000).find(|dst| dst.symlink_metadata().is_err()).unwrap_or_else(|| tree.to_path_buf())
}

/// Returns the absolute path of a destination. Fails if it exists, or if an overlay would hide it.
pub(super) fn outside(dst: &Path, tree: &Path) -> Result<PathBuf, Failure> {
    let dst = std::path::absolute(dst)?;
    let parent = real_path::resolve(dst.parent().unwrap_or(&dst))?;
    if parent.starts_with(tree) {
        return Err(Failure::stated(
            USAGE,
            format!("`{}` is inside `{}`", ShownPath(&dst), ShownPath(tree)),
            "name a destination outside of the directory",
        ));
    }
    if dst.symlink_metadata().is_ok() {
        return Err(Error::DestinationExists(dst).into());
    }
    Ok(dst.file_name().map_or_else(|| dst.clone(), |name| parent.join(name)))
}

/// Returns the directory for changes while the command runs. Fails if it is in `tree`, where the command would see it.
pub(super) fn changes_directory(tree: Option<&Path>) -> Result<PathBuf, Failure> {
    let changes = calve_env::required_home(&Program, "changes")?.join("runs");
    // Check before creating anything.
    let there = changes.ancestors().find(|above| above.exists()).unwrap_or(&changes);
    if let Some(tree) = tree
        && real_path::resolve(there)?.starts_with(tree)
    {
        return Err(Error::Private(PrivateError::ChangesInside(changes)).into());
    }
    home::make(&changes)?;
    Ok(changes)
}
