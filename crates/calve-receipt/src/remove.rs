//! Removals and their dry runs.

use calve_core::RemoveReport;
use serde::Serialize;

use crate::values::{Milliseconds, ReceiptPath, Warning, path, warnings};

/// The report of `calve rm`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.remove/1")]
pub struct RemoveReceipts {
    /// The trees that were removed, without those that failed.
    pub removed: Vec<RemoveReceipt>,
    /// In a dry run, the paths that would be removed. Absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Vec<ReceiptPath>"))]
    pub would_remove: Option<Vec<ReceiptPath>>,
}

/// The report of one removal.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RemoveReceipt {
    /// The path as given.
    path: ReceiptPath,
    /// The path at which the tree waits to be deleted. Null if it is deleted.
    trash: Option<ReceiptPath>,
    /// The number of entries that were deleted so far.
    deleted_entries: u64,
    /// Other facts that the user should know.
    warnings: Vec<Warning>,
    /// The time that the removal took in milliseconds, without deletion in the background.
    elapsed_ms: Milliseconds,
}

impl From<&RemoveReport> for RemoveReceipt {
    fn from(report: &RemoveReport) -> Self {
        Self {
            path: path(&report.path),
            trash: report.trashed.as_ref().map(|trashed| path(trashed.parent.join(&trashed.name))),
            deleted_entries: report.deleted,
            warnings: warnings(&report.warnings),
            elapsed_ms: report.elapsed.into(),
        }
    }
}
