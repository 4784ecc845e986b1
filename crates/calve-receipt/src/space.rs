//! The space that trees use and share.

use calve_core::space::{DedupeReport, DiskUsage};
use serde::Serialize;

use crate::values::ReceiptPath;

/// The report of `calve du`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.du/1")]
pub struct DiskUsageReceipt<'a> {
    #[serde(flatten)]
    pub usage: &'a DiskUsage,
}

/// The report of `calve dedupe`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.dedupe/1")]
pub struct DedupeReceipt<'a> {
    /// True if nothing was changed.
    pub dry_run: bool,
    #[serde(flatten)]
    pub report: &'a DedupeReport,
    /// The trees as given.
    pub paths: Vec<ReceiptPath>,
}
