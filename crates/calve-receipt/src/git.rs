//! `calve git`.

use serde::Serialize;

use crate::values::{ReceiptPath, Seconds};

/// The report of `calve git clone`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.git-clone/1")]
pub struct GitCloneReceipt {
    /// The plan that was followed.
    #[serde(flatten)]
    pub plan: GitClonePlan,
    /// The commit that is checked out. Null in an empty repository.
    pub head: Option<String>,
    /// The number of requests to the server. Null if it is unknown.
    pub requests: Option<u64>,
    /// The objects received, in bytes. Null if it is unknown.
    pub bytes_received: Option<u64>,
    /// How long it took.
    pub seconds: GitSeconds,
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
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ServerCompliance {
    /// `--filter`.
    pub filter: Option<bool>,
    /// `--depth`.
    pub depth: Option<bool>,
}

/// The time of a clone and of its parts.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GitSeconds {
    /// The whole.
    pub total: Seconds,
    /// The history.
    pub clone: Seconds,
    /// The checkout, with what it fetched.
    pub checkout: Seconds,
}

/// The dry run of `calve git clone`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.git-clone-plan/1")]
pub struct GitClonePlanReceipt {
    /// The plan.
    #[serde(flatten)]
    pub plan: GitClonePlan,
}

/// A clone, and how it is made.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GitClonePlan {
    /// The address of the repository, without secrets.
    pub url: String,
    /// The clone.
    pub dst: ReceiptPath,
    /// The purpose of the clone.
    #[cfg_attr(test, schemars(extend("enum" = calve_git::remote::Purpose::NAMES)))]
    pub purpose: &'static str,
    /// How it is made, and why so.
    pub recipe: GitRecipe,
    /// The version of git.
    pub git: String,
}

/// How a clone is made, and why so.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.git-fetch/1")]
pub struct GitFetchReceipt {
    /// The plan that was followed.
    #[serde(flatten)]
    pub plan: GitFetchPlan,
    /// The number of requests to the server. Null if it is unknown.
    pub requests: Option<u64>,
    /// The objects received, in bytes. Null if it is unknown.
    pub bytes_received: Option<u64>,
    /// The time that it took.
    pub seconds: Seconds,
    /// The references that git updated, in its words.
    pub updated: Vec<String>,
    /// Other facts that the user should know.
    pub warnings: Vec<GitWarning>,
}

/// The dry run of `calve git fetch`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.git-fetch-plan/1")]
pub struct GitFetchPlanReceipt {
    /// The plan.
    #[serde(flatten)]
    pub plan: GitFetchPlan,
}

/// How a clone is brought up to date, and why so.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GitFetchPlan {
    /// The purpose of the clone. Null if it is not recorded.
    #[cfg_attr(test, schemars(extend("enum" = ["dev", "ci", "history", "blobs", null])))]
    pub purpose: Option<&'static str>,
    /// True if the history of the clone is cut off.
    pub shallow: bool,
    /// The objects that stay on the server, in git's words. Null if none do.
    pub filter: Option<String>,
    /// The commands.
    pub commands: Vec<String>,
    /// Why these commands are right, with numbers.
    pub reason: String,
}

/// Something that the user should know and that is not an error.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GitWarning {
    /// A stable word for programs.
    #[cfg_attr(test, schemars(extend("enum" = calve_git::remote::NoticeCode::NAMES)))]
    pub code: &'static str,
    /// A sentence for people.
    pub message: String,
}

/// The report of `calve git advise`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.git-advice/1")]
pub struct GitAdviceReceipt {
    /// Where the numbers are from.
    pub source: String,
    /// The number of jobs per day that the advice is for.
    pub jobs: u64,
    /// The advice.
    pub sentences: Vec<AdviceSentence>,
}

/// One sentence of advice and the facts behind it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AdviceSentence {
    /// The repository that was measured.
    pub repository: String,
    /// The subject: a purpose, `fetch`, `shallow` or `fleet`.
    pub topic: String,
    /// The sentence.
    pub text: String,
    /// The names of the tests, such as `T1`.
    pub tests: Vec<String>,
}
