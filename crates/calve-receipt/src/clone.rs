//! Clones and their dry runs.

use calve_core::{ClonePlan, CloneReport};
use serde::Serialize;

/// The report of one clone.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.clone/1")]
pub struct CloneReceipt {
    #[serde(flatten)]
    pub report: CloneReport,
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
    #[serde(flatten)]
    pub plan: ClonePlan,
}

/// The dry run of several clones.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.plans/1")]
pub struct PlanReceipts {
    /// The clones that would be made, without those that cannot be.
    pub plans: Vec<PlanReceipt>,
}
