//! The space that trees use and share.

use std::path::PathBuf;

use calve_core::{DedupeReport, DiskUsage};
use serde::Serialize;

use crate::values::{Milliseconds, ReceiptPath, SkippedEntry, Warning};
use crate::values::{path, paths, skipped, warnings};

/// The report of `calve du`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.du/1")]
pub struct DiskUsageReceipt {
    /// Each path by itself.
    paths: Vec<PathUsage>,
    /// All paths together.
    total: Usage,
    /// The number of entries that could not be read. The result does not cover them.
    unreadable: u64,
    /// The first of these entries.
    skipped: Vec<SkippedEntry>,
    /// Other facts that the user should know.
    warnings: Vec<Warning>,
    /// The time that it took in milliseconds.
    elapsed_ms: Milliseconds,
}

/// The space that one path uses.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PathUsage {
    /// The path as given.
    path: ReceiptPath,
    /// True if the path is inside another one, so that the total does not count it again.
    inside_another: bool,
    /// The space.
    #[serde(flatten)]
    usage: Usage,
}

/// Space in bytes.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Usage {
    /// The number of entries.
    entries: UsageEntries,
    /// The sum of the files' sizes.
    apparent: u64,
    /// The space that the file system counts for the files.
    allocated: u64,
    /// The space that nothing else uses.
    exclusive: u64,
    /// The space that is shared among these files and with nothing else.
    shared_within: u64,
    /// The least space that is shared with other files.
    shared_outside_min: u64,
    /// The most space that is shared with other files.
    shared_outside_max: u64,
    /// The contents that the file system keeps inside its metadata.
    inline: u64,
    /// The space that deletion frees. Null if `frees_min` and `frees_max` differ.
    frees: Option<u64>,
    /// The part of the freed space that is file contents. Null if it is unknown.
    frees_data: Option<u64>,
    /// The least space that deletion frees.
    frees_min: u64,
    /// The most space that deletion frees.
    frees_max: u64,
}

/// The number of entries of each kind.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct UsageEntries {
    /// Regular files. Each inode counts once.
    files: u64,
    /// Directories.
    directories: u64,
    /// Everything else.
    others: u64,
    /// Further names of files that `files` counts.
    hard_links: u64,
}

impl From<&calve_core::Usage> for Usage {
    fn from(usage: &calve_core::Usage) -> Self {
        Self {
            entries: UsageEntries {
                files: usage.files,
                directories: usage.directories,
                others: usage.others,
                hard_links: usage.hard_links,
            },
            apparent: usage.apparent,
            allocated: usage.allocated,
            exclusive: usage.exclusive,
            shared_within: usage.shared_within,
            shared_outside_min: usage.shared_outside_min,
            shared_outside_max: usage.shared_outside_max,
            inline: usage.inline,
            frees: (usage.frees_min == usage.frees_max).then_some(usage.frees_min),
            frees_data: usage.frees_data,
            frees_min: usage.frees_min,
            frees_max: usage.frees_max,
        }
    }
}

impl From<&DiskUsage> for DiskUsageReceipt {
    fn from(report: &DiskUsage) -> Self {
        let paths = report.paths.iter().map(|one| PathUsage {
            path: path(&one.path),
            inside_another: one.inside_another,
            usage: (&one.usage).into(),
        });
        Self {
            paths: paths.collect(),
            total: (&report.total).into(),
            unreadable: report.unreadable,
            skipped: skipped(&report.skipped),
            warnings: warnings(&report.warnings),
            elapsed_ms: report.elapsed.into(),
        }
    }
}

/// The report of `calve dedupe`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.dedupe/1")]
pub struct DedupeReceipt {
    #[serde(flatten)]
    sharing: Sharing,
    /// The trees as given.
    paths: Vec<ReceiptPath>,
}

impl DedupeReceipt {
    /// Converts the report of sharing within `trees`.
    pub fn new(report: &DedupeReport, dry_run: bool, trees: &[PathBuf]) -> Self {
        Self { sharing: Sharing::new(report, dry_run), paths: paths(trees) }
    }
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Sharing {
    /// True if nothing was changed.
    dry_run: bool,
    /// The number of files that were compared.
    files: u64,
    /// The number of sets of files with the same contents.
    groups: u64,
    /// The bytes that were read to compare it.
    hashed: Amount,
    /// The bytes that were shared, or would be in a dry run.
    shared: SharedAmount,
    /// The number of files that shared everything before.
    already_shared_files: u64,
    /// The growth of the free space in bytes. Null if it is unknown.
    gained_bytes: Option<i64>,
    /// Files that were not compared, by reason.
    left_alone: Vec<LeftAlone>,
    /// The number of entries that could not be read.
    unreadable: u64,
    /// The first of these entries.
    skipped: Vec<SkippedEntry>,
    /// Other facts that the user should know.
    warnings: Vec<Warning>,
    /// The time that it took in milliseconds.
    elapsed_ms: Milliseconds,
}

/// A number of files and the size of their contents.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Amount {
    /// The number of files.
    files: u64,
    /// Their contents in bytes.
    bytes: u64,
}

/// Contents that are shared.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SharedAmount {
    /// The number of files.
    files: u64,
    /// The shared contents in bytes.
    bytes: u64,
}

/// Files that were not compared, for one reason.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LeftAlone {
    /// The reason in a few words.
    reason: String,
    /// The number of files.
    files: u64,
    /// The first of them.
    first_path: ReceiptPath,
}

impl Sharing {
    fn new(report: &DedupeReport, dry_run: bool) -> Self {
        let left_alone = report.left_alone.iter().map(|left| LeftAlone {
            reason: left.reason.text().into(),
            files: left.files,
            first_path: path(&left.first_path),
        });
        Self {
            dry_run,
            files: report.files,
            groups: report.groups,
            hashed: Amount { files: report.hashed_files, bytes: report.hashed_bytes },
            shared: SharedAmount { files: report.shared_files, bytes: report.shared_bytes },
            already_shared_files: report.already_files,
            gained_bytes: report.gained_bytes,
            left_alone: left_alone.collect(),
            unreadable: report.unreadable,
            skipped: skipped(&report.skipped),
            warnings: warnings(&report.warnings),
            elapsed_ms: report.elapsed.into(),
        }
    }
}
