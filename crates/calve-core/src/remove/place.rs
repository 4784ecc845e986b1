//! A hidden directory beside the user's own, for templates or spares. It exists while it has entries.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;

use rustix::fs::AtFlags;
use rustix::io::Errno;

use crate::error::Error;
use crate::remove::trash::{GITIGNORE, hide_from_git};
use crate::sys;
use crate::tree::location::{DIRECTORY, is_at};
use crate::tree::own::{OwnDirectory, remove_records};
use crate::vocabulary::operation::Operation;

/// The file system may claim for another reason that a directory is gone.
const MOST_TRIES: usize = 100;

/// Calls `fill` with the directory that `make` opens, or makes if missing. Another process may find it empty and remove
/// it before `fill` has put something into it: then both are called again.
pub(crate) fn fill_place<T>(
    path: &Path,
    make: impl Fn() -> Result<Option<OwnDirectory>, Error>,
    fill: impl Fn(BorrowedFd<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    for _ in 0..MOST_TRIES {
        let Some(opened) = make()? else { continue };
        hide_from_git(opened.as_fd());
        match fill(opened.as_fd()) {
            Err(error) if error.is_errno(Errno::NOENT) => {}
            filled => return filled,
        }
    }
    Err(Error::io(Operation::CreateDirectory, path, Errno::NOENT))
}

/// Removes an open directory that has this name, once its last entry is gone. Leaves any other directory.
pub(crate) fn remove_place(directory: BorrowedFd<'_>, name: &str) {
    let Ok(above) = sys::open_at(directory, c"..", DIRECTORY) else { return };
    if is_at(directory, &above, name) {
        remove_records(directory, &[GITIGNORE.to_bytes()]);
        if rustix::fs::unlinkat(&above, name, AtFlags::REMOVEDIR).is_err() {
            // Something new may have come meanwhile.
            hide_from_git(directory);
        }
    }
}
