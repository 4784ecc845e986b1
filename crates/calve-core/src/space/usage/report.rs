use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::json::{As, Milliseconds, ReceiptPath};
use crate::options::Mounts;
use crate::progress::{CancelToken, Progress};
use crate::report::{SkippedEntry, Warning};

/// How to measure trees. `DiskUsageOptions::default()` suits most callers.
#[derive(Debug, Clone, Default)]
pub struct DiskUsageOptions {
    /// The rule for other file systems below a path.
    pub mounts: Mounts,
    /// Worker threads; by default one for each processor, at most eight.
    pub threads: Option<NonZeroUsize>,
    /// Directory of an unnamed file for shared extents beyond a million. By default memory holds them, 32 bytes each.
    pub scratch: Option<PathBuf>,
    /// Counters that another thread may read.
    pub progress: Arc<Progress>,
    /// Ends the measurement early.
    pub cancel: CancelToken,
}

/// Space in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Usage {
    /// The number of entries.
    pub entries: UsageEntries,
    /// The sum of the files' sizes.
    pub apparent: u64,
    /// The space that the file system counts for the files.
    pub allocated: u64,
    /// The space that nothing else uses.
    pub exclusive: u64,
    /// The space that is shared among these files and with nothing else.
    pub shared_within: u64,
    /// The least space that is shared with other files.
    pub shared_outside_min: u64,
    /// The most space that is shared with other files.
    pub shared_outside_max: u64,
    /// The contents that the file system keeps inside its metadata.
    pub inline: u64,
    /// The space that deletion frees. Null if `frees_min` and `frees_max` differ.
    pub frees: Option<u64>,
    /// The part of the freed space that is file contents. Null if it is unknown.
    pub frees_data: Option<u64>,
    /// The least space that deletion frees.
    pub frees_min: u64,
    /// The most space that deletion frees.
    pub frees_max: u64,
}

/// The number of entries of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageEntries {
    /// Regular files. Each inode counts once.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Everything else.
    pub others: u64,
    /// Further names of files that `files` counts.
    pub hard_links: u64,
}

/// The space that one path uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathUsage {
    /// The path as given.
    #[serde(with = "As::<ReceiptPath>")]
    pub path: PathBuf,
    /// True if the path is inside another one, so that the total does not count it again.
    pub inside_another: bool,
    /// The space.
    #[serde(flatten)]
    pub usage: Usage,
}

/// The answer of [`disk_usage`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "schema", rename = "calve.du/1")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(description = "The report of `calve du`."))]
pub struct DiskUsage {
    /// Each path by itself.
    pub paths: Vec<PathUsage>,
    /// All paths together.
    pub total: Usage,
    /// The number of entries that could not be read. The result does not cover them.
    pub unreadable: u64,
    /// The first of these entries.
    pub skipped: Vec<SkippedEntry>,
    /// Other facts that the user should know.
    pub warnings: Vec<Warning>,
    /// The time that it took in milliseconds.
    #[serde(rename = "elapsed_ms", with = "As::<Milliseconds>")]
    pub elapsed: Duration,
}
