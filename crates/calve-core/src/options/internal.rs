//! Options of a clone for the other crates of this workspace.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The part of [`CloneOptions`](super::CloneOptions) that is no promise to users of the library.
#[derive(Debug, Clone, Default)]
pub struct InternalOptions {
    /// Takes over only what the copying functions of standard libraries do. By default everything that the destination can store. On Unix.
    pub plain: Option<PlainCopy>,
    /// How long other threads may wait.
    pub latency: Latency,
    /// Contents that the file system copied into its metadata.
    pub inlined: InlinedBytes,
    /// The source is a template, in which nothing changed since: see [`crate::template::HeldTemplate::restrict`].
    pub frozen: Option<FrozenSince>,
    /// Called right before the clone gets its name.
    pub before_publish: Option<BeforePublish>,
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

/// A function that is called once, on the cloning thread, when a clone is complete and about to get its name. It may throw
/// [`CloneOptions::cancel`](super::CloneOptions::cancel); then nothing is published.
#[derive(Clone)]
pub struct BeforePublish(Arc<dyn Fn() + Send + Sync>);

impl BeforePublish {
    /// Creates a callback from a function.
    pub fn new(function: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(function))
    }

    pub(crate) fn call(&self) {
        (self.0)();
    }
}

impl fmt::Debug for BeforePublish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BeforePublish")
    }
}

/// A template, and the moment after which nothing in it changed: see [`crate::template::HeldTemplate::restrict`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrozenSince {
    pub(crate) name: String,
    /// Seconds since 1970, and the nanoseconds beyond them.
    pub(crate) changed: (i64, i64),
}

/// A copy as the standard libraries of programming languages make it: each name becomes a file of its own, belongs to the caller, and has
/// the mode of the source, set-user-ID bits included. Anything but directories, regular files and symlinks is an error, and so is an entry
/// that vanishes meanwhile. One that is written to meanwhile is not reported.
#[derive(Debug, Clone)]
pub struct PlainCopy {
    /// Which times are kept.
    pub times: KeptTimes,
    /// The rule for extended attributes.
    pub xattrs: KeptXattrs,
    /// The treatment of symlinks.
    pub links: KeptLinks,
}

/// The entries that keep their times of access and modification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptTimes {
    /// No entry.
    None,
    /// Regular files.
    OfFiles,
    /// All entries.
    OfAll,
}

/// The rule for extended attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptXattrs {
    /// None.
    No,
    /// Those that the destination stores.
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
