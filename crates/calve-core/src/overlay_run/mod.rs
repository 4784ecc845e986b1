//! A private writable copy of a directory for one command: an overlay in its own mount namespace.

mod apply;
mod changes;
mod closed;
mod entries;
mod seal;
mod xattrs;

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{CWD, Mode, RawMode};

use crate::clone::clone_and_change;
use crate::error::{Error, IoContext, PrivateError};
use crate::options::CloneOptions;
use crate::progress::CancelToken;
use crate::remove::sweep::sweep_hidden;
use crate::report::CloneReport;
use crate::strategy::overlay::OverlayState;
use crate::sys::{self, Denial, Steps};
use crate::tree::location::{DIRECTORY, is_at};
use crate::tree::lock::Purpose;
use crate::tree::node::full_path;
use crate::tree::source::Source;
use crate::tree::stable::Since;
use crate::vocabulary::operation::Operation;

pub use crate::tree::walk::EntryKind;
use apply::ApplyRequest;
pub use changes::{Change, Version};
use changes::{Layer, ListingScope};
use closed::ClosedEntries;
use entries::Directories;
use seal::with_writable;
use xattrs::RootState;

/// A private copy, with the changes of its commands.
pub struct PrivateOverlay {
    /// Open, so that no other directory can get its inode number.
    tree: Source,
    state: OverlayState,
    /// The root as it was before the command ran.
    began: RootState,
    closed: ClosedEntries,
}

/// The changes in a private copy when they were listed.
#[derive(Default)]
pub struct Changes {
    different: Vec<Change>,
    /// `different`, and entries with only a new time.
    touched: Vec<Change>,
    /// The moment before the listing.
    since: Option<Since>,
}

impl std::ops::Deref for Changes {
    type Target = [Change];

    /// Returns the entries that differ from the tree, sorted by path.
    fn deref(&self) -> &[Change] {
        &self.different
    }
}

impl Changes {
    /// Returns whether only times have changed.
    pub fn are_of_times(&self) -> bool {
        self.different.is_empty() && !self.touched.is_empty()
    }
}

/// Tells why a command could not be started.
pub struct StartRefusal {
    steps: Steps,
    tree: PathBuf,
    working_directory: PathBuf,
}

impl StartRefusal {
    /// Returns the reason why `command` failed to start with `error`.
    pub fn reason(&self, command: &Command, error: io::Error) -> Error {
        let refused = match self.steps.refused() {
            Some(Denial::Namespaces) => PrivateError::NoNamespaces(error),
            Some(Denial::Overlay) => {
                let tree = self.tree.clone();
                // The kernel makes its own directories beside the changes.
                if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
                    return Error::io(Operation::MountOverlayOf, &tree, error);
                }
                PrivateError::NoOverlay { tree, source: error }
            }
            Some(Denial::WorkingDirectory) => {
                return Error::io(Operation::EnterDirectory, &self.working_directory, error);
            }
            None => PrivateError::NotStarted { program: command.get_program().to_owned(), source: error },
        };
        refused.into()
    }
}

impl PrivateOverlay {
    /// Prepares the directory `changes` for changes of `tree`, a path without links. Deletes leftovers of killed runs.
    /// Fails if the overlay would hide a mount below `tree`.
    pub fn new(tree: &Path, changes: &Path) -> Result<Self, Error> {
        let source = Source::open(tree)?;
        source.expect_directory(Operation::MountOverlayOf)?;
        let below = sys::mounts_below(source.directory()).io(Operation::LookForMounts, source.path())?;
        if let Some(mount) = below.first() {
            return Err(PrivateError::MountBelow(mount.clone()).into());
        }
        let state = OverlayState::make(changes, &source)?;
        let began = sys::open_at(CWD, state.path.join("upper").as_path(), DIRECTORY)
            .and_then(|upper| RootState::read(upper.as_fd(), &ClosedEntries::default()))
            .io(Operation::CreateUpper, &state.path)?;
        sweep_hidden(state.parent.as_fd(), state.path.parent().unwrap_or(&state.path), Purpose::Overlay)?;
        Ok(Self { tree: source, state, began, closed: ClosedEntries::default() })
    }

    /// Makes `command` see the overlay. The changes are kept while one of its processes lives.
    pub fn contain(&self, command: &mut Command, working_directory: &Path) -> Result<StartRefusal, Error> {
        let [upper, work] = ["upper", "work"].map(|name| self.state.path.join(name));
        let (paths, lock) = ([self.tree(), &upper, &work], self.state.lock.descriptor());
        let steps = sys::contain(command, paths, lock, working_directory);
        let steps = steps.io(Operation::MountOverlay, working_directory)?;
        Ok(StartRefusal { steps, tree: self.tree().to_path_buf(), working_directory: working_directory.to_path_buf() })
    }

