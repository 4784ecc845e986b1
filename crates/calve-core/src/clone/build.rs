//! A directory made by another program, staged and published as clones are.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, Stat, Uid};
use rustix::io::Errno;

use super::check::sweep_leftovers;
use super::stage::StagedTree;
use crate::error::{Error, IoContext};
use crate::options::CloneOptions;
use crate::progress::CancelToken;
use crate::remove::foreign::{is_mine, keeps_others};
use crate::staging::{RootKind, inherit_nothing};
use crate::sys;
use crate::tree::fill::metadata::keep_directory;
use crate::tree::held_times::HeldTimes;
use crate::tree::location::{DIRECTORY, Location};
use crate::tree::notes::Notes;
use crate::vocabulary::operation::Operation;

/// The place where a directory is made before it gets its name. Other users cannot enter.
#[derive(Debug)]
pub struct BuildPaths {
    /// A private directory on the destination's file system. Other files in it are removed at the end.
    pub directory: PathBuf,
    /// The future destination, in that directory: missing, or an empty directory if one is to be replaced.
    pub tree: PathBuf,
}

/// Lets `make` make a directory at [`BuildPaths::tree`], and then gives it the name `dst`.
///
/// The parent of `dst` must exist. `dst` is absent or complete at any time, whatever happens to this process. An
/// existing empty directory is replaced by one with its mode, owner, access control lists and other attributes.
///
/// # Errors
/// Fails as `make` and [`check_buildable`] do, or with [`Error::Interrupted`] after `cancel`. Leaves nothing behind.
pub fn build_tree<T, E: From<Error>>(
    dst: &Path,
    cancel: &CancelToken,
    make: impl FnOnce(&BuildPaths) -> Result<T, E>,
) -> Result<T, E> {
    let options = CloneOptions { cancel: cancel.clone(), ..CloneOptions::default() };
    let notes = Notes::default();
    let destination = Location::of_destination(dst)?;
    let replaced = EmptyDirectory::find(&destination)?;
    sweep_leftovers(&destination, &notes, &options)?;
    let mut staged = StagedTree::reserve(&destination, RootKind::Inheriting, &options)?;
    staged.make_root()?;
    let hidden = staged.path();
    let directory = std::path::absolute(&hidden).io(Operation::Find, &hidden)?;
    let tree = match &replaced {
        Some(replaced) => Some(replaced.make_like(staged.root()?, &notes, dst)?),
        None => None,
    };
    let made = make(&BuildPaths { tree: directory.join("tree"), directory })?;
    remove_other_files(staged.root()?, TREE).io(Operation::FinishStagedTree, destination.parent_path())?;
    options.check_cancelled()?;
    if let (Some(replaced), Some(tree)) = (replaced, tree) {
        // Not earlier: git refuses to work in another user's tree.
        let _ = rustix::fs::fchown(tree, Some(Uid::from_raw(replaced.stat.st_uid)), None);
        match rustix::fs::unlinkat(destination.parent(), destination.name(), AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::NOTEMPTY | Errno::EXIST) => return Err(Error::DestinationExists(dst.to_path_buf()).into()),
            Err(errno) => return Err(Error::io(Operation::ReplaceEmptyDirectory, dst, errno).into()),
        }
    }
    staged.staging.inside = Some(TREE.to_owned());
    staged.publish(&notes)?;
    Ok(made)
}

/// Checks in advance that [`build_tree`] may put something at `dst`, where that can be known. Fails with
/// [`Error::DestinationExists`] for anything but an empty directory, or [`Error::NotReplaceable`] if that must stay.
pub fn check_buildable(dst: &Path) -> Result<(), Error> {
    EmptyDirectory::find(&Location::of_destination(dst)?).map(|_| ())
}

const TREE: &CStr = c"tree";

struct EmptyDirectory {
    opened: OwnedFd,
    stat: Stat,
}

impl EmptyDirectory {
    /// Returns `None` if nothing is there. Fails for anything but a removable empty directory.
    fn find(destination: &Location) -> Result<Option<Self>, Error> {
        let Some(stat) = destination.stat()? else { return Ok(None) };
        let path = destination.path();
        if !sys::is_directory(stat) {
            return Err(Error::DestinationExists(path.to_path_buf()));
        }
        let opened = destination.open_at(DIRECTORY).io(Operation::ReadDirectory, path)?;
        if !sys::list(opened.as_fd()).io(Operation::ReadDirectory, path)?.is_empty() {
            return Err(Error::DestinationExists(path.to_path_buf()));
        }
        let no = |reason| Err(Error::NotReplaceable { path: path.to_path_buf(), reason });
        if sys::is_mount_point(opened.as_fd()).io(Operation::FindMounts, path)? {
            return no("it is a mount point");
        }
        let parent = rustix::fs::fstat(destination.parent()).io(Operation::Stat, path)?;
        if keeps_others(&parent) && !is_mine(&stat) {
            return no("it belongs to another user, and the directory that it is in has the sticky bit");
        }
        Ok(Some(Self { opened, stat }))
    }

    /// Makes the tree's root, with the inheritance of this directory. It belongs to this user for now.
    fn make_like(&self, root: BorrowedFd<'_>, notes: &Notes, path: &Path) -> Result<OwnedFd, Error> {
        let failed = |errno| Error::io(Operation::CreateDirectory, path, errno);
        rustix::fs::mkdirat(root, TREE, Mode::RWXU).map_err(failed)?;
        let tree = sys::open_at(root, TREE, DIRECTORY).map_err(failed)?;
        inherit_nothing(tree.as_fd()).map_err(failed)?;
        let _ = sys::copy_nocow(self.opened.as_fd(), tree.as_fd());
        let now = rustix::fs::fstat(&tree).map_err(failed)?;
        let mut stat = self.stat;
        stat.st_uid = now.st_uid;
        match keep_directory((self.opened.as_fd(), &stat), (tree.as_fd(), &now), HeldTimes::ALL, None, notes) {
            Ok(_) => Ok(tree),
            // Times change as soon as something is made in it.
            Err(fault) if fault.operation == Operation::SetTimes => Ok(tree),
            Err(fault) => Err(Error::io(fault.operation, path, fault.errno)),
        }
    }
}

fn remove_other_files(root: BorrowedFd<'_>, kept: &CStr) -> sys::Result<()> {
    let mut others = sys::list(root)?.into_iter().filter(|(name, _)| **name != *kept);
    others.try_for_each(|(name, _)| rustix::fs::unlinkat(root, &*name, AtFlags::empty()))
}
