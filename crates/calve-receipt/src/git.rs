//! `calve git`.

use calve_git::advise::Sentence;
use calve_git::remote::{FetchReport, PhaseSeconds, PlannedFetch, Traffic};
use schemars::JsonSchema;
use serde::Serialize;

use crate::values::ReceiptPath;

/// The report of `calve git clone`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.git-clone/1")]
pub struct GitCloneReceipt {
    /// The plan that was followed.
    #[serde(flatten)]
    pub plan: GitClonePlan,
    /// The commit that is checked out. Null in an empty repository.
    pub head: Option<String>,
    #[serde(flatten)]
    pub traffic: Traffic,
    /// How long it took.
    pub seconds: PhaseSeconds,
    /// The number of objects that the server still has, as far as counted.
    pub objects_missing: u64,
    /// True if all of them were counted in the time that there was.
    pub objects_missing_counted: bool,
    /// Whether the server did what it was asked.
    pub honoured: ServerCompliance,
    /// Other facts that the user should know.
    pub warnings: Vec<GitWarning>,
}

/// Whether the server did what it was asked. Null if it was not asked, or nothing shows it.
#[derive(Debug, JsonSchema, Serialize)]
pub struct ServerCompliance {
    /// `--filter`.
    pub filter: Option<bool>,
    /// `--depth`.
    pub depth: Option<bool>,
}

/// The dry run of `calve git clone`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.git-clone-plan/1")]
pub struct GitClonePlanReceipt {
    /// The plan.
    #[serde(flatten)]
    pub plan: GitClonePlan,
}

/// A clone, and how it is made.
#[derive(Debug, JsonSchema, Serialize)]
pub struct GitClonePlan {
    /// The address of the repository, without secrets.
    pub url: String,
    /// The clone.
    pub dst: ReceiptPath,
    /// The purpose of the clone.
    #[schemars(extend("enum" = calve_git::remote::Purpose::NAMES))]
    pub purpose: &'static str,
    /// How it is made, and why so.
    pub recipe: GitRecipe,
    /// The version of git.
    pub git: String,
}

/// How a clone is made, and why so.
#[derive(Debug, JsonSchema, Serialize)]
pub struct GitRecipe {
    /// The objects that stay on the server, in git's words. Null if none do.
    pub filter: Option<String>,
    /// The number of commits of history. Null for all.
    pub depth: Option<u32>,
    /// The branch or tag that is checked out, if one was named.
    pub branch: Option<String>,
    /// The commit that is checked out, if one was named.
    pub revision: Option<String>,
    /// The directories that are checked out. Empty for all.
    pub sparse: Vec<String>,
    /// Why this is the right way.
    pub reason: String,
    /// The commands.
    pub commands: Vec<String>,
}

/// The report of `calve git fetch`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.git-fetch/1")]
pub struct GitFetchReceipt<'a> {
    #[serde(flatten)]
    pub report: &'a FetchReport,
    /// Other facts that the user should know.
    pub warnings: Vec<GitWarning>,
}

/// The dry run of `calve git fetch`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.git-fetch-plan/1")]
pub struct GitFetchPlanReceipt {
    #[serde(flatten)]
    pub plan: PlannedFetch,
}

/// Something that the user should know and that is not an error.
#[derive(Debug, JsonSchema, Serialize)]
pub struct GitWarning {
    /// A stable word for programs.
    #[schemars(extend("enum" = calve_git::remote::NoticeCode::NAMES))]
    pub code: &'static str,
    /// A sentence for people.
    pub message: String,
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