    /// Returns the moment after which changes of the tree count for [`PrivateOverlay::apply`]. Takes up to 10 ms, a tick
    /// of file clocks, or up to a second where those have whole seconds.
    pub fn base_state(&self) -> Result<BaseState, Error> {
        self.now(&open_directory(self.tree())?).map(BaseState)
    }

    fn now(&self, layer: &OwnedFd) -> Result<Since, Error> {
        rustix::fs::fstat(layer).map(|stat| Since::now(&stat)).io(Operation::Stat, self.tree())
    }

    /// Returns the original directory.
    pub fn tree(&self) -> &Path {
        self.tree.path()
    }

    /// Lists the changes, sorted by path: entries that differ from the tree in kind, mode, owner, contents or extended
    /// attributes. A process that still runs may change more. [`ChangesUse::Apply`] waits for the same.
    pub fn changes(&mut self, use_of_them: ChangesUse) -> Result<Changes, Error> {
        let state = sys::open_at(CWD, self.state.path.as_path(), DIRECTORY).io(Operation::Compare, self.tree())?;
        self.closed.open(state.as_fd(), c"upper").io(Operation::Compare, self.tree())?;
        let layers = self.layers()?;
        let since = (use_of_them == ChangesUse::Apply).then(|| self.now(&layers[1])).transpose()?;
        let touched = self.list(&layers, ListingScope::Touched)?;
        let different = touched.iter().filter(|change| change.is_different).cloned().collect();
        Ok(Changes { different, touched, since })
    }

    fn list(&self, [lower, upper]: &[OwnedFd; 2], scope: ListingScope) -> Result<Vec<Change>, Error> {
        changes::changes(&self.layer(upper.as_fd()), lower.as_fd(), self.tree(), scope)
    }

    fn layer<'a>(&'a self, upper: BorrowedFd<'a>) -> Layer<'a> {
        Layer { directory: upper, began: &self.began, closed: &self.closed }
    }

    /// Returns the changes if they are still those that were `shown`.
    fn unchanged(&self, layers: &[OwnedFd; 2], shown: &Changes) -> Result<Vec<Change>, Error> {
        // Checking times is faster than reading all contents again. Listing reports what cannot be checked.
        if shown.since.is_some_and(|since| changes::is_quiet(layers[1].as_fd(), since).unwrap_or(false)) {
            return Ok(shown.touched.clone());
        }
        let now = self.list(layers, ListingScope::Touched)?;
        let mut pairs = (0..now.len().max(shown.touched.len())).map(|at| [now.get(at), shown.touched.get(at)]);
        let other = pairs.find(|[now, shown]| now != shown);
        match other.and_then(|pair| pair.into_iter().flatten().map(|change| &change.path).min()) {
            Some(path) => Err(PrivateError::ChangedSinceShown(full_path(self.tree(), path)).into()),
            None => Ok(now),
        }
    }

    /// Returns the most bytes that the overlay may have copied for these changes: a whole file when it is first opened
    /// for writing (overlayfs.rst, "Non-directories"). A new file under an old name counts, too.
    pub fn most_copied(&self, changes: &[Change]) -> u64 {
        let Ok([lower, _]) = self.layers() else { return 0 };
        let is_file = |kind| kind == Some(EntryKind::File);
        let changed = changes.iter().filter(|change| is_file(change.before) && is_file(change.after));
        let mut tree = Directories::new(lower.as_fd());
        // The file may be gone.
        changed.map(|change| tree.entry(&change.path).map_or(0, |stat| sys::size(&stat))).sum()
    }

    /// Reads the entry before and after (`None` unless a file or symlink), but no contents of more than `most` bytes.
    pub fn versions(&self, change: &Change, most: u64) -> Result<[Option<Version>; 2], Error> {
        let read = |root: &OwnedFd, kind| match kind {
            Some(EntryKind::File | EntryKind::Symlink) => changes::version(root.as_fd(), &change.path, most)
                .map(Some)
                .io(Operation::Read, self.tree().join(&change.path)),
            _ => Ok(None),
        };
        let [lower, upper] = self.layers()?;
        Ok([read(&lower, change.before)?, read(&upper, change.after)?])
    }

