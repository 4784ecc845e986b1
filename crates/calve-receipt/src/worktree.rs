use calve_core::CloneReport;
use calve_git::environment::{EnvFile, LeasedPort, OtherValues};
use calve_git::escape::Finding;
use calve_git::worktree::{
    CarriedFiles, GoingBranch, HookRun, NewWorktree, TrackedCounts, UnsavedReceipt, WorktreeInfo, WorktreeRemoveReport,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::values::{Milliseconds, ReceiptPath};

/// The report of `calve worktree add`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.worktree-add/1")]
pub struct WorktreeAddReceipt<'a> {
    #[serde(flatten)]
    pub worktree: &'a NewWorktree,
    /// The upstream of the new branch. Null if it has none.
    pub upstream: Option<&'a str>,
    /// The number of the pull request. Null if it is none.
    pub pull_request: Option<u64>,
    /// The number of tracked files.
    pub tracked: &'a TrackedCounts,
    #[serde(flatten)]
    pub untracked: &'a CarriedFiles,
    /// The directories that are spares, each as a clone; its `dst` is relative to the worktree. Absent if there are none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub spares: &'a [CloneReport],
    /// The worktree's ports. Absent if its .calve.toml names none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<LeasedPort>,
    /// The worktree's services. Absent if its .calve.toml names none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceReceipt>,
    /// The files that the ports were to be written to. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env_files: Vec<EnvFile>,
    /// Carried `.env` and `.env.*` files that give variables of this worktree other values. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_values: Vec<OtherValues>,
    /// The number of uncommitted changes of the source that the new worktree does not have. A new directory counts as one.
    pub uncommitted: u64,
    /// References from the new worktree into other trees.
    pub escapes: &'a [Finding],
    /// git's hook `post-checkout`. Null if there is none.
    pub post_checkout: Option<HookRun>,
    /// Other facts that the user should know.
    pub warnings: Vec<String>,
    /// Everything that is said of the worktree, the most important first. On a terminal they are at most eight lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<WorktreeFact>,
    /// The clone of the files.
    pub clone: &'a CloneReport,
    /// The time that it took in milliseconds.
    pub elapsed_ms: Milliseconds,
}

/// A fact about a new worktree.
#[derive(Debug, JsonSchema, Serialize)]
pub struct WorktreeFact {
    /// The part of the worktree that it is about.
    pub about: FactSubject,
    /// The fact in words, for people.
    pub text: String,
}

/// The parts of a worktree that facts are about, the most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FactSubject {
    /// Its place, and where its files come from.
    Files,
    /// A pull request that is not trusted.
    Trust,
    /// Directories of dependencies that do not fit, or come from elsewhere.
    Dependencies,
    /// Services, and where their data comes from.
    Services,
    /// Its ports.
    Ports,
    /// Carried files that give variables the values of another worktree.
    OtherValues,
    /// A configuration that is missing or wrong.
    Configuration,
    /// A branch that may not be the one that was meant, or none.
    Branch,
    /// Something else that may be wrong.
    Warning,
    /// References out of it.
    References,
    /// Changes that stay where they are.
    Uncommitted,
    /// Entries that were left out.
    Left,
    /// Files with its variables.
    EnvFiles,
    /// How it was cloned, and what would make that faster.
    Cloning,
}

/// The dry run of `calve worktree add`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.worktree-plan/1")]
pub struct WorktreePlanReceipt<'a> {
    #[serde(flatten)]
    pub worktree: &'a NewWorktree,
    /// The number of tracked files.
    pub tracked: TrackedPlan,
    #[serde(flatten)]
    pub untracked: &'a CarriedFiles,
    /// The carried paths that look like secrets.
    pub secrets: Vec<ReceiptPath>,
    /// Its services, and where their data would come from. Absent if it would get none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceReceipt>,
}

/// The number of tracked files in a planned worktree.
#[derive(Debug, JsonSchema, Serialize)]
pub struct TrackedPlan {
    /// Files that would be cloned from the source.
    pub same: u64,
    /// Files that git would write.
    pub other: u64,
}

/// The report of `calve env`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.environment/1")]
pub struct EnvironmentReceipt {
    /// The root of the worktree.
    pub path: ReceiptPath,
    /// The ports, in the order of their names.
    pub ports: Vec<LeasedPort>,
    /// The services, in the order of their names. Absent if .calve.toml names none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceReceipt>,
}

