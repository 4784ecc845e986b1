//! Making a tree under a hidden name beside its destination, and publishing it by one rename.
//!
//! The promise: whatever happens to this process, the destination is absent (or as it was) or complete. A killed
//! process leaves a hidden name with a free lock, which the next run in that directory sweeps.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;

use crate::error::{Error, IoContext};
use crate::options::ExistingDestination;
use crate::remove::delete::{Deletion, delete_directory};
use crate::remove::guard;
use crate::remove::sweep::delete_protected;
use crate::remove::trash;
use crate::report::TrashedTree;
use crate::sys;
use crate::tree::location::{DIRECTORY, Location, identity, is_at};
use crate::tree::lock::{Lock, Purpose};
use crate::vocabulary::operation::Operation;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RootKind {
    /// Inherits nothing from its parent: the tree gets everything from its source.
    Closed,
    /// Inherits default ACLs, set-group-ID bit and attributes: entries made in it are as if made beside it.
    Inheriting,
    /// As `Closed`, but on btrfs a subvolume.
    Subvolume,
}

/// A hidden name reserved beside `location`, and everything made under it.
pub(crate) struct Staging<'p> {
    location: &'p Location,
    /// `None` once published.
    lock: Option<Lock>,
    root: Option<OwnedFd>,
    /// The entry of the staged directory to publish instead of the directory.
    pub(crate) inside: Option<CString>,
}

impl<'p> Staging<'p> {
    /// Reserves a name. Makes only its lock.
    pub(crate) fn reserve(location: &'p Location) -> Result<Self, Error> {
        let lock =
            Lock::reserve(location.parent(), Purpose::Staging).io(Operation::CreateStaging, location.parent_path())?;
        Ok(Self { location, lock: Some(lock), root: None, inside: None })
    }

