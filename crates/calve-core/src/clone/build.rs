//! A directory that somebody else makes (a program, say), staged and published as clones are.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;

use super::check::sweep_leftovers;
use super::stage::StagedTree;
use crate::error::Error;
use crate::operation::Operation;
use crate::options::CloneOptions;
use crate::progress::CancelToken;
use crate::staging::RootKind;
use crate::sys::{self, Listing, ListingBuffer};
use crate::tree::location::{DIRECTORY, Location};
use crate::tree::notes::Notes;

/// Where a directory is made before it gets its name. Nobody else can enter.
#[derive(Debug)]
pub struct BuildPaths {
    /// A private directory on the destination's file system. Files in it that are left over at the end are removed.
    pub directory: PathBuf,
    /// The future destination: a name in that directory, at which nothing is yet.
    pub tree: PathBuf,
}

/// Lets `make` make a directory at [`BuildPaths::tree`], and gives it the name `dst` when that has succeeded.
///
/// The parent of `dst` must exist. `dst` itself is absent or complete at any time, whatever happens to this process; an empty
/// directory may be there, and is replaced.
///
/// # Errors
/// Fails when `make` fails, and leaves nothing behind. Fails with [`Error::DestinationExists`] when `dst` is anything but an empty
/// directory, and with [`Error::Interrupted`] when `cancel` was thrown.
pub fn build_tree<T, E: From<Error>>(
    dst: &Path,
    cancel: &CancelToken,
    make: impl FnOnce(&BuildPaths) -> Result<T, E>,
) -> Result<T, E> {
    let options = CloneOptions { cancel: cancel.clone(), ..CloneOptions::default() };
    let notes = Notes::default();
    let destination = Location::of_destination(dst)?;
    let replaces = holds_an_empty_directory(&destination)?;
    sweep_leftovers(&destination, &notes, &options)?;
    let mut staged = StagedTree::reserve(&destination, RootKind::Inheriting, &options)?;
    staged.make_root()?;
    let hidden = staged.path();
    let directory = std::path::absolute(&hidden).map_err(|error| Error::io(Operation::Find, &hidden, error))?;
    let made = make(&BuildPaths { tree: directory.join("tree"), directory })?;
    let failed = |errno| Error::io(Operation::FinishStagedTree, destination.parent_path(), errno);
    remove_other_files(staged.root()?, TREE).map_err(failed)?;
    options.still_wanted()?;
    if replaces {
        match rustix::fs::unlinkat(destination.parent(), destination.name(), AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::NOTEMPTY | Errno::EXIST) => return Err(Error::DestinationExists(dst.to_path_buf()).into()),
            Err(errno) => return Err(Error::io(Operation::ReplaceEmptyDirectory, dst, errno).into()),
        }
    }
    staged.publish_inside(TREE.to_owned());
    staged.publish(&notes)?;
    Ok(made)
}

const TREE: &CStr = c"tree";

/// Returns whether an empty directory is there. Fails if it is anything else.
fn holds_an_empty_directory(destination: &Location) -> Result<bool, Error> {
    let Some(stat) = destination.stat()? else { return Ok(false) };
    let exists = || Error::DestinationExists(destination.path().to_path_buf());
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Err(exists());
    }
    let failed = |errno| Error::io(Operation::ReadDirectory, destination.path(), errno);
    let directory = destination.open_at(DIRECTORY).map_err(failed)?;
    let mut buffer = ListingBuffer::new();
    let mut listing = Listing::new(directory.as_fd(), &mut buffer).map_err(failed)?;
    match listing.next() {
        None => Ok(true),
        Some(Ok(_)) => Err(exists()),
        Some(Err(errno)) => Err(failed(errno)),
    }
}

fn remove_other_files(root: BorrowedFd<'_>, kept: &CStr) -> sys::Result<()> {
    let again = sys::open_at(root, c".", DIRECTORY, Mode::empty())?;
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