/// A database of a worktree.
#[derive(Debug, Default, JsonSchema, Serialize)]
pub struct ServiceReceipt {
    /// The name in .calve.toml.
    pub name: String,
    /// The variable with the URL. Null if .calve.toml was not asked, or does not name the service any more.
    pub variable: Option<String>,
    /// The template that the data comes from, or else the one in .calve.toml.
    pub template: String,
    /// The template that `calve reset` would take (`calve status` only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset_template: Option<String>,
    /// The state of its server and its data.
    pub state: ServiceState,
    /// The address, which changes only with the engine. Null without data.
    pub url: Option<String>,
    /// The name of its server in `calve db list`. Null without data.
    pub server: Option<String>,
    /// The data directory. Null without data.
    pub data_directory: Option<ReceiptPath>,
    /// The worktree whose data was cloned (`calve worktree add` only). Absent if it is that of the template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_from: Option<ReceiptPath>,
    /// Why it got no data (`calve worktree add` and `up` only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_data_because: Option<String>,
    /// The memory of its server's processes, what they share counted once (`calve worktree list` and `status` only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The most space that removing the data would free (`calve worktree list` and `status` only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
}

/// The state of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, JsonSchema, Serialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ServiceState {
    /// Its server runs.
    Running,
    /// `calve up` starts its server.
    Stopped,
    /// It has no data yet, and `calve up` clones it from the template.
    #[default]
    Absent,
}

/// The report of `calve up`, `calve down` and `calve status`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.services/1")]
pub struct ServicesReceipt {
    /// The root of the worktree.
    pub path: ReceiptPath,
    /// The services, in the order of their names.
    pub services: Vec<ServiceReceipt>,
}

/// The report of `calve worktree list`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.worktrees/1")]
pub struct WorktreesReceipt<'a> {
    /// The worktrees of the repository, the main one first.
    pub worktrees: Vec<ListedWorktree<'a>>,
}

/// A worktree and its state.
#[derive(Debug, JsonSchema, Serialize)]
pub struct ListedWorktree<'a> {
    #[serde(flatten)]
    pub info: &'a WorktreeInfo,
    /// The ports that it has leased. Absent if there are none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub ports: &'a [LeasedPort],
    /// The services of which it has data. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceReceipt>,
}

/// The dry run of `calve worktree remove`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.worktree-remove-plan/1")]
pub struct WorktreeRemovePlanReceipt {
    /// The path of the worktree.
    pub path: ReceiptPath,
    /// The branch that is checked out. Null if HEAD is detached.
    pub branch: Option<String>,
    #[serde(flatten)]
    pub going_branch: Option<GoingBranch>,
    /// True if the directory is gone.
    pub gone: bool,
    /// Everything that exists only there. What needs force would be lost, and ignored files moved aside. Absent if there is nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsaved: Vec<UnsavedReceipt>,
}

/// A removal of a worktree, or its dry run.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(untagged)]
pub enum WorktreeRemoval {
    /// The worktree was removed.
    Removed(Box<WorktreeRemoveReport>),
    /// The worktree would be removed.
    Planned(WorktreeRemovePlanReceipt),
}

/// The report of `calve worktree remove` for several worktrees.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.worktree-removals/1")]
pub struct WorktreeRemoveReceipts {
    /// The worktrees, without those that failed.
    pub removed: Vec<WorktreeRemoval>,
}

/// The report of `calve worktree prune`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.worktree-prune/1")]
pub struct WorktreePruneReceipt {
    /// Worktrees that are gone, and that git no longer lists, or would not.
    pub forgotten: Vec<ReceiptPath>,
    /// Worktrees that are not at their paths, and that git still lists; with `--merged` also those that are merged and stay.
    pub kept: Vec<KeptWorktree>,
    /// Trees of killed runs that were removed.
    pub swept: Vec<ReceiptPath>,
    /// Merged worktrees that were removed, or would be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<MergedWorktreeReceipt>,
    /// Data of worktrees that are gone which was removed, or would be. Absent if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<PrunedData>,
}

/// The data of one service of a worktree that is gone.
#[derive(Debug, JsonSchema, Serialize)]
pub struct PrunedData {
    /// The worktree's last path.
    pub worktree: ReceiptPath,
    /// The name of the service.
    pub service: String,
    /// The name of its servers.
    pub server: String,
    /// True if it was removed.
    pub removed: bool,
}

/// A worktree all of whose commits another branch has.
#[derive(Debug, JsonSchema, Serialize)]
pub struct MergedWorktreeReceipt {
    /// Its path.
    pub path: ReceiptPath,
    /// Its branch, which stays; none when HEAD was detached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The branch that has its commits.
    pub merged_into: String,
    /// True if that branch has its changes as one commit, and not its commits.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub squashed: bool,
    /// True if it was removed.
    pub removed: bool,
    /// Ignored files that only it has, and that are moved aside. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsaved: Vec<UnsavedReceipt>,
}

/// A worktree that stays.
#[derive(Debug, JsonSchema, Serialize)]
pub struct KeptWorktree {
    /// The path at which git lists it.
    pub path: ReceiptPath,
    /// Why it stays.
    pub reason: String,
    /// The next step.
    pub hint: String,
    /// Everything that exists only there, if that is the reason. Absent otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsaved: Vec<UnsavedReceipt>,
}
