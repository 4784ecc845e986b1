use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use crate::progress::{CancelToken, Progress};

/// The options of a removal.
#[derive(Debug, Clone, Default)]
pub struct RemoveOptions {
    /// Return at once, or when everything is gone.
    pub wait: RemovalWait,
    /// Places that must not be removed, nor any directory that contains them (the user's home directory, say).
    pub protect: Vec<PathBuf>,
    /// Worker threads when deleting in the foreground.
    pub threads: Option<NonZeroUsize>,
    /// Counters that another thread may read.
    pub progress: Arc<Progress>,
    /// Stops deleting early. The rest is in the trash, or where it was.
    pub cancel: CancelToken,
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
