//! Counters to read, and a token to cancel by, from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::Error;

/// Counters of a clone, a removal or a transfer. They are updated once per directory, and only grow.
#[derive(Debug, Default)]
pub struct Progress {
    entries: AtomicU64,
    bytes: AtomicU64,
}

impl Progress {
    /// Counts the work done.
    pub fn add(&self, entries: u64, bytes: u64) {
        self.entries.fetch_add(entries, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the number of files, directories and other entries done so far.
    pub fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// Returns the bytes of file contents done so far, shared or written.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// Ends an operation early. Its clones are the same token.
#[derive(Debug, Clone, Default)]
pub struct CancelToken {
    flag: Arc<AtomicBool>,
    pace: Option<Arc<dyn Pace>>,
}

/// Holds up an operation whenever that asks whether to go on.
pub(crate) trait Pace: std::fmt::Debug + Send + Sync {
    /// Returns when the operation may go on. False if it must end.
    fn keep(&self) -> bool;
}

impl CancelToken {
    /// Creates a token from `flag`, which other code may set too (such as a signal handler).
    pub fn from_flag(flag: Arc<AtomicBool>) -> Self {
        Self { flag, pace: None }
    }

    /// Returns the same token, for an operation that `pace` holds up.
    pub(crate) fn with_pace(&self, pace: Arc<dyn Pace>) -> Self {
        Self { flag: Arc::clone(&self.flag), pace: Some(pace) }
    }

    /// Ends the operation as soon as possible.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// Returns whether the operation must end.
    pub fn is_cancelled(&self) -> bool {
        self.flag.load(Ordering::Relaxed) || self.pace.as_ref().is_some_and(|pace| !pace.keep())
    }

    /// Fails with [`Error::Interrupted`] if the operation must end.
    pub fn check(&self) -> Result<(), Error> {
        if self.is_cancelled() { Err(Error::Interrupted) } else { Ok(()) }
    }
}
