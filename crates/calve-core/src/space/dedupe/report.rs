use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::json::{As, Milliseconds, ReceiptPath, Text};
use crate::options::Mounts;
use crate::progress::{CancelToken, Progress};
use crate::report::{SkippedEntry, Warning};
use crate::vocabulary::reason::LeftReason;

/// Sharing, or only finding out what could be shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DedupeMode {
    /// Share them.
    #[default]
    Share,
    /// Say what would be shared. Nothing changes.
    DryRun,
}

/// How to share. `DedupeOptions::default()` suits most callers.
#[derive(Debug, Clone, Default)]
pub struct DedupeOptions {
    /// Sharing, or only a plan.
    pub mode: DedupeMode,
    /// Trees to share with. They stay as they are, and only files with an equal in one of them are shared.
    pub against: Vec<PathBuf>,
    /// A directory that caches the hashes of files for the next run.
    pub cache: Option<PathBuf>,
    /// The rule for other file systems below a path.
    pub mounts: Mounts,
    /// Worker threads; by default one for each processor, at most eight.
    pub threads: Option<NonZeroUsize>,
    /// Counters that another thread may read: entries walked and files dealt with, bytes read.
    pub progress: Arc<Progress>,
    /// Ends it early: files shared by then stay so, and the hashes are kept.
    pub cancel: CancelToken,
}

/// Files that were not compared, for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename = "LeftAlone")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftFiles {
    /// The reason in a few words.
    #[serde(with = "As::<Text>")]
    pub reason: LeftReason,
    /// The number of files.
    pub files: u64,
    /// The first of them.
    #[serde(with = "As::<ReceiptPath>")]
    pub first_path: PathBuf,
}

/// A number of files and the size of their contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Amount {
    /// The number of files.
    pub files: u64,
    /// Their contents in bytes.
    pub bytes: u64,
}

/// The files that were shared, and those that were not.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(tag = "schema", rename = "calve.dedupe/1")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(description = "The report of `calve dedupe`."))]
pub struct DedupeReport {
    /// True if nothing was changed.
    pub dry_run: bool,
    /// The number of files that were found. Each name counts.
    pub files: u64,
    /// The number of sets of files with the same contents.
    pub groups: u64,
    /// The bytes that were read to compare it.
    pub hashed: Amount,
    /// The bytes that were shared, or would be in a dry run.
    pub shared: Amount,
    /// The number of files that shared everything before.
    #[serde(rename = "already_shared_files")]
    pub already_files: u64,
    /// The growth of the free space in bytes. Null if it is unknown.
    pub gained_bytes: Option<i64>,
    /// Files that were not compared, by reason.
    pub left_alone: Vec<LeftFiles>,
    /// The number of entries that could not be read.
    pub unreadable: u64,
    /// The first of these entries.
    pub skipped: Vec<SkippedEntry>,
    /// Other facts that the user should know.
    pub warnings: Vec<Warning>,
    /// The time that it took in milliseconds.
    #[serde(rename = "elapsed_ms", with = "As::<Milliseconds>")]
    pub elapsed: Duration,
    /// The trees as given.
    #[serde(with = "As::<Vec<ReceiptPath>>")]
    pub paths: Vec<PathBuf>,
}
