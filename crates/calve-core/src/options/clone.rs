use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::internal::InternalOptions;
use super::selection::Selection;
use crate::error::Error;
use crate::progress::{CancelToken, Progress};
use crate::vocabulary::strategy::{Choice, Requirement};

/// The treatment of an existing destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExistingDestination {
    /// Fail, touching nothing.
    #[default]
    Refuse,
    /// Exchange it atomically for the clone; the old one goes to the trash.
    Replace,
}

/// The treatment of file systems mounted below the source.
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
    /// Before it is published: it is absent or complete even after a power failure.
    Synced,
}

/// A comparison of the clone with its source before it is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CloneVerification {
    /// None.
    #[default]
    No,
    /// Types, contents, modes, owners, times, xattrs, link targets.
    Contents,
}

/// The treatment of entries that the caller may not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnreadableEntry {
    /// The clone fails.
    #[default]
    Fail,
    /// They are left out, and the report says so. A snapshot has them anyway.
    Skip,
}

/// The options of a clone. `CloneOptions::default()` suits most callers.
#[derive(Debug, Clone, Default)]
pub struct CloneOptions {
    /// Which strategies may be used.
    pub strategy: Choice,
    /// Properties that must hold.
    pub require: Vec<Requirement>,
    /// Patterns of entries to leave out, as the lines of a `.gitignore` in the source's root: see [`crate::Patterns`].
    pub exclude: Vec<String>,
    /// Which of the other entries are cloned; by default all.
    pub select: Option<Selection>,
    /// Entries that cannot be read.
    pub unreadable: UnreadableEntry,
    /// The treatment of an existing destination.
    pub existing: ExistingDestination,
    /// Mounts below the source.
    pub mounts: Mounts,
    /// When the clone has to be on the disk.
    pub durability: Durability,
    /// Compare before publishing.
    pub verify: CloneVerification,
    /// Worker threads for per-file strategies; by default one for each processor, at most eight.
    pub threads: Option<NonZeroUsize>,
    /// Places that [`ExistingDestination::Replace`] must not move away (the user's home directory, say).
    pub protect: Vec<PathBuf>,
    /// Counters that another thread may read while the clone is made.
    pub progress: Arc<Progress>,
    /// Ends the clone early; nothing is left behind.
    pub cancel: CancelToken,
    /// Spares that may be used. Only on Linux.
    pub spares: Option<SpareUse>,
    #[doc(hidden)]
    pub internal: InternalOptions,
}

impl CloneOptions {
    pub(crate) fn requires(&self, requirement: Requirement) -> bool {
        self.require.contains(&requirement)
    }

    /// Calls [`InternalOptions::before_publish`]. Fails if the caller has cancelled.
    pub(crate) fn check_cancelled(&self) -> Result<(), Error> {
        if let Some(callback) = &self.internal.before_publish {
            callback.call();
        }
        self.cancel.check()
    }
}

/// The spares that a clone may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpareUse {
    /// Where they are kept.
    pub home: PathBuf,
    /// Patterns of entries that they lack. Entries that a selection by a function leaves out are removed on use.
    pub made_without: Vec<String>,
    /// The body of a record that was read before.
    pub(crate) record: Option<Arc<RecordBody>>,
}

impl SpareUse {
    /// Permits using the spares kept in `home`.
    pub fn kept_in(home: impl Into<PathBuf>) -> Self {
        Self { home: home.into(), made_without: Vec::new(), record: None }
    }

    /// Permits using the spares of the user with this CALVE_HOME.
    pub fn in_home(home: &Path) -> Self {
        Self::kept_in(home.join("spares"))
    }
}

/// The body of a spare's record, and its BLAKE3 hash.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RecordBody {
    pub(crate) bytes: Vec<u8>,
    pub(crate) hash: [u8; 32],
}
