//! Options of a clone for the other crates of this workspace.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The part of [`CloneOptions`](super::CloneOptions) that promises nothing to users of the library.
#[derive(Debug, Clone, Default)]
pub struct InternalOptions {
    /// Keeps only what standard libraries keep when they copy; by default all that the destination can store. On Unix.
    pub plain: Option<PlainCopy>,
    pub latency: Latency,
    /// How to count contents that the file system copied into its metadata.
    pub inlined: InlinedBytes,
    /// The source is a template, in which nothing changed since: see [`crate::template::HeldTemplate::restrict`].
    pub frozen: Option<FrozenSince>,
    /// Called right before the clone gets its name.
    pub before_publish: Option<BeforePublish>,
}

impl InternalOptions {
    /// Returns whether the caller adds entries in the directory or below it. The copy is left as it was made, for the
    /// caller to give it its metadata afterwards: what is added would inherit its default ACL or group, or be refused.
    pub(crate) fn is_left_open(&self, directory: impl FnOnce() -> PathBuf) -> bool {
        match self.plain.as_ref().map(|plain| &plain.links) {
            Some(KeptLinks::Listed(links)) => {
                let directory = directory();
                links.lock().range(directory.clone()..).next().is_some_and(|path| path.starts_with(&directory))
            }
            _ => false,
        }
    }
}

/// How the report counts contents that the file system copied into its metadata instead of sharing them: small files on
/// btrfs. Counting them reads the extents of each (FIEMAP).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InlinedBytes {
    /// They are counted on their own.
    #[default]
    Counted,
    /// They are counted as shared, which saves reading extents.
    WithShared,
}

/// How long the kernel's own work for a clone may keep other threads waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Latency {
    /// As long as the file system likes.
    #[default]
    Any,
    /// Makes XFS write its log every 30 ms. Otherwise it writes more at once, and occupies a processor for tens of
    /// milliseconds on a kernel without preemption. For programs that serve others meanwhile.
    Low,
}

/// A function that is called once, on the cloning thread, right before a complete clone gets its name. If it cancels
/// [`CloneOptions::cancel`](super::CloneOptions::cancel), nothing is published.
#[derive(Clone)]
pub struct BeforePublish(Arc<dyn Fn() + Send + Sync>);

impl BeforePublish {
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
    /// Seconds since 1970, and nanoseconds.
    pub(crate) changed: (i64, i64),
}

/// A copy as standard libraries make it: each name becomes a file of its own, belongs to the caller, and has the
/// source's mode, set-user-ID bits included. Fails for other kinds than directories, regular files and symlinks, and
/// for an entry that vanishes meanwhile. One that is written meanwhile is not reported.
#[derive(Debug, Clone)]
pub struct PlainCopy {
    pub times: KeptTimes,
    pub xattrs: KeptXattrs,
    pub links: KeptLinks,
}

/// The entries that keep their times of access and modification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptTimes {
    None,
    OfFiles,
    OfAll,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptXattrs {
    No,
    /// Those that the destination stores.
    Yes,
}

/// The treatment of symlinks in a plain copy.
#[derive(Debug, Clone)]
pub enum KeptLinks {
    /// They stay as they are.
    Verbatim,
    /// Relative ones become absolute: resolved, by name alone, from this absolute path of the source.
    Absolute(PathBuf),
    /// They are left out, and put on this list. The copies of the directories that lead to them stay without metadata.
    Listed(LeftLinks),
    /// A symlink is an error.
    Refuse,
}

/// The symlinks that a plain copy has left out. Clones of this share the list.
#[derive(Debug, Clone, Default)]
pub struct LeftLinks(Arc<Mutex<BTreeSet<PathBuf>>>);

impl LeftLinks {
    pub fn add(&self, path: PathBuf) {
        self.lock().insert(path);
    }

    /// Returns the paths so far, relative to the source's root.
    pub fn lock(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
