//! A server's record: the public part, also its JSON document, and the fields for its supervisor and other commands.

use std::path::{Path, PathBuf};

use calve_core::Strategy;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::slots::{BEGUN, RECORD, slot_of};
use crate::engine::address::Address;
use crate::engine::{self, ServerProgram};
use crate::files::home::Home;
use crate::files::private;
use crate::sys;

/// A database server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "DbServer"))]
pub struct Server {
    /// The name of the server.
    pub name: String,
    /// The name of the engine, such as `postgres`.
    pub engine: String,
    /// The template that the server was cloned from. Null if there is none.
    pub template: Option<String>,
    #[serde(flatten)]
    pub address: Address,
    /// The data directory.
    #[cfg_attr(feature = "schema", schemars(with = "calve_core::internal::json::ReceiptPath"))]
    pub data_directory: PathBuf,
    /// The id of the server's first process. Null if the server is down.
    pub pid: Option<u32>,
    #[serde(flatten)]
    pub launch: LaunchReport,
    /// The time of the start, in seconds since 1970.
    pub started_unix_s: u64,
    /// The time at which the server ends, in seconds since 1970. Null if it has no limit.
    pub expires_unix_s: Option<u64>,
    /// The process that the server ends with. Null if there is none.
    pub owner_pid: Option<u32>,
    /// True if the server was started ahead of time, and was waiting when it was asked for. Left out if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "schema", schemars(!default))]
    pub standby: bool,
    /// True if the server is down, because a reset or a mark could not start it again. Left out if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not", rename = "down")]
    #[cfg_attr(feature = "schema", schemars(!default))]
    pub is_down: bool,
}

impl Server {
    /// Refuses option files that would lead the engine's own programs to another server. `home`: the user's.
    pub fn check_option_files(&self, home: Option<&Path>) -> crate::error::Result<()> {
        engine::named(&self.engine)?.check_option_files(home)
    }
}

/// The last start of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaunchReport {
    /// The strategy by which the data directory was cloned; `init` if it was made anew.
    #[serde(serialize_with = "write_strategy", deserialize_with = "read_strategy")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("enum" = [Strategy::NAMES, &[INIT]].concat())))]
    pub strategy: Option<Strategy>,
    /// The better strategies, and why they were not used.
    pub refused: Vec<String>,
    /// Files that an overlay copies when the server first opens them for writing.
    pub copied_on_first_open: Vec<LargeFile>,
    /// How long cloning took, in milliseconds. Null if nothing was cloned for this start.
    pub clone_ms: Option<f64>,
    /// The time from the start of cloning to the first answer, in milliseconds.
    pub ready_ms: f64,
}

/// A file of a data directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "DbFile"))]
pub struct LargeFile {
    /// The path, relative to the data directory.
    #[cfg_attr(feature = "schema", schemars(with = "calve_core::internal::json::ReceiptPath"))]
    pub path: PathBuf,
    /// The size in bytes.
    pub bytes: u64,
}

impl LaunchReport {
    pub fn strategy_name(&self) -> &'static str {
        self.strategy.map_or(INIT, Strategy::name)
    }
}

const INIT: &str = "init";

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn write_strategy<S: Serializer>(strategy: &Option<Strategy>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(strategy.map_or(INIT, Strategy::name))
}

/// Reads a strategy. An unknown one becomes `None`.
fn read_strategy<'a, D: Deserializer<'a>>(from: D) -> Result<Option<Strategy>, D::Error> {
    String::deserialize(from).map(|name| name.parse().ok())
}

/// Facts that a start has shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StartFindings {
    pub(crate) program: ServerProgram,
    /// Settings and files removed from an adopted data directory.
    pub(crate) neutralised: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    #[serde(flatten)]
    pub server: Server,
    /// A server for its next reset waits.
    pub prepared: bool,
    /// It is a standby that was not handed over yet.
    pub(crate) waits: bool,
    /// Its data outlives it.
    pub durable: bool,
    /// Its template's identity when it was cloned.
    pub(crate) template_identity: String,
    pub(crate) pid_started: Option<u64>,
    pub supervisor: u32,
    pub(crate) supervisor_started: Option<u64>,
    /// The supervisor's PID namespace, in the record of a server that is not ready.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
    pub(crate) boot: String,
    /// For sockets and configuration.
    pub(crate) directory: PathBuf,
    /// The socket for requests to the supervisor.
    pub(crate) control: PathBuf,
    /// Only in the answer to its starter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) found: Option<StartFindings>,
    /// Its supervisor has namespaces of its own.
    pub(crate) isolated: bool,
    /// The image of its container.
    pub image: Option<String>,
}

impl Record {
    /// Returns the directory of the server's data, temporary files and log.
    pub(crate) fn files(&self, home: &Home) -> PathBuf {
        // After a move of the home, the recorded path is another home's.
        match self.durable {
            true => home.services.join(&self.server.name),
            false => slot_of(home, &self.server.name),
        }
    }

    /// Returns whether a server can be prepared for the next reset: one without a port, and at no cost of disk space.
    pub fn can_prepare(&self) -> bool {
        let is_cheap = !self.server.launch.strategy.is_some_and(Strategy::needs_room);
        self.isolated && self.image.is_none() && self.server.address.tcp_port.is_none() && is_cheap
    }

    /// Returns the processes of a server that is not ready: the session of its supervisor, with the supervisor itself.
    pub(crate) fn processes(&self) -> Vec<sys::ProcessHandle> {
        match self.supervisor_started {
            Some(began) if self.namespace == sys::process_namespace() => sys::members(self.supervisor, began),
            _ => Vec::new(),
        }
    }
}

/// Writes a record, which others see as a whole or not at all.
pub(crate) fn write(slot: &Path, record: &Record) -> crate::error::Result<()> {
    private::write_json(&slot.join(RECORD), record)
}

/// Records an unready server, and its first process if any. Only this tells a sweep of a killed supervisor's leftovers.
pub(crate) fn write_begun(slot: &Path, engine: &str, server: Option<u32>) -> crate::error::Result<()> {
    let supervisor = std::process::id();
    let begun = Record {
        server: Server { engine: engine.to_owned(), pid: server, ..Server::default() },
        boot: sys::boot(),
        supervisor,
        supervisor_started: sys::start_time(supervisor),
        namespace: sys::process_namespace(),
        ..Record::default()
    };
    private::write_json(&slot.join(BEGUN), &begun)
}

pub(crate) fn read_begun(slot: &Path) -> crate::error::Result<Option<Record>> {
    private::read_json(&slot.join(BEGUN))
}

/// Returns `None` until the slot's server is ready.
pub(crate) fn read(slot: &Path) -> crate::error::Result<Option<Record>> {
    private::read_json(&slot.join(RECORD))
}
