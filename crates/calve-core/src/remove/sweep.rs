//! Deleting leftovers of earlier runs in a directory: staged trees of killed processes, and trash.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;

use super::delete::{Deletion, delete_directory};
use super::trash::GITIGNORE;
use crate::error::{Error, IoContext};
use crate::sys::{self, Listing, ListingBuffer};
use crate::tree::location::{DIRECTORY, identity};
use crate::tree::lock::{HiddenName, Lock, Purpose, Reach, recognise};
use crate::vocabulary::operation::Operation;

#[derive(Debug, Default)]
pub(crate) struct SweepReport {
    pub(crate) removed: Vec<PathBuf>,
    pub(crate) deleted_entries: u64,
    pub(crate) failure: Option<Error>,
    pub(crate) saw_trash: bool,
    /// Trash that an earlier reaper could not delete.
    pub(crate) stuck_trash: Vec<PathBuf>,
}

/// Finds the hidden names of this user and machine in `parent`, for any purpose.
pub(crate) fn find(parent: BorrowedFd<'_>) -> sys::Result<Vec<HiddenName>> {
    // A descriptor of its own: the position in the directory is the descriptor's.
    let directory = sys::open_at(parent, c".", DIRECTORY)?;
    let mut buffer = ListingBuffer::new();
    let mut listing = Listing::new(directory.as_fd(), &mut buffer)?;
    let reach = if sys::is_shared_by_machines(parent)? { Reach::Boot } else { Reach::Machine };
    let mut all = Vec::new();
    while let Some(entry) = listing.next() {
        if let Some(found) = recognise(entry?.name, reach)
            && !all.contains(&found)
        {
            all.push(found);
        }
    }
    Ok(all)
}

/// Deletes every name of that purpose whose lock is free. A held lock means that its maker lives.
pub(crate) fn sweep(
    parent: BorrowedFd<'_>,
    parent_path: &Path,
    purpose: Purpose,
    deletion: &Deletion,
) -> Result<SweepReport, Error> {
    let found = find(parent).io(Operation::ReadDirectory, parent_path)?;
    let mut swept = SweepReport::default();
    for HiddenName { purpose: other, name } in found {
        // Without a lock, or with one that another process holds, it must not be touched.
        let Ok(Some(lock)) = Lock::take(parent, &name) else {
            // Its holder may be about to end; the reaper finds out.
            swept.saw_trash |= other == Purpose::Trash;
            continue;
        };
        let path = parent_path.join(sys::path(&name));
        if other != purpose {
            let has_failed = lock.has_failed();
            if other != Purpose::Trash {
                lock.leave();
            } else if lock.remove_if_unused(parent) {
                swept.saw_trash = true;
                swept.stuck_trash.extend(has_failed.then_some(path));
            }
            continue;
        }
        let last = (purpose == Purpose::Trash).then_some(GITIGNORE);
        match delete_with_lock(parent, lock, &path, &Deletion { last, ..deletion.clone() }) {
            Ok(entries) => {
                swept.deleted_entries += entries;
                if entries > 0 {
                    swept.removed.push(path);
                }
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

pub(crate) fn sweep_hidden(parent: BorrowedFd<'_>, path: &Path, purpose: Purpose) -> Result<(), Error> {
    sweep(parent, path, purpose, &Deletion::uncancelled())?.failure.map_or(Ok(()), Err)
}

/// Deletes a lock's entry, then the lock. A failure leaves it, noted for the next run unless the caller cancelled.
pub(super) fn delete_with_lock(
    parent: BorrowedFd<'_>,
    lock: Lock,
    path: &Path,
    deletion: &Deletion,
) -> Result<u64, Error> {
    let deleted = delete_protected(parent, &lock, path, deletion);
    match &deleted {
        Ok(_) => lock.remove(parent),
        Err(error) => {
            if !matches!(error, Error::Interrupted) {
                lock.record_failure();
            }
            lock.leave();
        }
    }
    deleted
}

/// Deletes the entry that a lock protects. Leaves anything else under its name.
pub(crate) fn delete_protected(
    parent: BorrowedFd<'_>,
    lock: &Lock,
    path: &Path,
    deletion: &Deletion,
) -> Result<u64, Error> {
    let Some(found) =
        sys::unless_missing(sys::open_at(parent, lock.name(), sys::PATH_ONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW))
            .io(Operation::OpenDirectory, path)?
    else {
        return Ok(0);
    };
    if lock.protects(found.as_fd()) {
        let stat = rustix::fs::fstat(&found).io(Operation::OpenDirectory, path)?;
        let unlocks = lock.protects_a_clone_only();
        return delete_directory(parent, lock.name(), path, identity(&stat), &Deletion { unlocks, ..deletion.clone() });
    }
    // Its maker was killed before it could record or fill it; or it is another program's.
    match rustix::fs::unlinkat(parent, lock.name(), AtFlags::REMOVEDIR) {
        Ok(()) => Ok(1),
        Err(Errno::NOENT) => Ok(0),
        Err(_) => Err(Error::StagingLost(path.to_path_buf())),
    }
}
