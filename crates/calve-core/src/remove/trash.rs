//! Moving a tree out of sight in one step. Deleting it is the reaper's work.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
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

/// Renames the directory `name` to a trash name beside it. Fails where the parent cannot be written to. The caller gets the lock: to delete
/// under it, or to leave it to the reaper.
///
/// No system call renames only a certain directory. So this checks what has come under the trash name, and renames it back if it is not
/// the one `expected`. The lock keeps reapers from deleting it in between.
pub(crate) fn move_in(
    parent: BorrowedFd<'_>,
    name: &CStr,
    parent_path: &Path,
    expected: Option<(u64, u64)>,
) -> Result<(TrashedTree, Lock), Error> {
    let path = || parent_path.join(OsStr::from_bytes(name.to_bytes()));
    let failed = |errno| Error::io(Operation::MoveToTrash, path(), errno);
    let named = |name| rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| identity(&stat));
    let moved = match expected {
        Some(expected) => expected,
        None => named(name).map_err(failed)?,
    };
    let lock = Lock::reserve(parent, Purpose::Trash).map_err(failed)?;
    if let Err(errno) = lock.record(moved).and_then(|()| rename(parent, name, lock.name())) {
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
                let hidden = parent_path.join(OsStr::from_bytes(lock.name().to_bytes()));
                lock.leave();
                Some(hidden)
            }
        };
        return Err(Error::Protected { path: path(), reason: Protection::Exchanged(stays_at) });
    }
    close(parent, lock.name(), moved);
    let name = OsStr::from_bytes(lock.name().to_bytes()).to_owned();
    Ok((TrashedTree { parent: parent_path.to_path_buf(), name }, lock))
}

fn rename(parent: BorrowedFd<'_>, name: &CStr, trash: &CStr) -> sys::Result<()> {
    match sys::rename_no_replace(parent, name, parent, trash) {
        // The trash's name is random and its lock is held: nothing is there to be replaced.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => rustix::fs::renameat(parent, name, parent, trash),
        other => other,
    }
}

/// Returns whether a directory is, or may be, in a git repository: hiding trash in a new btrfs snapshot takes as long as the rest of the removal.
/// Misses a worktree that only `core.worktree` or GIT_DIR names.
fn may_be_in_repository(directory: BorrowedFd<'_>) -> bool {
    // A name that cannot be looked at counts as one.
    let has_git = |at: BorrowedFd<'_>, _| {
        !matches!(rustix::fs::statat(at, c".git", AtFlags::SYMLINK_NOFOLLOW), Err(Errno::NOENT))
    };
    any_upwards(directory, has_git).unwrap_or(true)
}

/// Closes the trash to other users, and hides it from git. Best effort: a tree that cannot be written to shows until it is deleted.
fn close(parent: BorrowedFd<'_>, trash: &CStr, moved: (u64, u64)) {
    let Ok(root) = sys::open_at(parent, trash, DIRECTORY, Mode::empty()) else { return };
    // Another process may have put another directory there meanwhile.
    if !rustix::fs::fstat(&root).is_ok_and(|stat| identity(&stat) == moved) {
        return;
    }
    let _ = rustix::fs::fchmod(&root, Mode::RWXU);
    if !may_be_in_repository(parent) {
        return;
    }
    // A repository inside a repository is listed whatever its ignore files say.
    let _ = rustix::fs::renameat(&root, c".git", &root, c".git.calve-trash");
    // The old file is unlinked, never written to: it may have another name in a tree that stays.
    let _ = rustix::fs::unlinkat(&root, GITIGNORE, AtFlags::empty());
    hide_from_git(root.as_fd());
}

/// Writes rules that ignore all of a directory, if it has none.
pub(super) fn hide_from_git(directory: BorrowedFd<'_>) {
    let create = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if let Ok(file) = sys::open_at(directory, GITIGNORE, create, Mode::RUSR | Mode::WUSR) {
        let _ = rustix::io::write(&file, b"*\n");
    }
}
