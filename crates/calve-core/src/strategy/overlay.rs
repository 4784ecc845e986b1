//! `overlay`: an OverlayFS mount, the source below and a fresh directory for changes above. The cost does not grow with the
//! tree, but the clone lives only as long as the mount, which needs an owner: only callers of the library can ask for it.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::criteria::{Criteria, RefusalReason};
use super::facts::Facts;
use super::method::{Failure, Job, Method, Outcome};
use crate::error::Error;
use crate::progress::{CancelToken, Progress};
use crate::remove::delete::{Deletion, delete};
use crate::sys::{self, XattrTarget};
use crate::tree::fill::metadata::{Keeper, NewFileDefaults, Target};
use crate::tree::held_times::HeldTimes;
use crate::tree::location::{Location, identity};
use crate::tree::lock::{Lock, Purpose};
use crate::tree::notes::Notes;
use crate::tree::pool::thread_count;
use crate::tree::source::Source;
use crate::vocabulary::operation::Operation;
use crate::vocabulary::strategy::{Requirement, Strategy};

pub(super) struct Overlay;

impl Method for Overlay {
    fn strategy(&self) -> Strategy {
        Strategy::Overlay
    }

    fn accepts(&self, _: &Facts, _: &Criteria) -> Result<(), RefusalReason> {
        Err(RefusalReason::new("a mount needs an owner for its lifetime; only callers of the library can ask for one"))
    }

    fn meets(&self) -> &'static [Requirement] {
        &[Requirement::Instant]
    }

    fn is_used_only_when_named(&self) -> bool {
        true
    }

    fn run(&self, _: &mut Job<'_, '_>) -> Result<Outcome, Failure> {
        Err(Failure::Refused(RefusalReason::new("use mount_overlay")))
    }
}

/// How an overlay is to be mounted.
#[derive(Debug, Clone, Default)]
pub struct OverlayOptions {
    /// Where the changes are kept, on a file system that can be an upper layer; by default a hidden sibling of the mount point.
    /// Where it shares extents with the source, the first write to a file costs no copy of it.
    pub state: Option<PathBuf>,
    /// Whether the kernel syncs the changes to the disk. Without, a crash of the machine loses them, and writing is faster.
    pub durability: crate::options::Durability,
}

/// A mounted overlay. Dropping it unmounts and deletes all changes.
///
/// Should the process be killed, the mount stays until its mount namespace ends, and the hidden directory with the changes
/// stays for good: nothing can tell from outside whether a mount in some namespace still uses it. Callers that may be killed
/// should own a namespace (unshare(2)) and keep the changes in a directory of their own ([`OverlayOptions::state`]).
#[derive(Debug)]
pub struct OverlayMount {
    mount_point: PathBuf,
    parent: OwnedFd,
    name: CString,
    state: Option<State>,
}

/// The hidden directory with the changes.
pub(crate) struct State {
    pub(crate) parent: OwnedFd,
    pub(crate) path: PathBuf,
    pub(crate) lock: Lock,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Mounts a working copy of the directory `src` at `dst`, which must not exist. Needs root, or a user namespace in which the
/// caller is root.
///
/// `src` must not change while it is mounted (overlayfs.rst: "the behaviour of the overlay is undefined").
pub fn mount_overlay(src: &Path, dst: &Path, options: &OverlayOptions) -> Result<OverlayMount, Error> {
    let source = Source::open(src)?;
    if source.single().is_some() {
        return Err(Error::io(Operation::MountOverlayOf, src, Errno::NOTDIR));
    }
    let Some(location) = Location::open(dst)? else { return Err(Error::DestinationExists(dst.to_path_buf())) };
    let state_parent = options.state.as_deref().unwrap_or(location.parent_path());
    let state = State::make(state_parent, &source)?;
    if let Err(errno) = rustix::fs::mkdirat(location.parent(), location.name(), Mode::RWXU) {
        state.delete()?;
        return Err(match errno {
            Errno::EXIST => Error::DestinationExists(dst.to_path_buf()),
            _ => Error::io(Operation::CreateDirectory, dst, errno),
        });
    }
    let volatile = options.durability == crate::options::Durability::Cached;
    let mounted = state.open().and_then(|[upper, work]| {
        let target = open(location.parent(), location.name())?;
        sys::mount_overlay(source.directory(), upper.as_fd(), work.as_fd(), target.as_fd(), volatile)
    });
    if let Err(errno) = mounted {
        let _ = rustix::fs::unlinkat(location.parent(), location.name(), AtFlags::REMOVEDIR);
        state.delete()?;
        return Err(Error::io(Operation::MountOverlay, dst, errno));
    }
    let parent = rustix::io::fcntl_dupfd_cloexec(location.parent(), 3)
        .map_err(|errno| Error::io(Operation::OpenDirectory, location.parent_path(), errno))?;
    Ok(OverlayMount { mount_point: dst.to_path_buf(), parent, name: location.name().to_owned(), state: Some(state) })
}

impl OverlayMount {
    /// Returns where the working copy is.
    pub fn path(&self) -> &Path {
        &self.mount_point
    }

