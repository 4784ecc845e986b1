//! Spares: what there is, and what was done about them.

use calve_core::spares::SpareSet;
use serde::Serialize;

/// The report of `calve spares` with any of its commands: the sources that there are spares of.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.spares/1")]
pub struct SparesReceipt<'a> {
    /// The sources.
    pub sources: &'a [SpareSet],
    /// The number of spares that were built.
    pub built: u64,
    /// The number of spares that were deleted.
    pub removed: u64,
}
