//! `overlay`: an OverlayFS mount, the source below and a fresh directory for changes above. The cost does not grow with
//! the tree, but the clone lives only as long as the mount, which needs an owner: only library callers can ask for it.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::criteria::RefusalReason;
use super::method::{Failure, Method};
use crate::error::{Error, IoContext};
use crate::remove::delete::{Deletion, delete};
use crate::sys;
use crate::tree::fill::metadata::keep_directory;
use crate::tree::held_times::HeldTimes;
use crate::tree::location::{DIRECTORY, Location, identity};
use crate::tree::lock::{Lock, Purpose};
use crate::tree::notes::Notes;
use crate::tree::source::Source;
use crate::vocabulary::operation::Operation;
use crate::vocabulary::strategy::{Requirement, Strategy};

pub(super) const METHOD: Method = Method {
    strategy: Strategy::Overlay,
    accepts: |_, _| {
        Err(RefusalReason::new("a mount needs an owner for its lifetime; only callers of the library can ask for one"))
    },
    meets: &[Requirement::Instant],
    is_used_only_when_named: true,
    makes_each_file: false,
    is_one_call: |_| false,
    run: |_| Err(Failure::Refused(RefusalReason::new("use mount_overlay"))),
};

/// A mounted overlay. Dropping it unmounts and deletes all changes.
///
/// If the process is killed, the mount stays until its mount namespace ends, and the hidden directory with the changes
/// stays for good: nothing tells from outside whether a mount in some namespace still uses it. Callers that may be
/// killed should own a namespace (unshare(2)), and the mount point's directory.
#[derive(Debug)]
pub struct OverlayMount {
    mount_point: Location,
    state: Option<OverlayState>,
}

/// The hidden directory with the changes.
#[derive(Debug)]
pub(crate) struct OverlayState {
    pub(crate) parent: OwnedFd,
    pub(crate) path: PathBuf,
    pub(crate) lock: Lock,
}

/// Mounts a working copy of the directory `src` at the new path `dst`. Needs root, at least in a user namespace.
///
/// The changes are in a hidden sibling of `dst`. If that shares extents with the source, the first write to a file
/// copies nothing. The kernel does not sync them: a crash of the machine loses them.
///
/// `src` must not change while it is mounted (overlayfs.rst: "the behaviour of the overlay is undefined").
pub fn mount_overlay(src: &Path, dst: &Path) -> Result<OverlayMount, Error> {
    let source = Source::open(src)?;
    source.expect_directory(Operation::MountOverlayOf)?;
    let Some(location) = Location::open(dst)? else { return Err(Error::DestinationExists(dst.to_path_buf())) };
    let state = OverlayState::make(location.parent_path(), &source)?;
    if let Err(errno) = rustix::fs::mkdirat(location.parent(), location.name(), Mode::RWXU) {
        state.delete()?;
        return Err(match errno {
            Errno::EXIST => Error::DestinationExists(dst.to_path_buf()),
            _ => Error::io(Operation::CreateDirectory, dst, errno),
        });
    }
    let mounted = state.open().and_then(|[upper, work]| {
        let target = location.open_at(DIRECTORY)?;
        sys::mount_overlay(source.directory(), upper.as_fd(), work.as_fd(), target.as_fd())
    });
    if let Err(errno) = mounted {
        let _ = rustix::fs::unlinkat(location.parent(), location.name(), AtFlags::REMOVEDIR);
        state.delete()?;
        return Err(Error::io(Operation::MountOverlay, dst, errno));
    }
    Ok(OverlayMount { mount_point: location, state: Some(state) })
}

impl OverlayMount {
    /// Returns the path of the working copy.
    pub fn path(&self) -> &Path {
        self.mount_point.path()
    }

    /// Unmounts, and deletes the mount point and all changes.
    pub fn unmount(mut self) -> Result<(), Error> {
        self.take_down()
    }

    fn take_down(&mut self) -> Result<(), Error> {
        if self.state.is_none() {
            return Ok(());
        }
        let (parent, name, path) = (self.mount_point.parent(), self.mount_point.name(), self.mount_point.path());
        // Until this has worked, the changes are in use.
        sys::detach_mount(parent, name).io(Operation::Unmount, path)?;
        let state = self.state.take();
        rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR).io(Operation::RemoveDirectory, path)?;
        state.map_or(Ok(()), OverlayState::delete)
    }
}

impl Drop for OverlayMount {
    fn drop(&mut self) {
        let _ = self.take_down();
    }
}

impl OverlayState {
    /// Makes `upper` and `work` under a hidden name. The mount shows the upper's metadata: the source's.
    pub(crate) fn make(parent: &Path, source: &Source) -> Result<Self, Error> {
        let directory = sys::open_at(rustix::fs::CWD, parent, OFlags::RDONLY | OFlags::DIRECTORY)
            .io(Operation::CreateUpper, parent)?;
        let lock = Lock::reserve(directory.as_fd(), Purpose::Overlay).io(Operation::CreateUpper, parent)?;
        let path = parent.join(lock.name().to_string_lossy().as_ref());
        let state = Self { parent: directory, path, lock };
        match state.fill(source) {
            Ok(()) => Ok(state),
            Err(error) => {
                state.delete()?;
                Err(error)
            }
        }
    }

    fn fill(&self, source: &Source) -> Result<(), Error> {
        let failed = |errno| Error::io(Operation::CreateUpper, &self.path, errno);
        rustix::fs::mkdirat(&self.parent, self.lock.name(), Mode::RWXU).map_err(failed)?;
        let root = sys::open_at(&self.parent, self.lock.name(), DIRECTORY).map_err(failed)?;
        let made = rustix::fs::fstat(&root).map_err(failed)?;
        self.lock.record(identity(&made)).map_err(failed)?;
        for name in [c"upper", c"work"] {
            rustix::fs::mkdirat(&root, name, Mode::RWXU).map_err(failed)?;
        }
        let upper = sys::open_at(&root, c"upper", DIRECTORY).map_err(failed)?;
        sys::drop_inherited_acls(upper.as_fd());
        let now = rustix::fs::fstat(&upper).map_err(failed)?;
        let (src, upper) = ((source.directory(), source.stat()), (upper.as_fd(), &now));
        keep_directory(src, upper, HeldTimes::ALL, None, &Notes::default())
            .map(drop)
            .map_err(|fault| Error::io(fault.operation, &self.path, fault.errno))
    }

    fn open(&self) -> sys::Result<[OwnedFd; 2]> {
        let root = sys::open_at(&self.parent, self.lock.name(), DIRECTORY)?;
        Ok([sys::open_at(&root, c"upper", DIRECTORY)?, sys::open_at(&root, c"work", DIRECTORY)?])
    }

    fn delete(self) -> Result<(), Error> {
        delete(self.parent.as_fd(), self.lock.name(), &self.path, &Deletion::uncancelled())?;
        self.lock.remove(self.parent.as_fd());
        Ok(())
    }
}
