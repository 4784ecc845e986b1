//! A directory that somebody else makes (a program, say), staged and published as clones are.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::clone::staging::{Inherit, Staging};
use crate::error::Error;
use crate::options::Existing;
use crate::progress::{Cancel, Progress};
use crate::remove::delete::Deletion;
use crate::remove::sweep::sweep;
use crate::sys::{self, Listing, ListingBuffer};
use crate::tree::location::Location;
use crate::tree::lock::Purpose;
use crate::tree::pool::thread_count;

/// Where a directory is made before it gets its name. Nobody else can enter.
#[derive(Debug)]
pub struct BuildPaths {
    /// A private directory on the destination's file system. Files in it that are left over at the end are removed.
    pub directory: PathBuf,
    /// What will become the destination: a name in that directory, at which nothing is yet.
    pub tree: PathBuf,
}

/// Lets `make` make a directory at [`BuildPaths::tree`], and gives it the name `dst` when that has succeeded.
///
/// The parent of `dst` must exist. `dst` itself is absent or complete at any time, whatever happens to this process; an empty
/// directory may be there, and is replaced.
///
/// # Errors
/// Those of `make`, after which nothing is left behind. [`Error::DestinationExists`] when `dst` is anything but an empty directory,
/// [`Error::Interrupted`] when `cancel` was thrown.
pub fn build_tree<T, E: From<Error>>(
    dst: &Path,
    cancel: &Cancel,
    make: impl FnOnce(&BuildPaths) -> Result<T, E>,
) -> Result<T, E> {
    let place = Location::open(dst)?.ok_or_else(|| Error::DestinationExists(dst.to_path_buf()))?;
    let replaces = holds_an_empty_directory(&place)?;
    let deletion = Deletion {
        threads: thread_count(None),
        progress: &Progress::default(),
        cancel: &Cancel::default(),
        last: None,
    };
    // What killed runs have left there may hold the space that is needed now. That it cannot be removed is no reason to stop.
    let _ = sweep(place.parent(), place.parent_path(), Purpose::Staging, &deletion);
    let mut staging = Staging::reserve(&place)?;
    staging.make_directory_like(Inherit::Everything)?;
    let hidden = staging.parent_path().join(OsStr::from_bytes(staging.name().to_bytes()));
    let directory = std::path::absolute(&hidden).map_err(|error| Error::io("find", &hidden, error))?;
    let made = make(&BuildPaths { tree: directory.join("tree"), directory })?;
    let failed = |errno| Error::io("finish the staged tree in", place.parent_path(), errno);
    if let Some(root) = staging.root() {
        remove_other_files(root, TREE).map_err(failed)?;
    }
    if cancel.is_cancelled() {
        return Err(Error::Interrupted.into());
    }
    if replaces {
        match rustix::fs::unlinkat(place.parent(), place.name(), AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::NOTEMPTY | Errno::EXIST) => return Err(Error::DestinationExists(dst.to_path_buf()).into()),
            Err(errno) => return Err(Error::io("replace the empty directory", dst, errno).into()),
        }
    }
    staging.publish_inside(TREE.to_owned());
    staging.publish(Existing::Refuse, &[])?;
    Ok(made)
}

const TREE: &CStr = c"tree";

/// Whether an empty directory is there; anything else that is there is an error.
fn holds_an_empty_directory(place: &Location) -> Result<bool, Error> {
    let Some(stat) = place.stat()? else { return Ok(false) };
    let exists = || Error::DestinationExists(place.path().to_path_buf());
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Err(exists());
    }
    let failed = |errno| Error::io("read directory", place.path(), errno);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = sys::open_at(place.parent(), place.name(), flags, Mode::empty()).map_err(failed)?;
    let mut buffer = ListingBuffer::new();
    let mut listing = Listing::new(directory.as_fd(), &mut buffer).map_err(failed)?;
    match listing.next() {
        None => Ok(true),
        Some(Ok(_)) => Err(exists()),
        Some(Err(errno)) => Err(failed(errno)),
    }
}

fn remove_other_files(root: BorrowedFd<'_>, kept: &CStr) -> sys::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let again = sys::open_at(root, c".", flags, Mode::empty())?;
    let mut buffer = ListingBuffer::new();
    let mut listing = Listing::new(again.as_fd(), &mut buffer)?;
    while let Some(entry) = listing.next() {
        let entry = entry?;
        if entry.name != kept {
            rustix::fs::unlinkat(root, entry.name, AtFlags::empty())?;
        }
    }
    Ok(())
}
