//! The fields of the program's documents that an agent needs, and the tools' results that are made of them.

use std::path::Path;

use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};

/// The document of `calve worktree list`, and the result of `list_worktrees`.
#[derive(Deserialize, Serialize)]
pub(super) struct Worktrees {
    pub(super) worktrees: Vec<Worktree>,
}

/// A worktree in that document. Serialised as a result, it leaves out default values.
#[derive(Deserialize, Serialize)]
pub(super) struct Worktree {
    branch: Option<String>,
    path: PathText,
    #[serde(skip_serializing_if = "Option::is_none")]
    maker: Option<String>,
    #[serde(skip_serializing_if = "is_not_true")]
    dirty: Option<bool>,
    #[serde(skip_serializing_if = "is_none_or_zero")]
    ahead: Option<u64>,
    #[serde(skip_serializing_if = "is_none_or_zero")]
    behind: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    locked: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    main: bool,
    #[serde(skip_serializing_if = "is_false")]
    gone: bool,
    #[serde(skip_serializing_if = "is_false")]
    untrusted: bool,
    #[serde(skip_serializing_if = "is_intact")]
    standing: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty", serialize_with = "by_variable")]
    ports: Vec<Port>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", serialize_with = "by_name")]
    services: Vec<Service>,
    /// In the result for one worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) head: Option<String>,
    /// The program's words about making it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
}

impl Worktree {
    pub(super) fn is_at(&self, path: &Path) -> bool {
        matches!(&self.path, PathText::Utf8(text) if Path::new(text) == path)
    }
}

/// A path: text, or an object if it is not UTF-8.
#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum PathText {
    Utf8(String),
    Undecodable { bytes_base64: String },
}

#[derive(Deserialize)]
struct Port {
    variable: String,
    port: u16,
}

/// The document of `calve up`, `calve status` and `calve reset`.
#[derive(Deserialize, Serialize)]
pub(super) struct Services {
    pub(super) services: Vec<Service>,
}

impl Services {
    /// Returns the paths of their data.
    pub(super) fn data_directories(&self) -> impl Iterator<Item = &str> {
        self.services.iter().filter_map(|service| match &service.data_directory {
            Some(PathText::Utf8(text)) => Some(text.as_str()),
            _ => None,
        })
    }
}

/// A database of a worktree.
#[derive(Deserialize, Serialize)]
pub(super) struct Service {
    pub(super) name: String,
    pub(super) state: String,
    variable: Option<String>,
    url: Option<String>,
    pub(super) template: String,
    #[serde(skip_serializing)]
    pub(super) server: Option<String>,
    #[serde(default, skip_serializing)]
    data_directory: Option<PathText>,
}

/// The document of `calve worktree remove --dry-run`.
#[derive(Deserialize)]
pub(super) struct PlannedRemoval {
    #[serde(default)]
    pub(super) unsaved: Vec<Unsaved>,
}

/// Something that only a worktree has.
#[derive(Deserialize, Serialize)]
pub(super) struct Unsaved {
    kind: String,
    text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty", serialize_with = "first_few")]
    paths: Vec<PathText>,
}

/// Ignored files that were moved aside.
#[derive(Deserialize, Serialize)]
struct KeptFiles {
    directory: PathText,
    #[serde(serialize_with = "first_few")]
    files: Vec<PathText>,
}

/// Serialises the first paths of a list that may be too long for an agent.
fn first_few<S: Serializer>(paths: &[PathText], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(paths.iter().take(20))
}

/// The first answer of `remove_worktree`.
#[derive(Serialize)]
pub(super) struct RemovalPlan {
    pub(super) would_remove: Worktree,
    /// Everything that exists only there. It is moved aside for seven days.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) moves_aside: Vec<Unsaved>,
    pub(super) token: String,
    pub(super) next: &'static str,
}

/// The document of `calve worktree remove`.
#[derive(Deserialize)]
pub(super) struct Removal {
    path: PathText,
    branch: Option<String>,
    branch_deleted: bool,
    kept: Option<KeptFiles>,
}

/// The second answer of `remove_worktree`.
#[derive(Serialize)]
pub(super) struct RemovalResult {
    removed: PathText,
    branch: Option<String>,
    branch_deleted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<KeptFiles>,
}

impl From<Removal> for RemovalResult {
    fn from(Removal { path, branch, branch_deleted, kept }: Removal) -> Self {
        Self { removed: path, branch, branch_deleted, kept }
    }
}

/// The first answer of `reset_database`.
#[derive(Serialize)]
pub(super) struct ResetPlan<'a> {
    pub(super) would_reset: &'a str,
    pub(super) worktree: Option<&'a str>,
    pub(super) template: &'a str,
    pub(super) token: String,
    pub(super) next: &'static str,
}

/// The second answer of `reset_database`.
#[derive(Serialize)]
pub(super) struct ResetResult {
    pub(super) reset: Option<Service>,
}

/// The document of `calve du`.
#[derive(Deserialize)]
pub(super) struct DiskUsage {
    pub(super) total: Space,
}

/// Space in bytes. Where the file system cannot tell what removing would free, there are only the least and the most.
#[derive(Deserialize, Serialize)]
pub(super) struct Space {
    apparent: u64,
    allocated: u64,
    exclusive: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    frees: Option<u64>,
    frees_min: u64,
    frees_max: u64,
}

/// The result of `disk_usage`.
#[derive(Serialize)]
pub(super) struct DiskUsageResult<'a> {
    pub(super) path: Option<&'a str>,
    #[serde(flatten)]
    pub(super) space: Space,
}

/// The question of `calve hook worktree-create`.
#[derive(Serialize)]
pub(super) struct CreationQuestion<'a> {
    pub(super) cwd: Option<&'a str>,
    pub(super) name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) base_ref: Option<&'a str>,
}

/// The document of a command that failed.
#[derive(Deserialize)]
pub(super) struct Failure {
    pub(super) schema: String,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

/// An error, and the next step.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Problem {
    pub(super) error: String,
    pub(super) hint: String,
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_not_true(value: &Option<bool>) -> bool {
    *value != Some(true)
}

fn is_none_or_zero(value: &Option<u64>) -> bool {
    value.unwrap_or(0) == 0
}

fn is_intact(standing: &String) -> bool {
    standing == "intact"
}

fn by_variable<S: Serializer>(ports: &[Port], to: S) -> Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(Some(ports.len()))?;
    for Port { variable, port } in ports {
        map.serialize_entry(variable, port)?;
    }
    map.end()
}

fn by_name<S: Serializer>(services: &[Service], to: S) -> Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(Some(services.len()))?;
    for Service { name, state, .. } in services {
        map.serialize_entry(name, state)?;
    }
    map.end()
}