    pub(crate) fn parent(&self) -> BorrowedFd<'_> {
        self.location.parent()
    }

    pub(crate) fn parent_path(&self) -> &Path {
        self.location.parent_path()
    }

    pub(crate) fn name(&self) -> &CStr {
        self.lock.as_ref().map_or(c"", Lock::name)
    }

    /// Makes the staged directory, which only its owner can enter. Returns whether it is a subvolume.
    pub(crate) fn make_root(&mut self, kind: RootKind) -> Result<bool, Error> {
        let parent_path = self.location.parent_path();
        if kind == RootKind::Subvolume && sys::magic(self.parent()) == Ok(sys::BTRFS_MAGIC) {
            self.expect_subvolume().io(Operation::CreateSubvolume, parent_path)?;
            match sys::create_subvolume(self.parent(), self.name()) {
                Ok(()) => {
                    self.adopt_directory(Operation::OpenStagedTree)?;
                    self.root().map_or(Ok(()), inherit_nothing).io(Operation::CreateSubvolume, parent_path)?;
                    return Ok(true);
                }
                Err(Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP | Errno::NOTTY) => {}
                Err(errno) => return Err(Error::io(Operation::CreateSubvolume, parent_path, errno)),
            }
        }
        rustix::fs::mkdirat(self.parent(), self.name(), Mode::RWXU).io(Operation::CreateStaging, parent_path)?;
        self.adopt_directory(Operation::CreateStaging)?;
        if kind != RootKind::Inheriting {
            self.root().map_or(Ok(()), inherit_nothing).io(Operation::CreateStaging, parent_path)?;
        }
        Ok(false)
    }

    /// Records that a strategy is about to make a subvolume under the reserved name.
    pub(crate) fn expect_subvolume(&self) -> sys::Result<()> {
        self.lock.as_ref().map_or(Ok(()), Lock::record_subvolume)
    }

    /// Records the identity of the hidden name's entry for sweepers.
    fn record(&self, root: &OwnedFd) -> sys::Result<()> {
        let stat = rustix::fs::fstat(root)?;
        self.lock.as_ref().map_or(Ok(()), |lock| lock.record(identity(&stat)))
    }

    pub(crate) fn adopt_directory(&mut self, operation: Operation) -> Result<(), Error> {
        let path = self.location.parent_path();
        let root = sys::open_at(self.parent(), self.name(), DIRECTORY);
        let root = root.map_err(|errno| self.lost_or(errno, operation, path))?;
        self.record(&root).io(operation, path)?;
        self.root = Some(root);
        Ok(())
    }

    /// Moves the directory `name` in `from`, which is open as `root`, under the reserved name.
    pub(crate) fn adopt(&mut self, from: BorrowedFd<'_>, name: &CStr, root: OwnedFd) -> sys::Result<()> {
        self.record(&root)?;
        sys::rename_no_replace(from, name, self.parent(), self.name())?;
        self.root = Some(root);
        Ok(())
    }

    /// Deletes the staged directory: another one will be made.
    pub(crate) fn empty(&mut self, deletion: &Deletion) -> Result<(), Error> {
        if let Some(root) = self.root.take() {
            let path = self.location.path();
            let stat = rustix::fs::fstat(&root).io(Operation::Stat, path)?;
            delete_directory(self.parent(), self.name(), path, identity(&stat), deletion)?;
        }
        Ok(())
    }

    fn lost(&self) -> Error {
        Error::StagingLost(self.location.parent_path().to_path_buf())
    }

    /// Returns `StagingLost` for ENOENT: another process has removed the staged entry.
    fn lost_or(&self, errno: Errno, operation: Operation, path: &Path) -> Error {
        if errno == Errno::NOENT { self.lost() } else { Error::io(operation, path, errno) }
    }

    pub(crate) fn root(&self) -> Option<BorrowedFd<'_>> {
        self.root.as_ref().map(|root| root.as_fd())
    }

    /// Gives the staged tree its name. [`ExistingDestination::Replace`] moves the old entry to the trash in exchange.
    pub(crate) fn publish(self, existing: ExistingDestination, protect: &[PathBuf]) -> Result<Leftover, Error> {
        let replaced = self.rename(existing, protect, true)?;
        Ok(self.finish(replaced))
    }

    /// Exchanges the staged tree for the old one, which then has the hidden name, but no record that permits sweeping
    /// it. Returns false without an old one. [`Self::finish`], [`Self::exchange_back`] or [`Self::keep`] must follow.
    pub(crate) fn exchange(&self, protect: &[PathBuf]) -> Result<bool, Error> {
        self.rename(ExistingDestination::Replace, protect, false)
    }

    /// Undoes [`Self::exchange`]. Returns whether that was possible.
    pub(crate) fn exchange_back(&self) -> bool {
        let parent = self.location.parent();
        sys::rename_exchange(parent, self.name(), parent, self.location.name()).is_ok()
    }

    /// Gives the tree under the hidden name a visible one, and returns its path.
    pub(crate) fn keep(mut self) -> Result<PathBuf, Error> {
        let (location, parent) = (self.location, self.location.parent());
        let Some(lock) = self.lock.take() else { return Err(self.lost()) };
        let names = (0..1000).map(|number| kept_name(location.path(), number));
        let kept = rename_to_first_free(parent, lock.name(), names);
        match kept {
            Ok(_) => lock.remove(parent),
            Err(_) => lock.leave(),
        }
        kept.io(Operation::ExchangeBack, location.path())
    }

    /// Returns whether something was exchanged. `is_noted` first records the hidden name's future entry in the lock.
    fn rename(&self, existing: ExistingDestination, protect: &[PathBuf], is_noted: bool) -> Result<bool, Error> {
        let lost = || self.lost();
        let lock = self.lock.as_ref().filter(|lock| lock.is_held(self.parent())).ok_or_else(lost)?;
        let root = self.root().filter(|root| is_at(root, self.parent(), lock.name())).ok_or_else(lost)?;
        let (from, name) = match &self.inside {
            Some(inside) => (root, inside.as_c_str()),
            None => (self.parent(), lock.name()),
        };
        let (parent, dst, path) = (self.location.parent(), self.location.name(), self.location.path());
        let exists = || Error::DestinationExists(path.to_path_buf());
        // A destination that comes and goes between the two calls meets the next round.
        for _ in 0..16 {
            match sys::rename_no_replace(from, name, parent, dst) {
                Ok(()) => return Ok(false),
                Err(Errno::EXIST) if existing == ExistingDestination::Refuse => return Err(exists()),
                Err(Errno::EXIST) => {}
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                    return self.rename_without_flags(from, name, existing);
                }
                Err(errno) => return Err(self.lost_or(errno, Operation::Publish, path)),
            }
            // It may have come since the clone began.
            let Some(stat) = self.location.stat()? else { continue };
            if is_noted {
                lock.record(identity(&stat)).io(Operation::Publish, path)?;
            }
            guard::check(self.location, protect)?;
            match sys::rename_exchange(from, name, parent, dst) {
                Ok(()) => return Ok(true),
                Err(Errno::NOENT) => {}
                // EXDEV: an overlay moves no directory of a lower layer.
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP | Errno::XDEV) => {
                    return Err(Error::ReplaceUnsupported(path.to_path_buf()));
                }
                Err(errno) => return Err(Error::io(Operation::Publish, path, errno)),
            }
        }
        Err(exists())
    }

    /// Publishes on file systems without the rename flags (NFS, some FUSE ones). A directory can replace only an empty
    /// one, so nothing can be lost; anything else gets its name by a link, which never replaces.
    fn rename_without_flags(
        &self,
        from: BorrowedFd<'_>,
        name: &CStr,
        existing: ExistingDestination,
    ) -> Result<bool, Error> {
        let (parent, dst, path) = (self.location.parent(), self.location.name(), self.location.path());
        if self.location.stat()?.is_some() {
            return Err(match existing {
                ExistingDestination::Refuse => Error::DestinationExists(path.to_path_buf()),
                ExistingDestination::Replace => Error::ReplaceUnsupported(path.to_path_buf()),
            });
        }
        let renamed = match sys::stat_at(from, name).is_ok_and(sys::is_directory) {
            true => rustix::fs::renameat(from, name, parent, dst),
            false => rustix::fs::linkat(from, name, parent, dst, AtFlags::empty())
                .and_then(|()| rustix::fs::unlinkat(from, name, AtFlags::empty())),
        };
        match renamed {
            Ok(()) => Ok(false),
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => Err(Error::DestinationExists(path.to_path_buf())),
            Err(errno) => Err(self.lost_or(errno, Operation::Publish, path)),
        }
    }

    /// Removes leftovers of the rename under the hidden name. The clone is published, so it cannot fail any more.
    pub(crate) fn finish(mut self, replaced: bool) -> Leftover {
        let parent = self.location.parent();
        let Some(lock) = self.lock.take() else { return Ok(None) };
        if !replaced {
            if self.inside.is_some() {
                let _ = rustix::fs::unlinkat(parent, lock.name(), AtFlags::REMOVEDIR);
            }
            lock.remove(parent);
            return Ok(None);
        }
        let gone = match self.inside {
            // The old entry is now in the staged directory.
            Some(_) => remove_now(parent, &lock, self.location.path()).map(|()| None),
            None => self.trash(&lock),
        };
        match gone {
            Ok(_) => lock.remove(parent),
            // It stays under the hidden name, and the next run sweeps it.
            Err(_) => lock.leave(),
        }
        gone
    }

    /// Moves the replaced entry, now under the hidden name, to the trash. Deletes anything but a directory at once.
    fn trash(&self, lock: &Lock) -> Result<Option<TrashedTree>, Error> {
        let parent = self.location.parent();
        match rustix::fs::unlinkat(parent, lock.name(), AtFlags::empty()) {
            Ok(()) => return Ok(None),
            Err(Errno::ISDIR | Errno::PERM | Errno::ACCESS) => {}
            Err(errno) => return Err(Error::io(Operation::RemoveReplaced, self.location.path(), errno)),
        }
        let (trashed, trash) = trash::move_in(parent, lock.name(), self.location.parent_path(), None)?;
        trash.leave();
        Ok(Some(trashed))
    }
}

