//! Removing: out of sight at once, deleted later.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use windows_sys::Win32::Foundation::{ERROR_ACCESS_DENIED, ERROR_DIRECTORY};

use super::delete::{Deletion, delete, delete_protected, sweep};
use super::guard;
use super::location::{Location, code, ends_with_separator, resolve};
use super::lock::Lock;
use crate::error::{Error, Protection};
use crate::hidden::Purpose;
use crate::operation::Operation;
use crate::options::{Background, RemovalWait, RemoveOptions};
use crate::progress::CancelToken;
use crate::progress::Progress;
use crate::reap::reap_all;
use crate::report::{ReapReport, RemoveReport, TrashedTree};
use crate::sys;

/// Removes whatever is at `path`.
///
/// A directory is renamed to a hidden trash sibling, which takes the same time whatever its size; [`reap`] deletes it later. With
/// [`RemovalWait::Yes`] it is deleted before the call returns. A directory in which a program has something open cannot be renamed: then
/// nothing is removed. Links are removed, never followed.
///
/// # Errors
/// [`Error::Protected`] for the root of a volume, a mounted volume, what the current directory is in, and whatever
/// [`RemoveOptions::protect`] names.
pub fn remove_tree(path: &Path, options: &RemoveOptions) -> Result<RemoveReport, Error> {
    let started = Instant::now();
    let location = open(path)?;
    guard::check(&location, &options.protect)?;
    let deletion = Deletion { progress: &options.progress, cancel: &options.cancel };
    let mut trashed = None;
    let mut deleted = 0;
    if location.look()?.is_some_and(|info| info.is_directory() && !info.is_link()) {
        let lock = move_to_trash(&location)?;
        let hidden = TrashedTree { parent: location.given_parent(), name: lock.name().into() };
        if options.wait == RemovalWait::Yes {
            deleted = delete_protected(&lock, &hidden.parent.join(&hidden.name), deletion)?;
            lock.remove();
        } else {
            trashed = Some(hidden);
        }
    } else {
        if ends_with_separator(path) {
            return Err(Error::io(Operation::OpenDirectory, path, code(ERROR_DIRECTORY)));
        }
        deleted = delete(location.path(), path, deletion)?;
    }
    let warnings = Vec::new();
    Ok(RemoveReport { path: path.to_path_buf(), trashed, deleted, warnings, elapsed: started.elapsed() })
}

/// Returns whether [`remove_tree`] would refuse: the same checks, and nothing else.
pub fn check_removable(path: &Path, options: &RemoveOptions) -> Result<(), Error> {
    guard::check(&open(path)?, &options.protect)
}

fn open(path: &Path) -> Result<Location, Error> {
    Location::of_existing(path)?
        .ok_or_else(|| Error::Protected { path: path.to_path_buf(), reason: Protection::NoName })
}

fn move_to_trash(location: &Location) -> Result<Lock, Error> {
    let failed = |error| Error::io(Operation::MoveToTrash, location.given(), error);
    let lock = Lock::reserve(location.parent(), Purpose::Trash).map_err(failed)?;
    let recorded = sys::look(location.path()).and_then(|info| lock.record(info.identity));
    let rename = || match sys::rename_no_replace(location.path(), &lock.path()) {
        // How a directory is refused in which something is open.
        Err(error) if sys::is(&error, ERROR_ACCESS_DENIED) => Err(sys::in_use()),
        other => other,
    };
    if let Err(error) = recorded.and_then(|()| sys::patiently(sys::PATIENCE, rename)) {
        lock.remove();
        return Err(failed(error));
    }
    let trash = lock.path();
    sys::hide(&trash);
    hide_from_git(&trash);
    Ok(lock)
}

/// Keeps git from listing the trash as untracked files. Best effort.
fn hide_from_git(trash: &Path) {
    // A repository inside a repository is listed whatever its ignore files say.
    let _ = sys::rename_no_replace(&trash.join(".git"), &trash.join(".git.calve-trash"));
    // The old file is removed, never written to: it may have another name in a tree that stays.
    let ignore = trash.join(".gitignore");
    let _ = std::fs::remove_file(&ignore);
    let _ = std::fs::File::create_new(&ignore).and_then(|mut file| file.write_all(b"*\n"));
}

/// Deletes the trash of this user in the directory `parent`: all that no living process is busy with.
///
/// `background`: also gives this **process** the lowest priority. Only for a process that does nothing else.
pub fn reap(parent: &Path, background: Background, cancel: &CancelToken) -> Result<ReapReport, Error> {
    if background == Background::Yes {
        sys::lower_priority();
    }
    let resolved = resolve(parent).map_err(|error| Error::io(Operation::OpenDirectory, parent, error))?;
    let deletion = Deletion { progress: &Progress::default(), cancel };
    reap_all(background, || sweep(&resolved, parent, Purpose::Trash, deletion))
}

/// Starts `program __reap PARENT`, a process of its own that is expected to call [`reap`]. Nobody who reads this process's output waits
/// for it, and it outlives this process.
pub fn start_reaper(program: &Path, parent: &Path) -> std::io::Result<()> {
    sys::spawn_detached(program, &["__reap".as_ref(), resolve(parent)?.as_os_str()])
}
