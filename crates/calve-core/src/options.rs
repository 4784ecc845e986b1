//! The options of every function.

#![warn(missing_docs)]

use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::choice::{Choice, Requirement};
use crate::error::Error;
use crate::progress::{CancelToken, Progress};
use crate::reason::SkipReason;

/// The treatment of an existing destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExistingDestination {
    /// Fail, touching nothing.
    #[default]
    Refuse,
    /// Exchange it atomically for the clone; the old one goes to the trash.
    Replace,
}

/// The treatment of other file systems that are mounted below the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mounts {
    /// They are read like any other directory.
    #[default]
    Cross,
    /// Their mount points become empty directories.
    Stay,
}

/// When the clone has to be on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// When the operating system writes it back.
    #[default]
    Cached,
    /// Before it is published: it is absent or complete also after a power failure.
    Synced,
}

/// A comparison of the clone with its source before it is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the other names say it")]
pub enum CloneVerification {
    #[default]
    No,
    /// Types, contents, modes, owners, times, xattrs, link targets.
    Contents,
}

/// The way in which the report counts contents that the file system copied into its metadata instead of sharing them.
///
/// Only btrfs does that, with small files. Counting them takes a look at the extents of each (FIEMAP).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InlinedBytes {
    /// They are counted on their own.
    #[default]
    Counted,
    /// They are counted as shared, which saves the look.
    WithShared,
}

/// How long the kernel's own work for a clone may keep other threads waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Latency {
    /// As long as the file system likes.
    #[default]
    Any,
    /// XFS is made to write its log every 30 ms. It would otherwise write more at once, and keep a processor for tens of milliseconds
    /// on a kernel without preemption. For programs that answer to others meanwhile.
    Low,
}

/// The treatment of entries that the caller may not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnreadableEntry {
    /// The clone fails.
    #[default]
    Fail,
    /// They are left out, and the report says so. A snapshot has them all the same.
    Skip,
}

/// The fate of one entry, and of all that is below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It is cloned; if it is a directory, its entries are asked about in their turn.
    Take,
    /// It is left out, and the report does not mention it.
    Leave,
    /// It is left out, and the report gives this reason.
    LeaveBecause(SkipReason),
}

/// Chooses which entries of a tree are cloned.
pub trait EntrySelector: Send + Sync {
    /// Decides about the entry at `path`, relative to the root. Several threads ask at a time.
    fn of(&self, path: &Path, is_directory: bool) -> Decision;

    /// Returns a function that decides as [`EntrySelector::of`] does about the entries of one directory. A choice that depends on the directory
    /// looks it up once.
    fn inside<'a>(&'a self, _directory: &Path) -> Box<EntryDecider<'a>> {
        Box::new(|path, is_directory| self.of(path, is_directory))
    }
}

/// The function that [`EntrySelector::inside`] returns.
pub type EntryDecider<'a> = dyn Fn(&Path, bool) -> Decision + 'a;

impl<F: Fn(&Path, bool) -> Decision + Send + Sync> EntrySelector for F {
    fn of(&self, path: &Path, is_directory: bool) -> Decision {
        self(path, is_directory)
    }
}

/// Chooses which entries of a tree are cloned: by a function, or by an [`EntrySelector`] that is shared.
#[derive(Clone)]
pub struct Selection(Arc<dyn EntrySelector>);

impl Selection {
    /// Creates a selection by the function `choose`, which is called as [`EntrySelector::of`] is.
    pub fn new(choose: impl Fn(&Path, bool) -> Decision + Send + Sync + 'static) -> Self {
        Self(Arc::new(choose))
    }

    pub(crate) fn of(&self, path: &Path, is_directory: bool) -> Decision {
        self.0.of(path, is_directory)
    }

    pub(crate) fn inside(&self, directory: &Path) -> Box<EntryDecider<'_>> {
        self.0.inside(directory)
    }
}

impl From<Arc<dyn EntrySelector>> for Selection {
    fn from(select: Arc<dyn EntrySelector>) -> Self {
        Self(select)
    }
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Selection")
    }
}

/// A function that is called once, on the cloning thread, when a clone is complete and about to get its name. It may throw
/// [`CloneOptions::cancel`]; then nothing is published.
#[derive(Clone)]
pub struct LastLook(Arc<dyn Fn() + Send + Sync>);

impl LastLook {
    /// Creates a last look that calls `look`.
    pub fn new(look: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(look))
    }

    pub(crate) fn take(&self) {
        (self.0)();
    }
}

impl fmt::Debug for LastLook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LastLook")
    }
}

/// The spares that a clone may use.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpareUse {
    /// Where they are kept.
    pub home: PathBuf,
    /// The patterns of what they are made without. A clone that selects by a function uses spares only if this says what they
    /// are made without; what is not selected is then removed from the spare.
    pub made_without: Vec<String>,
    /// The part of a spare's record that was read before.
    pub(crate) record: Option<Arc<RecordBody>>,
}

impl SpareUse {
    /// Permits using the spares kept in `home`.
    pub fn of(home: impl Into<PathBuf>) -> Self {
        Self { home: home.into(), made_without: Vec::new(), record: None }
    }

    /// Permits using those of this user, whose CALVE_HOME this is: see [`crate::home_directory`].
    pub fn in_home(home: &Path) -> Self {
        Self::of(home.join("spares"))
    }
}

/// The record of a spare for each directory, and its BLAKE3 hash.
#[derive(PartialEq, Eq)]
pub(crate) struct RecordBody {
    pub(crate) bytes: Vec<u8>,
    pub(crate) hash: [u8; 32],
}

