use calve_db::{DatabaseTemplate, Ending, Pool, Server};
use schemars::JsonSchema;
use serde::Serialize;

use crate::template::{PullFields, PushFields};
use crate::values::{ReceiptPath, path};

/// The report of `calve db start`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.db.server/1")]
pub struct DbServerReceipt {
    #[serde(flatten)]
    pub server: Server,
}

/// The report of `calve db list`, `calve db reset` and `calve db stop`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.db.servers/1")]
pub struct DbServersReceipt {
    /// The servers.
    pub servers: Vec<Server>,
    /// The servers that ended although nobody has stopped them (`calve db list` only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Vec<DbEndedServer>>,
    /// The data of the services of all worktrees (`calve db list --all` only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub services: Option<Vec<DbServiceData>>,
}

/// The data of a service of a worktree.
#[derive(Debug, JsonSchema, Serialize)]
pub struct DbServiceData {
    /// The name of its servers.
    pub name: String,
    /// The name of the service in .calve.toml.
    pub service: String,
    /// The name of the engine, such as `postgres`.
    pub engine: String,
    /// The template that it comes from.
    pub template: String,
    /// The state of its server, or of its worktree.
    pub state: ServiceDataState,
    /// The root of its worktree. Null if that is not where it was, or cannot be read.
    pub worktree: Option<ReceiptPath>,
    /// git's own directory of its worktree, also when that is gone.
    pub keeper: ReceiptPath,
    /// The data directory.
    pub data_directory: ReceiptPath,
    /// The most space that removing the data would free. Null if it could not be looked at.
    pub disk_bytes: Option<u64>,
}

/// The state of the data of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ServiceDataState {
    /// Its server runs.
    Running,
    /// Its server does not run.
    Stopped,
    /// Its worktree or repository is not where it was, whether its server runs or not.
    Orphaned,
}

/// A server that ended although nobody has stopped it.
#[derive(Debug, JsonSchema, Serialize)]
pub struct DbEndedServer {
    /// The name of the server.
    pub name: String,
    /// A stable name for the reason.
    pub reason: &'static str,
    /// The reason for people.
    pub text: String,
    /// The end of the server, in seconds since 1970.
    pub ended_unix_s: u64,
}

impl From<Ending> for DbEndedServer {
    fn from(Ending { name, reason, ended_unix_s, .. }: Ending) -> Self {
        Self { name, reason: reason.into(), text: reason.to_string(), ended_unix_s }
    }
}

/// The report of `calve db pool`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.db.pools/1")]
pub struct DbPoolsReceipt {
    /// The pools: all, or the one that was set.
    pub pools: Vec<Pool>,
}

/// The report of `calve db promote`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.db.promote/1")]
pub struct DbPromoteReceipt {
    /// The templates of the worktree's services.
    pub templates: Vec<DbPromotedTemplate>,
}

/// A template, and the data that is to become it.
#[derive(Debug, JsonSchema, Serialize)]
pub struct DbPromotedTemplate {
    /// The template.
    pub template: String,
    /// Whether the data is the template now.
    pub promoted: bool,
}

/// The report of `calve db mark`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.db.mark/1")]
pub struct DbMarkReceipt {
    #[serde(flatten)]
    pub mark: DbMark,
}

/// The report of `calve db marks`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.db.marks/1")]
pub struct DbMarksReceipt {
    /// The marks, the oldest first.
    pub marks: Vec<DbMark>,
}

/// A kept state of a server.
#[derive(Debug, JsonSchema, Serialize)]
pub struct DbMark {
    /// The server.
    pub server: String,
    /// The name of the mark.
    pub name: String,
    /// The name of the engine, such as `postgres`.
    pub engine: String,
    /// The template of the server. Null if there is none.
    pub template: Option<String>,
    /// How the state was made consistent: `stopped`, the server was shut down cleanly.
    pub method: &'static str,
    /// The number of files.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// When the mark was made, in seconds since 1970.
    pub made_unix_s: u64,
}

impl DbMark {
    pub fn new(server: &str, mark: DatabaseTemplate) -> Self {
        let DatabaseTemplate { name, program, base: template, files, bytes, made_unix_s, .. } = mark;
        let (server, engine) = (server.to_owned(), program.engine);
        Self { server, name, engine, template, method: "stopped", files, bytes, made_unix_s }
    }
}

/// The report of `calve db template create`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.db.template/1")]
pub struct DbTemplateReceipt {
    #[serde(flatten)]
    pub template: DbTemplate,
    /// True if an existing template was made of the same.
    pub reused: bool,
}

/// The report of `calve db template list`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.db.templates/1")]
pub struct DbTemplatesReceipt {
    /// The templates.
    pub templates: Vec<DbTemplate>,
}

/// A template that servers are cloned from.
#[derive(Debug, JsonSchema, Serialize)]
pub struct DbTemplate {
    /// The name of the template.
    pub name: String,
    /// The name of the engine, such as `postgres`.
    pub engine: String,
    /// The version in the words of the server program.
    pub version: String,
    /// The server program.
    pub program: ReceiptPath,
    /// The image that the program is in, if its servers run in containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The key of what the template was made of.
    pub key: String,
    /// The template that this one was made from. Null if there is none.
    pub base: Option<String>,
    /// The number of files.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// When the template was made, in seconds since 1970.
    pub made_unix_s: u64,
    /// Settings and files that were taken out of a data directory that was taken over, or stay in it without effect.
    pub neutralised: Vec<String>,
    /// The data directory.
    pub data_directory: ReceiptPath,
}

impl From<DatabaseTemplate> for DbTemplate {
    fn from(template: DatabaseTemplate) -> Self {
        Self {
            data_directory: path(template.data_directory()),
            image: template.image().map(str::to_owned),
            name: template.name,
            engine: template.program.engine,
            version: template.program.version,
            program: path(template.program.path),
            key: template.key,
            base: template.base,
            files: template.files,
            bytes: template.bytes,
            made_unix_s: template.made_unix_s,
            neutralised: template.neutralised,
        }
    }
}

/// The report of `calve db template push`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.db.template.push/1")]
pub struct DbTemplatePushReceipt {
    #[serde(flatten)]
    pub push: PushFields,
}

/// The report of `calve db template pull`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.db.template.pull/1")]
pub struct DbTemplatePullReceipt {
    #[serde(flatten)]
    pub template: DbTemplate,
    #[serde(flatten)]
    pub pull: PullFields,
}

/// The report of `calve db gc`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.db.gc/1")]
pub struct DbGcReceipt {
    /// Servers and unfinished templates that were cleaned up after a crash.
    pub servers: Vec<String>,
    /// Data of services whose worktree or repository is not where it was, and that stays.
    pub orphans: Vec<DbServiceData>,
    /// The names of such data that was removed: only what was named.
    pub removed: Vec<String>,
}
