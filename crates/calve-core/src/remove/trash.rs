//! Moving a tree out of sight in one step. The reaper deletes it.

use std::ffi::CStr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::error::{Error, Protection};
use crate::report::TrashedTree;
use crate::sys;
use crate::tree::location::{DIRECTORY, any_upwards, identity};
use crate::tree::lock::{Lock, Purpose};
use crate::vocabulary::operation::Operation;

/// Hides the trash from `git status`; deleted last.
pub(crate) const GITIGNORE: &CStr = c".gitignore";

/// Renames the directory `name` to a trash name beside it. Fails if the parent is not writable. Returns the lock, to
/// delete under it or to leave it to the reaper.
///
/// No system call renames only a certain directory. So this checks the entry under the trash name, and renames it back
/// unless it is `expected`. The lock keeps reapers away in between.
pub(crate) fn move_in(
    parent: BorrowedFd<'_>,
    name: &CStr,
    parent_path: &Path,
    expected: Option<(u64, u64)>,
) -> Result<(TrashedTree, Lock), Error> {
    let path = || parent_path.join(sys::path(name));
    let failed = |errno| Error::io(Operation::MoveToTrash, path(), errno);
    let named = |name| sys::stat_at(parent, name).map(|stat| identity(&stat));
    let moved = match expected {
        Some(expected) => expected,
        None => named(name).map_err(failed)?,
    };
    // Its name is random, and nothing else gets it while the lock is held.
    let lock = Lock::reserve(parent, Purpose::Trash).map_err(failed)?;
    if let Err(errno) = lock.record(moved).and_then(|()| rename_to_new(parent, name, parent, lock.name())) {
        lock.remove(parent);
        return Err(failed(errno));
    }
    if named(lock.name()).map_err(failed)? != moved && expected.is_some() {
        let stays_at = match sys::rename_no_replace(parent, lock.name(), parent, name) {
            Ok(()) => {
                lock.remove(parent);
                None
            }
            Err(_) => {
                let hidden = parent_path.join(sys::path(lock.name()));
                lock.leave();
                Some(hidden)
            }
        };
        return Err(Error::Protected { path: path(), reason: Protection::Exchanged(stays_at) });
    }
    close(parent, lock.name(), moved);
    let name = sys::path(lock.name()).into();
    Ok((TrashedTree { parent: parent_path.to_path_buf(), name }, lock))
}

/// Renames to a new name. A file system without the flag of the rename would replace an existing entry.
pub(crate) fn rename_to_new(from: BorrowedFd<'_>, name: &CStr, to: BorrowedFd<'_>, new: &CStr) -> sys::Result<()> {
    match sys::rename_no_replace(from, name, to, new) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => rustix::fs::renameat(from, name, to, new),
        other => other,
    }
}

/// Returns whether a directory may be in a git repository: hiding trash in a new btrfs snapshot takes as long as the
/// rest of the removal. Misses a worktree that only `core.worktree` or GIT_DIR names.
fn may_be_in_repository(directory: BorrowedFd<'_>) -> bool {
    // An inaccessible name counts as one.
    let has_git = |at: BorrowedFd<'_>, _| !matches!(sys::stat_at(at, c".git"), Err(Errno::NOENT));
    any_upwards(directory, has_git).unwrap_or(true)
}

/// Closes the trash to other users, and hides it from git. Best effort: an unwritable tree shows until it is deleted.
fn close(parent: BorrowedFd<'_>, trash: &CStr, moved: (u64, u64)) {
    let Ok(root) = sys::open_at(parent, trash, DIRECTORY) else { return };
    // Another process may have put another directory there.
    if !rustix::fs::fstat(&root).is_ok_and(|stat| identity(&stat) == moved) {
        return;
    }
    let _ = rustix::fs::fchmod(&root, Mode::RWXU);
    if !may_be_in_repository(parent) {
        return;
    }
    // Git lists a nested repository whatever the ignore files say.
    let _ = rustix::fs::renameat(&root, c".git", &root, c".git.calve-trash");
    // The old file is unlinked, never written: it may have another name in a tree that stays.
    let _ = rustix::fs::unlinkat(&root, GITIGNORE, AtFlags::empty());
    hide_from_git(root.as_fd());
}

/// Writes rules that ignore everything in a directory, if it has none.
pub(super) fn hide_from_git(directory: BorrowedFd<'_>) {
    if let Ok(file) = sys::create_at(directory, GITIGNORE, OFlags::WRONLY, Mode::RUSR | Mode::WUSR) {
        let _ = rustix::io::write(&file, b"*\n");
    }
}
