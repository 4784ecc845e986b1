//! `calve.bench/1` and `calve.bench.git/1`: the documents of `calve bench`. Unless a name says otherwise, times are in
//! seconds and sizes in bytes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::values::ReceiptPath;

/// The document of every bench.
#[derive(Debug, Clone, JsonSchema, Serialize)]
pub struct BenchReport {
    /// `calve.bench/1`, or `calve.bench.git/1`.
    #[schemars(extend("enum" = ["calve.bench/1", "calve.bench.git/1"]))]
    pub schema: &'static str,
    /// `copy`, `db`, `git`, `worktree` or `write`.
    pub bench: &'static str,
    /// When it began, in UTC.
    pub date: String,
    pub machine: Machine,
    pub facts: Facts,
    #[serde(flatten)]
    pub conditions: Conditions,
    pub rounds: u32,
    /// Versions by program.
    pub versions: BTreeMap<String, String>,
    /// Smaller peaks of memory cannot be told: the kernel counts a program's from the bench's own size. Null where the system does not
    /// tell it.
    pub memory_floor_bytes: Option<u64>,
    pub results: Vec<BenchResult>,
    pub failed: Vec<BenchFailure>,
    pub not_run: Vec<NotRun>,
    pub warnings: Vec<BenchWarning>,
    pub conclusions: Vec<String>,
}

/// The subject and the conditions. Each bench has those that it needs.
#[derive(Debug, Clone, Default, JsonSchema, Serialize)]
pub struct Facts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeFact>,
    /// Whether `tree` is on the file system of `target`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_file_system: Option<bool>,
    /// Where the commands write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Location>,
    /// The strategy that Calve chooses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub places: Option<PlacesFact>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<RepositoryFact>,
    /// The commands that were asked for, if not all were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commands_chosen: Option<Vec<String>>,
    /// The version of the npm package.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub npm_package: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<TemplateFact>,
    /// The statement that writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<String>,
}

/// A tree that is copied.
#[derive(Debug, Clone, JsonSchema, Serialize)]
pub struct TreeFact {
    pub path: ReceiptPath,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_system: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mount_options: Option<String>,
    /// True if the commands read a copy of it, made before the first run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copied_first: Option<bool>,
    pub files: u64,
    /// With the root.
    pub directories: u64,
    pub symlinks: u64,
    pub others: u64,
    /// The sum of the files' sizes.
    pub bytes: u64,
}

/// The sources of the commands.
#[derive(Debug, Clone, JsonSchema, Serialize)]
pub struct PlacesFact {
    pub src: ReceiptPath,
    /// A copy of it, which may share its files with the results.
    pub src_for_hard_links: ReceiptPath,
}

/// The repository that worktrees are added to.
#[derive(Debug, Clone, JsonSchema, Serialize)]
pub struct RepositoryFact {
    pub path: ReceiptPath,
    pub tracked_files: usize,
    /// The entries of a clone of the repository, `.git` included. Null if its strategy did not count them.
    pub entries: Option<u64>,
}

/// The template that servers start on.
#[derive(Debug, Clone, JsonSchema, Serialize)]
pub struct TemplateFact {
    pub name: String,
    pub engine: String,
    pub files: u64,
    pub bytes: u64,
}

/// The machine that everything ran on.
#[derive(Debug, Clone, JsonSchema, Serialize)]
pub struct Machine {
    pub cpu: String,
    pub cores: usize,
    /// Null where the system does not tell.
    pub memory_bytes: Option<u64>,
    pub kernel: String,
    /// Over a minute, before the first run.
    pub load_average_before: Option<f64>,
}

/// A directory and its file system.
#[derive(Debug, Clone, JsonSchema, Serialize)]
pub struct Location {
    pub path: ReceiptPath,
    pub file_system: String,
    pub mount_options: String,
}

/// Fields that one kind of bench adds to its document.
#[derive(Debug, Clone, JsonSchema, Serialize)]
#[serde(untagged)]
pub enum Conditions {
    /// For copy, worktree and write.
    Commands(CommandConditions),
    /// For db, which has none.
    None {},
    Git(GitConditions),
}

#[derive(Debug, Clone, JsonSchema, Serialize)]
pub struct CommandConditions {
    /// When earlier results were deleted to make room.
    pub deletions: Vec<String>,
}

#[derive(Debug, Clone, JsonSchema, Serialize)]
pub struct GitConditions {
    pub protocol: u8,
    pub fetches: u32,
    pub repositories: Vec<GitRepository>,
}