    /// Returns the directory that holds the changes.
    pub fn upper(&self) -> Option<PathBuf> {
        self.state.as_ref().map(|state| state.path.join("upper"))
    }

    /// Unmounts, and deletes the mount point and all changes.
    pub fn unmount(mut self) -> Result<(), Error> {
        self.take_down()
    }

    fn take_down(&mut self) -> Result<(), Error> {
        if self.state.is_none() {
            return Ok(());
        }
        let path = &self.mount_point;
        // Until this has worked the changes are in use.
        sys::detach_mount(self.parent.as_fd(), &self.name)
            .map_err(|errno| Error::io(Operation::Unmount, path, errno))?;
        let state = self.state.take();
        rustix::fs::unlinkat(&self.parent, &*self.name, AtFlags::REMOVEDIR)
            .map_err(|errno| Error::io(Operation::RemoveDirectory, path, errno))?;
        state.map_or(Ok(()), State::delete)
    }
}

impl Drop for OverlayMount {
    fn drop(&mut self) {
        let _ = self.take_down();
    }
}

impl State {
    /// Makes `upper` and `work` under a hidden name. The root of the mounted tree shows the upper directory's metadata: the source's.
    pub(crate) fn make(parent: &Path, source: &Source) -> Result<Self, Error> {
        let failed = |errno| Error::io(Operation::CreateUpper, parent, errno);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = crate::sys::open_at(rustix::fs::CWD, parent, flags, Mode::empty()).map_err(failed)?;
        let lock = Lock::reserve(directory.as_fd(), Purpose::Overlay).map_err(failed)?;
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
        let root = open(self.parent.as_fd(), self.lock.name()).map_err(failed)?;
        let made = rustix::fs::fstat(&root).map_err(failed)?;
        self.lock.record(identity(&made)).map_err(failed)?;
        for name in [c"upper", c"work"] {
            rustix::fs::mkdirat(&root, name, Mode::RWXU).map_err(failed)?;
        }
        let upper = open(root.as_fd(), c"upper").map_err(failed)?;
        sys::drop_inherited_acls(upper.as_fd());
        let now = rustix::fs::fstat(&upper).map_err(failed)?;
        let notes = Notes::default();
        let created = NewFileDefaults { uid: now.st_uid, gid: now.st_gid, mask: 0o777, times: HeldTimes::ALL };
        let mut keeper = Keeper::new(created, None, &notes);
        let src = XattrTarget::Open(source.directory());
        keeper
            .load_xattrs(src)
            .and_then(|_| {
                let target = Target::Open(upper.as_fd());
                keeper.keep(src, target, source.stat(), Some(now.st_mode & 0o7777), &PathBuf::new)
            })
            .map_err(|fault| Error::io(fault.operation, &self.path, fault.errno))
    }

    fn open(&self) -> sys::Result<[OwnedFd; 2]> {
        let root = open(self.parent.as_fd(), self.lock.name())?;
        Ok([open(root.as_fd(), c"upper")?, open(root.as_fd(), c"work")?])
    }

    fn delete(self) -> Result<(), Error> {
        let deletion = Deletion {
            threads: thread_count(None),
            progress: &Progress::default(),
            cancel: &CancelToken::default(),
            last: None,
            opens_up: true,
            unlocks: false,
        };
        delete(self.parent.as_fd(), self.lock.name(), &self.path, &deletion)?;
        self.lock.remove(self.parent.as_fd());
        Ok(())
    }
}

fn open(parent: BorrowedFd<'_>, name: &std::ffi::CStr) -> sys::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    crate::sys::open_at(parent, name, flags, Mode::empty())
}
