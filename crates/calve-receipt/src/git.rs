use calve_git::advise::Sentence;
use calve_git::remote::{PlannedClone, PlannedFetch};
use schemars::JsonSchema;
use serde::Serialize;

/// The dry run of `calve git clone`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.git-clone-plan/1")]
pub struct GitClonePlanReceipt {
    #[serde(flatten)]
    pub plan: PlannedClone,
}

/// The dry run of `calve git fetch`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.git-fetch-plan/1")]
pub struct GitFetchPlanReceipt {
    #[serde(flatten)]
    pub plan: PlannedFetch,
}

/// The report of `calve git advise`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.git-advice/1")]
pub struct GitAdviceReceipt {
    /// Where the numbers are from.
    pub source: String,
    /// The number of jobs per day that the advice is for.
    pub jobs: u64,
    /// The advice.
    pub sentences: Vec<Sentence>,
}
