//! Deleting what earlier runs left in a directory: staged trees of killed processes, and trash.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::delete::{Deletion, delete};
use super::lock::{Found, Lock, Purpose, recognise};
use super::trash::GITIGNORE;
use crate::error::Error;
use crate::sys::{self, Listing, ListingBuffer};

/// What a sweep did.
#[derive(Debug, Default)]
pub(crate) struct Swept {
    /// The hidden names that are gone.
    pub(crate) removed: Vec<PathBuf>,
    pub(crate) deleted_entries: u64,
    /// The first name that could not be deleted, and why.
    pub(crate) failure: Option<Error>,
    /// Whether there is trash, swept or not.
    pub(crate) saw_trash: bool,
}

/// Names of this user and machine in `parent`, whatever their purpose.
pub(crate) fn find(parent: BorrowedFd<'_>) -> sys::Result<Vec<Found>> {
    // A descriptor of its own: the position in the directory is the descriptor's.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = crate::sys::open_at(parent, c".", flags, Mode::empty())?;
    let mut buffer = ListingBuffer::new();
    let mut listing = Listing::new(directory.as_fd(), &mut buffer)?;
    let mut all = Vec::new();
    while let Some(entry) = listing.next() {
        if let Some(found) = recognise(entry?.name)
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
    deletion: &Deletion<'_>,
) -> Result<Swept, Error> {
    let found = find(parent).map_err(|errno| Error::io("read directory", parent_path, errno))?;
    let saw_trash = found.iter().any(|found| found.purpose == Purpose::Trash);
    let mut swept = Swept { saw_trash, ..Swept::default() };
    for Found { name, .. } in found.into_iter().filter(|found| found.purpose == purpose) {
        // Taken by another sweeper, or not to be had: theirs to deal with.
        let Ok(Some(lock)) = Lock::take_or_make(parent, &name) else { continue };
        let path = parent_path.join(OsStr::from_bytes(name.to_bytes()));
        let last = (purpose == Purpose::Trash).then_some(GITIGNORE);
        match delete(parent, &name, &path, &Deletion { last, ..*deletion }) {
            Ok(entries) => {
                swept.deleted_entries += entries;
                if entries > 0 {
                    swept.removed.push(path);
                }
                lock.remove(parent);
            }
            Err(Error::Interrupted) => {
                lock.leave();
                return Err(Error::Interrupted);
            }
            Err(error) => {
                swept.failure.get_or_insert(error);
                lock.leave();
            }
        }
    }
    Ok(swept)
}
