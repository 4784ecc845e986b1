//! Deleting trees, and what earlier runs left. Links are removed, never followed.

use std::io;
use std::path::Path;

use windows_sys::Win32::Foundation::ERROR_ACCESS_DENIED;
use windows_sys::Win32::Storage::FileSystem::FILE_ATTRIBUTE_READONLY;

use super::location::Location;
use super::lock::{Lock, recognise};
use crate::error::Error;
use crate::hidden::Purpose;
use crate::operation::Operation;
use crate::options::CloneOptions;
use crate::progress::{CancelToken, Progress};
use crate::reap::SweepReport;
use crate::sys;

/// Options for deleting.
#[derive(Clone, Copy)]
pub(super) struct Deletion<'a> {
    pub(super) progress: &'a Progress,
    pub(super) cancel: &'a CancelToken,
}

/// Deletes the entry at `path`, and everything in it. Returns how many entries there were. `shown` is its path for messages.
pub(super) fn delete(path: &Path, shown: &Path, deletion: Deletion<'_>) -> Result<u64, Error> {
    let failed = |operation| move |error| Error::io(operation, shown, error);
    let info = match sys::look(path) {
        Err(error) if is_gone(&error) => return Ok(0),
        other => other.map_err(failed(Operation::Stat))?,
    };
    if !info.is_directory() || info.is_link() {
        one(path, info.is_directory()).map_err(failed(Operation::Remove))?;
        deletion.progress.add(1, 0);
        return Ok(1);
    }
    let mut deleted = 0;
    // Held open until it is empty: nobody can put a link in its place while the entries are named by their paths.
    if let Some(pinned) = sys::patiently(sys::PATIENCE, || sys::pin(path)).map_err(failed(Operation::OpenDirectory))? {
        for entry in std::fs::read_dir(path).map_err(failed(Operation::ReadDirectory))? {
            let entry = entry.map_err(failed(Operation::ReadDirectory))?;
            if deletion.cancel.is_cancelled() {
                return Err(Error::Interrupted);
            }
            deleted += delete(&entry.path(), &shown.join(entry.file_name()), deletion)?;
        }
        drop(pinned);
    }
    one(path, true).map_err(failed(Operation::RemoveDirectory))?;
    deletion.progress.add(1, 0);
    Ok(deleted + 1)
}

/// Removes a file, an empty directory, or a link of either kind.
fn one(path: &Path, is_directory: bool) -> io::Result<()> {
    let remove = || match if is_directory { std::fs::remove_dir(path) } else { std::fs::remove_file(path) } {
        Err(error) if is_gone(&error) => Ok(()),
        other => other,
    };
    match sys::patiently(sys::PATIENCE, remove) {
        Err(error) if sys::is(&error, ERROR_ACCESS_DENIED) => {
            let info = sys::look(path)?;
            if info.attributes & FILE_ATTRIBUTE_READONLY == 0 {
                return Err(error);
            }
            sys::set_attributes(path, info.attributes & !FILE_ATTRIBUTE_READONLY)?;
            sys::patiently(sys::PATIENCE, remove)
        }
        other => other,
    }
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

/// Deletes what a lock protects.
pub(super) fn delete_protected(lock: &Lock, shown: &Path, deletion: Deletion<'_>) -> Result<u64, Error> {
    let path = lock.path();
    match sys::look(&path) {
        Err(error) if is_gone(&error) => Ok(0),
        Err(error) => Err(Error::io(Operation::Stat, shown, error)),
        Ok(info) if lock.protects(info.identity) => delete(&path, shown, deletion),
        // Made, and not written down any more; or it is somebody else's, and not empty.
        Ok(_) => std::fs::remove_dir(&path).map(|()| 1).map_err(|error| Error::io(Operation::Remove, shown, error)),
    }
}

/// Deletes the staged trees beside `destination` that killed processes have left.
pub(crate) fn sweep_staged(destination: &Location, options: &CloneOptions) -> Result<SweepReport, Error> {
    let deletion = Deletion { progress: &options.progress, cancel: &options.cancel };
    sweep(destination.parent(), &destination.given_parent(), Purpose::Staging, deletion)
}

/// Deletes every hidden name of that purpose, of this user and machine, whose lock is free. A held lock means that its maker lives.
pub(super) fn sweep(
    parent: &Path,
    shown_parent: &Path,
    purpose: Purpose,
    deletion: Deletion<'_>,
) -> Result<SweepReport, Error> {
    let failed = |error| Error::io(Operation::ReadDirectory, shown_parent, error);
    let mut swept = SweepReport::default();
    let mut seen = Vec::new();
    for entry in std::fs::read_dir(parent).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let Some(hidden) = recognise(&name) else { continue };
        if seen.iter().any(|known| known == hidden.name) {
            continue;
        }
        seen.push(hidden.name.to_owned());
        if hidden.purpose != purpose {
            swept.saw_trash |= hidden.purpose == Purpose::Trash;
            continue;
        }
        let has_lock = sys::look(&parent.join(format!("{}{}", hidden.name, crate::hidden::LOCK_SUFFIX))).is_ok();
        let lock = if has_lock { Lock::take(parent, hidden.name).unwrap_or_default() } else { None };
        let Some(lock) = lock else {
            swept.saw_trash |= purpose == Purpose::Trash && has_lock;
            continue;
        };
        let shown = shown_parent.join(hidden.name);
        match delete_protected(&lock, &shown, deletion) {
            Ok(deleted) => {
                swept.deleted_entries += deleted;
                swept.removed.extend((deleted > 0).then_some(shown));
                lock.remove();
            }
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => {
                swept.saw_trash |= purpose == Purpose::Trash;
                swept.failure.get_or_insert(error);
            }
        }
    }
    Ok(swept)
}
