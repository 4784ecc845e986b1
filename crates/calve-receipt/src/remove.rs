//! Removals and their dry runs.

use calve_core::RemoveReport;
use serde::Serialize;

use crate::values::ReceiptPath;

/// The report of `calve rm`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.remove/1")]
pub struct RemoveReceipts {
    /// The trees that were removed, without those that failed.
    pub removed: Vec<RemoveReport>,
    /// In a dry run, the paths that would be removed. Absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Vec<ReceiptPath>"))]
    pub would_remove: Option<Vec<ReceiptPath>>,
}