impl fmt::Debug for RecordBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecordBody")
    }
}

/// A template, and the moment after which nothing in it changed: see [`crate::HeldTemplate::restrict`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrozenSince {
    pub(crate) name: String,
    /// Seconds since 1970, and the nanoseconds beyond them.
    pub(crate) changed: (i64, i64),
}

/// The options of a clone. `CloneOptions::default()` suits most callers.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CloneOptions {
    /// Which strategies may be used.
    pub strategy: Choice,
    /// Properties that must hold.
    pub require: Vec<Requirement>,
    /// Patterns of entries to leave out, as the lines of a `.gitignore` in the source's root: see [`crate::Patterns`].
    pub exclude: Vec<String>,
    /// Which of the other entries are cloned; by default all.
    pub select: Option<Selection>,
    /// Takes over only what the copying functions of standard libraries do. By default everything that the destination can store. On Unix.
    pub plain: Option<PlainCopy>,
    /// Entries that cannot be read.
    pub unreadable: UnreadableEntry,
    /// The fate of an entry that has the name of the destination.
    pub existing: ExistingDestination,
    /// Mounts below the source.
    pub mounts: Mounts,
    /// When the clone has to be on the disk.
    pub durability: Durability,
    /// How long other threads may wait.
    pub latency: Latency,
    /// Compare before publishing.
    pub verify: CloneVerification,
    /// Contents that the file system copied into its metadata.
    pub inlined: InlinedBytes,
    /// Worker threads for per-file strategies; by default one for each processor, at most eight.
    pub threads: Option<NonZeroUsize>,
    /// Places that [`ExistingDestination::Replace`] must not move away (the user's home directory, say).
    pub protect: Vec<PathBuf>,
    /// Counters that another thread may read while the clone is made.
    pub progress: Arc<Progress>,
    /// Ends the clone early; nothing is left behind.
    pub cancel: CancelToken,
    /// The source is a template, in which nothing changed since: see [`crate::HeldTemplate::restrict`].
    pub frozen: Option<FrozenSince>,
    /// Called right before the clone gets its name.
    pub last_look: Option<LastLook>,
    /// Spares that may be used. Only on Linux.
    pub spares: Option<SpareUse>,
}

impl CloneOptions {
    pub(crate) fn requires(&self, requirement: Requirement) -> bool {
        self.require.contains(&requirement)
    }

    /// Takes the last look. Fails if the caller has cancelled.
    pub(crate) fn still_wanted(&self) -> Result<(), Error> {
        if let Some(look) = &self.last_look {
            look.take();
        }
        if self.cancel.is_cancelled() { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// The options of a removal.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RemoveOptions {
    /// Return at once, or when everything is gone.
    pub wait: RemovalWait,
    /// Places that must not be removed, nor any directory that contains them (the user's home directory, say).
    pub protect: Vec<PathBuf>,
    /// Worker threads when deleting in the foreground.
    pub threads: Option<NonZeroUsize>,
    /// Counters that another thread may read.
    pub progress: Arc<Progress>,
    /// Stops deleting early. What is left is in the trash, or where it was.
    pub cancel: CancelToken,
}

/// A copy as the standard libraries of programming languages make it: each name becomes a file of its own, belongs to the caller, and has
/// the mode of the source, set-user-ID bits included. Anything but directories, regular files and symlinks is an error, and so is an entry
/// that vanishes meanwhile. One that is written to meanwhile is not reported.
#[derive(Debug, Clone)]
pub struct PlainCopy {
    /// Which times are kept.
    pub times: KeptTimes,
    /// Whether extended attributes are kept.
    pub xattrs: KeptXattrs,
    /// The treatment of symlinks.
    pub links: KeptLinks,
}

/// The entries that keep their times of access and modification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the other names say it")]
pub enum KeptTimes {
    None,
    /// Regular files.
    OfFiles,
    OfAll,
}

/// Whether extended attributes are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the other names say it")]
pub enum KeptXattrs {
    No,
    /// As far as the destination stores them.
    Yes,
}

/// The treatment of symlinks in a plain copy.
#[derive(Debug, Clone)]
pub enum KeptLinks {
    /// They stay as they are.
    Verbatim,
    /// Relative ones become absolute: resolved, by their names alone, from the source's own absolute path, which this is.
    Absolute(PathBuf),
    /// They are left out, and put on this list.
    Listed(LeftLinks),
    /// A symlink is an error.
    Refuse,
}

/// The symlinks that a plain copy has left out. Clones of it are the same list.
#[derive(Debug, Clone, Default)]
pub struct LeftLinks(Arc<Mutex<Vec<PathBuf>>>);

impl LeftLinks {
    /// Adds a path.
    pub fn add(&self, path: PathBuf) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(path);
    }

    /// Returns their paths so far, relative to the root of the source, in no particular order.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The moment at which [`crate::remove_tree`] returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RemovalWait {
    /// The tree is renamed to the trash; [`crate::reap`] deletes it later.
    #[default]
    No,
    /// Everything is gone on return.
    Yes,
}

/// The priority of the process that calls [`crate::reap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Background {
    /// It stays as it is.
    No,
    /// It gets the lowest priority for processor and disk.
    Yes,
}

/// Makes the calling thread, and those that it starts, ones that are not felt: they run when nothing else does, and get the disk when
/// nobody else wants it. Where a system knows that for processes only, as macOS does, it is the whole process.
pub fn lower_priority() {
    crate::sys::lower_priority();
}
