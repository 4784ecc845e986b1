use calve_core::bulk::WriteReport;
use calve_core::error::Remedy;
use calve_core::overlay_run::Change;
use calve_core::spares::SpareSet;
use calve_core::{CloneReport, ProbeReport, Refusal, RemoveReport, Strategy};
use serde::Serialize;

use crate::error::ErrorReceipt;
use crate::values::{Milliseconds, ReceiptPath};

/// The reports of several clones.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "program", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.clones/1")]
pub struct CloneReceipts {
    /// The clones that were made, without those that failed.
    pub clones: Vec<CloneReport>,
}

/// The dry run of one clone.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "program", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.plan/1")]
pub struct PlanReceipt {
    /// The source as given.
    pub src: ReceiptPath,
    /// The destination as given.
    pub dst: ReceiptPath,
    /// The strategy that would be used.
    pub strategy: Strategy,
    /// The better strategies that would not be used.
    pub refused: Vec<Refusal>,
}

/// The dry run of several clones.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "program", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.plans/1")]
pub struct PlanReceipts {
    /// The clones that would be made, without those that cannot be.
    pub plans: Vec<PlanReceipt>,
}

/// The strategies that can be used between two directories.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "program", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.probe/1")]
pub struct ProbeReceipt {
    #[serde(flatten)]
    report: ProbeReport,
    /// All strategies, in order of preference.
    strategies: Vec<Offer>,
}

/// A strategy and whether it can be used.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "program", derive(schemars::JsonSchema))]
struct Offer {
    /// The strategy.
    strategy: Strategy,
    /// True if the strategy can be used.
    available: bool,
    /// Why the strategy is not available. Null if it is.
    reason: Option<String>,
    /// The condition that would make the strategy available. Null if it is available or nothing would.
    remedy: Option<String>,
}

impl ProbeReceipt {
    /// Converts a report, with each remedy worded by `words`.
    pub fn new(report: ProbeReport, words: impl Fn(&Remedy) -> String) -> Self {
        let offers = report.offers.iter().map(|offer| Offer {
            strategy: offer.strategy,
            available: offer.refused.is_none(),
            remedy: offer.refused.as_ref().and_then(|refused| refused.remedy.as_ref().map(&words)),
            reason: offer.refused.as_ref().map(|refused| refused.reason.clone()),
        });
        Self { strategies: offers.collect(), report }
    }
}

/// The report of `calve rm`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "program", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.remove/1")]
pub struct RemoveReceipts {
    /// The trees that were removed, without those that failed.
    pub removed: Vec<RemoveReport>,
    /// In a dry run, the paths that would be removed. Absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "program", schemars(with = "Vec<ReceiptPath>"))]
    pub would_remove: Option<Vec<ReceiptPath>>,
}

/// The report of `calve run`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "program", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.run/1")]
pub struct RunReceipt {
    /// The exit code of the command; 128 and the number of the signal that ended it.
    pub exit_code: u8,
    /// The complete copy that was kept. Null if none was.
    pub kept: Option<ReceiptPath>,
    /// The report of that copy, with what it lacks. Null if none was kept.
    pub clone: Option<CloneReport>,
    /// Whether the changes were made in the tree itself.
    pub applied: bool,
    /// The tree that the command saw a private copy of.
    pub tree: ReceiptPath,
    /// Everything that the command made, changed or deleted, in the order of the paths.
    pub entries: Vec<Change>,
}

/// The report of `calve spares` with any of its commands: the sources that there are spares of.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "program", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.spares/1")]
pub struct SparesReceipt<'a> {
    /// The sources.
    pub sources: &'a [SpareSet],
    /// The number of spares that were built.
    pub built: u64,
    /// The number of spares that were deleted.
    pub removed: u64,
}

/// The report of files that were written together.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "program", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.write/1")]
pub struct WriteReceipt {
    /// The number of files written. Entries with one path may count once.
    files: u64,
    /// The size of their contents in bytes.
    bytes: u64,
    /// The number of directories made.
    directories: u64,
    /// The largest number of threads that worked at the same time.
    threads: usize,
    /// The files that were not written, if errors were to be collected.
    failures: Vec<WriteFailure>,
    /// The time that writing took in milliseconds.
    elapsed_ms: Milliseconds,
}

/// A file that was not written.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "program", derive(schemars::JsonSchema))]
struct WriteFailure {
    /// The index of the entry, counted from 0.
    index: u64,
    /// Why the file was not written.
    error: ErrorReceipt,
}

impl From<&WriteReport> for WriteReceipt {
    fn from(report: &WriteReport) -> Self {
        let &WriteReport { files, bytes, directories, threads, ref failures, elapsed } = report;
        let failures = failures.iter();
        let failures = failures.map(|failure| WriteFailure { index: failure.index, error: (&failure.error).into() });
        Self { files, bytes, directories, threads, failures: failures.collect(), elapsed_ms: elapsed.into() }
    }
}