/// Drops the parent's inheritance: default ACLs, the set-group-ID bit, and on btrfs an attribute that prevents sharing.
pub(crate) fn inherit_nothing(root: BorrowedFd<'_>) -> sys::Result<()> {
    sys::drop_inherited_acls(root);
    let _ = sys::clear_nocow(root);
    rustix::fs::fchmod(root, Mode::RWXU)
}

/// The trash with the old tree, or the reason why the old entry is still there, under the hidden name.
pub(crate) type Leftover = Result<Option<TrashedTree>, Error>;

/// Deletes a lock's entry in the foreground, even if the caller wants to stop: nothing may be left behind.
fn remove_now(parent: BorrowedFd<'_>, lock: &Lock, path: &Path) -> Result<(), Error> {
    delete_protected(parent, lock, path, &Deletion::uncancelled()).map(|_| ())
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        let Some(lock) = self.lock.take() else { return };
        self.root = None;
        let staged = self.parent_path().join(sys::path(lock.name()));
        match remove_now(self.parent(), &lock, &staged) {
            Ok(()) => lock.remove(self.parent()),
            // The next run in this directory tries again.
            Err(_) => lock.leave(),
        }
    }
}

/// Gives the entry `name` the first unused one of these paths in the same directory, and returns it.
pub(crate) fn rename_to_first_free(
    parent: BorrowedFd<'_>,
    name: &CStr,
    paths: impl Iterator<Item = PathBuf>,
) -> sys::Result<PathBuf> {
    for path in paths {
        let new = path.file_name().and_then(|name| CString::new(name.as_bytes()).ok()).unwrap_or_default();
        match sys::rename_no_replace(parent, name, parent, &new) {
            Err(Errno::EXIST) => {}
            done => return done.map(|()| path),
        }
    }
    Err(Errno::EXIST)
}

/// Returns the `number`th name beside the directory `path` under which to keep the old directory.
pub(crate) fn kept_name(path: &Path, number: u32) -> PathBuf {
    let mut name = path.file_name().unwrap_or(OsStr::from_bytes(b"directory")).to_owned();
    name.push(if number == 0 { ".kept".to_owned() } else { format!(".kept{number}") });
    path.with_file_name(name)
}