#[derive(Debug, Clone, JsonSchema, Serialize)]
pub struct GitRepository {
    pub name: String,
    pub source: String,
    pub branch: String,
    /// The file that `git blame` is run on: the one that changed most often in the commits that it looks at. Null without a history.
    pub file: Option<String>,
    /// `N` of `git checkout HEAD~N`.
    pub back: u32,
    pub pack_bytes: u64,
    /// The regular files of a checkout.
    pub checkout_files: u64,
    pub checkout_bytes: u64,
}

/// One row.
#[derive(Debug, Clone, JsonSchema, Serialize)]
pub struct BenchResult {
    /// `None` for databases, whose rows have several times.
    #[serde(flatten)]
    pub times: Option<Times>,
    #[serde(flatten)]
    pub details: ResultDetails,
}

/// The fields that `hyperfine --export-json` writes for a command, as of its version 1.20, in its order.
#[derive(Debug, Clone, JsonSchema, Serialize)]
pub struct Times {
    pub command: String,
    pub mean: f64,
    pub stddev: Option<f64>,
    pub median: f64,
    pub user: f64,
    pub system: f64,
    pub min: f64,
    pub max: f64,
    pub times: Vec<f64>,
    pub memory_usage_byte: Vec<u64>,
    pub exit_codes: Vec<i32>,
}

#[derive(Debug, Clone, JsonSchema, Serialize)]
#[serde(untagged)]
pub enum ResultDetails {
    Command(CommandResult),
    Database(Box<DatabaseResult>),
    DatabaseStep(DatabaseStepResult),
    Git(GitResult),
}

/// Whose program a row measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[schemars(rename = "Side")]
#[serde(rename_all = "snake_case")]
pub enum BenchSide {
    Calve,
    Peer,
}

#[derive(Debug, Clone, JsonSchema, Serialize)]
pub struct CommandResult {
    pub side: BenchSide,
    pub group: String,
    pub ratio_to_fastest: f64,
    /// In each round, the time as a multiple of the fastest command's.
    pub ratios: Vec<f64>,
    /// The command of Calve's that this peer beats.
    pub faster_than: Option<String>,
    pub disk_bytes: i64,
    pub disk_bytes_of_runs: Vec<i64>,
    /// The longest time that the event loop was blocked, in seconds; null for programs without one.
    pub longest_stall: Option<f64>,
    pub said: String,
    pub remarks: Vec<String>,
}

#[derive(Debug, Clone, JsonSchema, Serialize)]
pub struct DatabaseResult {
    pub side: BenchSide,
    /// How the server got its data, in words.
    pub server: String,
    /// The strategy; null for other servers.
    pub strategy: Option<&'static str>,
    /// The time of the clone; null if Calve made none.
    pub clone_ms: Option<Spread>,
    pub first_query_ms: Option<Spread>,
    pub first_write_ms: Option<Spread>,
    pub tenth_write_ms: Option<Spread>,
    pub stop_ms: Option<Spread>,
    pub disk_bytes: Option<Spread>,
    pub memory_bytes: Option<Spread>,
}

/// The commands that are timed as a whole, from their start until a query is answered.
#[derive(Debug, Clone, JsonSchema, Serialize)]
pub struct DatabaseStepResult {
    pub step: &'static str,
    pub ms: Option<Spread>,
    /// The memory of the servers that waited for it, each with its supervisor; processes divide the pages that they share.
    pub memory_bytes: Option<Spread>,
}

/// Several values of one kind.
#[derive(Debug, Clone, JsonSchema, Serialize)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
    pub values: Vec<f64>,
}

#[derive(Debug, Clone, JsonSchema, Serialize)]
pub struct GitResult {
    pub repository: String,
    pub test: &'static str,
    pub operation: &'static str,
    pub clone: &'static str,
    pub fetch: Option<&'static str>,
    pub server_cpu_ms: Option<Spread>,
    pub server_peak_memory_bytes: u64,
    /// Medians from here on.
    pub connections: u64,
    pub bytes_received: u64,
    pub said: String,
}

/// A command that failed, and was not run again.
#[derive(Debug, Clone, Default, JsonSchema, Serialize)]
pub struct BenchFailure {
    pub command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub side: Option<BenchSide>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    pub round: u32,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub reason: String,
    /// True if the file system was full.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disk_full: bool,
}

/// A command that was not run.
#[derive(Debug, Clone, JsonSchema, Serialize)]
pub struct NotRun {
    pub command: String,
    pub why: NotRunReason,
    pub reason: String,
    pub remedy: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NotRunReason {
    /// The program is not installed.
    Missing,
    /// It is not possible here.
    Refused,
}

/// Something that makes the numbers worth less.
#[derive(Debug, Clone, JsonSchema, Serialize)]
pub struct BenchWarning {
    pub code: &'static str,
    pub message: String,
}
