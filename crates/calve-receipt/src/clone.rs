//! Clones and their dry runs.

use std::path::Path;

use calve_core::{ClonePlan, CloneReport};
use serde::Serialize;

use crate::sys;
use crate::values::{
    self, Milliseconds, ReceiptPath, Refusal, Seconds, SkippedEntry, StrategyName, Warning, path, paths, refusals,
    seconds_since_1970, warnings,
};

/// The report of one clone.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.clone/1")]
pub struct CloneReceipt {
    /// The source as given.
    src: ReceiptPath,
    /// The destination as given.
    dst: ReceiptPath,
    /// The strategy that was used.
    strategy: StrategyName,
    /// The better strategies that were not used.
    refused: Vec<Refusal>,
    /// The spare that was handed over. Absent if the clone was made when it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Spare"))]
    spare: Option<Spare>,
    /// The entries of the clone. Null if the strategy did not walk the tree.
    entries: Option<Entries>,
    /// The contents of the regular files. Null if the strategy did not walk the tree.
    bytes: Option<Bytes>,
    /// Files that were made in another way than the strategy's own.
    fell_back: Vec<FallBack>,
    /// Entries that are not in the clone, with paths relative to the source. At most 10,000.
    skipped: Vec<SkippedEntry>,
    /// Entries of the source that changed while they were cloned, relative to the source. At most 10,000.
    changed: Vec<ReceiptPath>,
    /// Other facts that the user should know.
    warnings: Vec<Warning>,
    /// The time in milliseconds from the start to the published clone.
    elapsed_ms: Milliseconds,
}

/// A clone that was made ahead of time and handed over.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Spare {
    /// When it was built, in seconds since 1970.
    built_at: Seconds,
    /// How it was made sure that it equals the source: `frozen` (the source is a template), `watched` (a watcher knows what has changed),
    /// `walked` (every entry was compared with what was recorded of it).
    #[cfg_attr(test, schemars(extend("enum" = ["frozen", "watched", "walked"])))]
    checked: &'static str,
    /// The number of entries that were looked at for that.
    entries_checked: u64,
    /// The number of entries that differed and were cloned again.
    entries_updated: u64,
}

/// The number of entries of each kind.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Entries {
    /// Directories, with the root.
    directories: u64,
    /// Regular files. Each inode counts once.
    files: u64,
    /// Symbolic links.
    symlinks: u64,
    /// Named pipes.
    fifos: u64,
    /// Character and block devices.
    devices: u64,
    /// Further names of files that `files` counts.
    hard_links: u64,
}

/// The contents of regular files, in bytes.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Bytes {
    /// The sum of the files' sizes.
    apparent: u64,
    /// Bytes that the clone shares with the source.
    shared: u64,
    /// Bytes that Calve wrote, without holes.
    written: u64,
    /// Bytes that the file system copied because it keeps them inside its metadata. Null if `shared` contains them.
    inlined: Option<u64>,
}

/// Files that were made in another way than the strategy's own.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FallBack {
    /// The way that was refused.
    from: StrategyName,
    /// The way that was used.
    to: StrategyName,
    /// The name of the system's error, such as `EXDEV`.
    errno: String,
    /// The number of files.
    files: u64,
    /// The first of them, relative to the source.
    first_path: ReceiptPath,
}

impl From<&CloneReport> for CloneReceipt {
    fn from(report: &CloneReport) -> Self {
        let entries = report.entries.map(|entries| Entries {
            directories: entries.directories,
            files: entries.files,
            symlinks: entries.symlinks,
            fifos: entries.fifos,
            devices: entries.devices,
            hard_links: entries.hard_links,
        });
        let bytes = report.bytes.map(|bytes| Bytes {
            apparent: bytes.apparent,
            shared: bytes.shared,
            written: bytes.written,
            inlined: bytes.inlined,
        });
        let fell_back = report.fell_back.iter().map(|fell| FallBack {
            from: fell.from.into(),
            to: fell.to.into(),
            errno: sys::error_name(fell.errno),
            files: fell.files,
            first_path: path(&fell.first_path),
        });
        let spare = report.spare.as_ref().map(|spare| Spare {
            built_at: seconds_since_1970(spare.built),
            checked: spare.checked.code(),
            entries_checked: spare.entries_checked,
            entries_updated: spare.entries_updated,
        });
        Self {
            src: path(&report.src),
            dst: path(&report.dst),
            strategy: report.strategy.into(),
            refused: refusals(&report.refused),
            spare,
            entries,
            bytes,
            fell_back: fell_back.collect(),
            skipped: values::skipped(&report.skipped),
            changed: paths(&report.changed),
            warnings: warnings(&report.warnings),
            elapsed_ms: report.elapsed.into(),
        }
    }
}

/// The reports of several clones.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.clones/1")]
pub struct CloneReceipts {
    /// The clones that were made, without those that failed.
    pub clones: Vec<CloneReceipt>,
}

/// The dry run of one clone.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.plan/1")]
pub struct PlanReceipt {
    /// The source as given.
    src: ReceiptPath,
    /// The destination as given.
    dst: ReceiptPath,
    /// The strategy that would be used.
    strategy: StrategyName,
    /// The better strategies that would not be used.
    refused: Vec<Refusal>,
}

impl PlanReceipt {
    /// Converts the plan for a clone of `src` at `dst`.
    pub fn new(src: &Path, dst: &Path, plan: &ClonePlan) -> Self {
        Self { src: path(src), dst: path(dst), strategy: plan.strategy.into(), refused: refusals(&plan.refused) }
    }
}

/// The dry run of several clones.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.plans/1")]
pub struct PlanReceipts {
    /// The clones that would be made, without those that cannot be.
    pub plans: Vec<PlanReceipt>,
}