    /// Applies all changes to the tree itself, including those of times alone, or none. `shown`: the changes as listed.
    ///
    /// # Errors
    /// Fails with [`PrivateError::ChangedMeanwhile`] if an entry of the tree has changed since the beginning (by
    /// ctime), with [`PrivateError::ChangedSinceShown`] if the copy has changed since it was listed, and with
    /// [`PrivateError::ClockSetBack`] if those times tell nothing. Leaves the tree as it was, except with
    /// [`PrivateError::HalfApplied`].
    pub fn apply(&self, shown: &Changes, since: &BaseState, cancel: &CancelToken) -> Result<(), Error> {
        let layers = self.layers()?;
        if !is_at(self.tree.directory(), CWD, self.tree()) {
            return Err(PrivateError::ChangedMeanwhile(self.tree().to_path_buf()).into());
        }
        let changes = self.unchanged(&layers, shown)?;
        let (lower, upper) = (layers[0].as_fd(), self.layer(layers[1].as_fd()));
        let (tree, shown) = (self.tree(), Some(shown.since.unwrap_or(since.0)));
        ApplyRequest { tree, real_path: tree, lower, upper, since: Some(since.0), shown, cancel }.apply(&changes)
    }

    /// Makes `dst` a clone of the tree with all changes, including those of times and attributes alone.
    pub fn keep(&self, dst: &Path, options: &CloneOptions) -> Result<CloneReport, Error> {
        let layers = self.layers()?;
        let changes = self.list(&layers, ListingScope::All)?;
        // Publishing gives the clone the metadata of the tree's root, so the command's come after that.
        let below = changes.into_iter().filter(|change| !change.path.as_os_str().is_empty());
        let below: Vec<_> = below.map(|change| Change { is_different: true, ..change }).collect();
        let (upper, cancel) = (self.layer(layers[1].as_fd()), &options.cancel);
        let (tree, since, shown) = (dst, None, None);
        let report = clone_and_change(self.tree(), dst, options, |staged| {
            let (real_path, lower) = (&staged.path(), staged.root()?);
            ApplyRequest { tree, real_path, lower, upper, since, shown, cancel }.apply(&below)
        })?;
        let root = open_directory(dst)?;
        ApplyRequest { tree, real_path: dst, lower: root.as_fd(), upper, since, shown, cancel }.give_root()?;
        Ok(report)
    }

    /// Moves the changes to `dst`, a new name in the directory that keeps them. They stay in the kernel's form
    /// (overlayfs.rst: a character device 0/0 stands for a deleted entry).
    pub fn set_aside(&self, dst: &Path) -> Result<(), Error> {
        let OverlayState { parent, path, .. } = &self.state;
        let name = |path: &Path| CString::new(path.file_name().unwrap_or_default().as_bytes()).unwrap_or_default();
        let moved = sys::open_at(parent.as_fd(), &name(path), DIRECTORY).and_then(|state| {
            let upper = sys::open_at(state.as_fd(), c"upper", DIRECTORY)?;
            // The changes matter more than the modes of their entries.
            let _ = self.closed.close(upper.as_fd(), |_| true);
            let (from, to) = ((state.as_fd(), c"upper"), (parent.as_fd(), &*name(dst)));
            with_writable([from, to], || sys::rename_no_replace(from.0, from.1, to.0, to.1))?;
            let root = self.closed.as_left(PathBuf::new, rustix::fs::fstat(&upper)?);
            let _ = rustix::fs::fchmod(&upper, Mode::from_raw_mode(root.st_mode as RawMode & 0o7777));
            Ok(())
        });
        moved.io(Operation::SetAside, dst)
    }

    fn layers(&self) -> Result<[OwnedFd; 2], Error> {
        Ok([open_directory(self.tree())?, open_directory(&self.state.path.join("upper"))?])
    }

    /// Deletes the changes. Returns false if processes that the commands left behind still use them: another overlay in
    /// the same directory deletes them when those have ended.
    pub fn discard(self) -> Result<bool, Error> {
        // Not unlocked: that would take the lock from those processes too.
        let Self { state: OverlayState { parent, path, lock }, .. } = self;
        let name = lock.name().to_owned();
        drop(lock);
        sweep_hidden(parent.as_fd(), path.parent().unwrap_or(&path), Purpose::Overlay)?;
        Ok(sys::stat_at(&parent, &*name).is_err())
    }
}

fn open_directory(path: &Path) -> Result<OwnedFd, Error> {
    sys::open_at(CWD, path, DIRECTORY).io(Operation::OpenDirectory, path)
}

/// The use of a list of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangesUse {
    /// They are shown.
    Show,
    /// They may be applied, if they are still the same then.
    Apply,
}

/// A moment before a command was started.
pub struct BaseState(Since);
