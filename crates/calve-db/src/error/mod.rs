//! Errors, which cross a supervisor's socket unchanged.

mod remedy;

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use calve_core::internal::ShownPath;
use calve_core::{CancelToken, Strategy};
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

pub use remedy::Remedy;

use crate::sys::ProcessEnd;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
pub enum Error {
    #[error("cannot {operation} `{}`: {source}", ShownPath(.path))]
    Io {
        operation: Cow<'static, str>,
        path: PathBuf,
        #[serde(with = "reason")]
        source: io::Error,
        /// The clone engine's remedy, if cloning failed.
        remedy: Option<calve_core::error::Remedy>,
    },
    /// The record exists, and so does its subject.
    #[error("`{}` is damaged, or of another version", ShownPath(.0))]
    RecordDamaged(PathBuf),
    #[error("{message}")]
    Clone {
        message: String,
        /// The path without room for the clone, if that is the reason.
        full: Option<PathBuf>,
        remedy: Option<calve_core::error::Remedy>,
    },
    #[error("`{}` is not a valid name: use up to {longest} letters, digits, `-`, `_` and `.`, beginning with a letter or a digit", .name.escape_default())]
    BadName { name: String, longest: usize },
    #[error("no file matches `{}`", .0.escape_default())]
    NoInput(String),
    #[error("the user that the server runs as cannot reach `{}`", ShownPath(.0))]
    Unreachable(PathBuf),
    #[error("there is no template `{0}`")]
    UnknownTemplate(String),
    #[error("the template `{0}` is still being built")]
    TemplateBeingBuilt(String),
    #[error("the template `{name}` is damaged: {what}")]
    TemplateDamaged {
        name: String,
        what: String,
        /// The image that it was pulled from.
        origin: Option<String>,
    },
    #[error("there is no data of the service `{0}`")]
    UnknownService(String),
    #[error("the data of the service `{service}` of `{}` may have changes found nowhere else", ShownPath(worktree))]
    ServiceWritten { service: String, worktree: PathBuf },
    #[error("there is no server `{0}`")]
    UnknownServer(String),
    #[error("the server `{name}` {reason}")]
    ServerEnded { name: String, reason: EndReason },
    #[error("the server `{0}` already exists")]
    ServerExists(String),
    #[error("cannot find `{program}`; looked in {}", looked(.places))]
    NoProgram { program: String, places: Vec<PathBuf> },
    /// The program that made a template, or data from it, is gone, as after an upgrade of the system.
    #[error("`{}`, which made the template `{template}`, is gone: {version}", ShownPath(.program))]
    ProgramGone { program: PathBuf, template: String, version: String, origin: Option<String> },
    #[error("`{}` is {version}; supported: {supported}", ShownPath(.path))]
    Version { path: PathBuf, version: String, supported: String },
    #[error("`{}` failed{}", ShownPath(.runtime), tail(.said))]
    Runtime {
        runtime: PathBuf,
        /// Its exit code, if it was not killed.
        code: Option<i32>,
        said: String,
    },
    #[error("`{}` failed{}", ShownPath(.runtime), tail(.said))]
    NoSubordinateIds { runtime: PathBuf, said: String },
    #[error("`{}` cannot be mounted into a container, because of the colon", ShownPath(.0))]
    CannotBind(PathBuf),
    #[error("{program} failed ({how}){}", tail(.said))]
    Program {
        program: String,
        /// Its exit code or signal.
        how: String,
        said: String,
        /// The path on a full disk, if that is the reason.
        full: Option<PathBuf>,
    },
    #[error("the server {how}{}", tail(.log))]
    ServerFailed { how: String, log: String, full: Option<PathBuf> },
    #[error("the command failed ({how}), so the template `{template}` was not made; the server's log is `{}`", ShownPath(.log))]
    Command {
        template: String,
        /// The exit code that Calve passes on.
        code: u8,
        how: String,
        log: PathBuf,
    },
    #[error("the command never connected to the server it was to fill, so the template `{template}` was not made")]
    NotConnected { template: String },
    #[error("`{}` sets `{option}`, which leads clients to another server or user", ShownPath(.path))]
    OptionFile { path: PathBuf, option: String },
    #[error("`{}` cannot be made a template: {reason}", ShownPath(.path))]
    NotUsable { path: PathBuf, reason: UnusableData },
    #[error("its data cannot be used: {reason}")]
    ServiceNotUsable { reason: UnusableData },
    #[error("the strategy `{strategy}` cannot be used: {reason}")]
    Strategy { strategy: Strategy, reason: String },
    #[error("the supervisor of the server `{0}` ended unexpectedly")]
    SupervisorGone(String),
    /// Another command ended it before it carried out the request.
    #[error("the server `{0}` was stopped meanwhile")]
    StoppedMeanwhile(String),
    #[error("interrupted")]
    Interrupted,
    #[error("interrupted; the server `{0}` still finishes the operation")]
    GoesOn(String),
    #[error("{text}")]
    Failed { text: String, remedy: Remedy },
    /// The request makes no sense on any machine.
    #[error("{text}")]
    Usage { text: String, remedy: Remedy },
}

impl From<calve_core::Error> for Error {
    fn from(error: calve_core::Error) -> Self {
        let remedy = error.remedy();
        match error {
            calve_core::Error::Interrupted => Self::Interrupted,
            calve_core::Error::Io { operation, path, source } => {
                Self::Io { operation: operation.to_string().into(), path, source, remedy }
            }
            calve_core::Error::NoRoom { ref path, .. } => {
                Self::Clone { full: Some(path.clone()), message: error.to_string(), remedy }
            }
            other => Self::Clone { message: other.to_string(), full: None, remedy },
        }
    }
}

impl Error {
    pub fn io(operation: &'static str, path: impl AsRef<Path>, reason: impl Into<io::Error>) -> Self {
        let path = path.as_ref().to_path_buf();
        Self::Io {
            operation: operation.into(),
            path,
            source: calve_core::internal::without_path(reason.into()),
            remedy: None,
        }
    }

    pub(crate) fn failed(text: impl Into<String>, remedy: Remedy) -> Self {
        Self::Failed { text: text.into(), remedy }
    }

    pub(crate) fn usage(text: impl Into<String>, remedy: Remedy) -> Self {
        Self::Usage { text: text.into(), remedy }
    }

    /// Leaves out the log. A caller that knows the slot adds it.
    pub(crate) fn server_failed(how: impl Into<String>) -> Self {
        Self::ServerFailed { how: how.into(), log: String::new(), full: None }
    }

    pub(crate) fn not_usable(path: &Path, reason: UnusableData) -> Self {
        Self::NotUsable { path: path.to_path_buf(), reason }
    }

    /// Returns whether the request makes no sense on any machine.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Usage { .. } | Self::BadName { .. } | Self::NoInput(_))
    }

    /// Returns the path whose file system had no room, if that is the reason.
    pub(crate) fn full_disk(&self) -> Option<&Path> {
        match self {
            Self::Io { source, path, .. } if source.kind() == io::ErrorKind::StorageFull => Some(path),
            Self::Failed { remedy: Remedy::FreeSpace(path), .. } => Some(path),
            Self::Clone { full, .. } | Self::Program { full, .. } | Self::ServerFailed { full, .. } => full.as_deref(),
            _ => None,
        }
    }

    pub fn remedy(&self) -> Option<Remedy> {
        if let Some(path) = self.full_disk() {
            return Some(Remedy::FreeSpace(path.to_path_buf()));
        }
        Some(match self {
            Self::Io { source, path, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Remedy::CheckOwner(path.clone())
            }
            Self::Io { remedy: Some(remedy), .. } | Self::Clone { remedy: Some(remedy), .. } => {
                Remedy::Engine(remedy.clone())
            }
            Self::Io { .. } | Self::Clone { .. } => Remedy::CheckPath,
            Self::Unreachable(_) | Self::CannotBind(_) => Remedy::ChooseHome,
            Self::RecordDamaged(path) => Remedy::RestoreRecord(whole(path).to_path_buf()),
            Self::BadName { .. } | Self::NoInput(_) => Remedy::ReadHelp,
            Self::UnknownTemplate(name) => Remedy::CreateTemplate(name.clone()),
            Self::TemplateBeingBuilt(_) => Remedy::WaitForBuild,
            Self::TemplateDamaged { name, origin: Some(origin), .. } => {
                Remedy::PullTemplate { name: name.clone(), origin: origin.clone() }
            }
            Self::ProgramGone { template, origin: Some(origin), .. } => {
                Remedy::PullForVersion { name: template.clone(), origin: origin.clone() }
            }
            Self::TemplateDamaged { name, .. } | Self::ProgramGone { template: name, .. } => {
                Remedy::RebuildTemplate(name.clone())
            }
            Self::UnknownServer(_) | Self::UnknownService(_) | Self::StoppedMeanwhile(_) => Remedy::ListServers,
            Self::ServiceWritten { .. } => Remedy::ForceRemoval,
            Self::ServerEnded { name, .. } => Remedy::ReadLog(name.clone()),
            Self::ServerExists(name) => Remedy::StopServer(name.clone()),
            Self::NoProgram { .. } => Remedy::InstallServer,
            Self::NoSubordinateIds { .. } => Remedy::GrantIds,
            Self::Runtime { runtime, .. } => Remedy::CheckRuntime(runtime.clone()),
            Self::Version { .. } => Remedy::ChooseSupportedVersion,
            Self::ServerFailed { log, .. } if log.is_empty() => Remedy::CheckServerProgram,
            Self::Program { .. } | Self::ServerFailed { .. } => Remedy::ReadOutput,
            Self::Command { .. } => Remedy::CorrectCommand,
            Self::NotConnected { .. } => Remedy::ConnectToServer,
            Self::OptionFile { .. } => Remedy::MoveOption,
            Self::NotUsable { reason, .. } | Self::ServiceNotUsable { reason } => reason.remedy(),
            Self::Strategy { .. } => Remedy::DropStrategy,
            Self::SupervisorGone(_) => Remedy::Sweep,
            Self::Failed { remedy, .. } | Self::Usage { remedy, .. } => remedy.clone(),
            Self::Interrupted | Self::GoesOn(_) => return None,
        })
    }
}

/// Why a server ended without being stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize, Deserialize, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum EndReason {
    #[error("ended by itself ({0})")]
    EndedByItself(ProcessEnd),
    #[error("ended with its owner")]
    OwnerEnded,
    #[error("ended when its time to live expired")]
    TimeOver,
    #[error("ended because its supervisor was stopped")]
    SupervisorStopped,
    #[error("ended because its supervisor was killed")]
    SupervisorKilled,
    /// Its files were moved, and its supervisor has ended since.
    #[error("ended after CALVE_HOME was moved")]
    HomeMoved,
}

/// Why a data directory cannot be a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum UnusableData {
    /// It is not a data directory of the engine, or is incomplete.
    #[error("{0}")]
    Incomplete(String),
    #[error("it was made by {made_by}, and the server is {server}")]
    OtherVersion { made_by: String, server: String },
    #[error("it is in use by the process {0}")]
    InUse(i64),
    /// One of Calve's servers, whose data goes with it.
    #[error("it is in use by the server `{0}`")]
    InUseByServer(String),
    #[error("its server was not shut down cleanly")]
    NotShutDown,
    /// Calve needs an object that the engine makes in every data directory, and that was renamed or dropped.
    #[error("it has no {what}")]
    Lacks {
        what: String,
        /// The command that makes it, for the source's server.
        command: String,
    },
    #[error("{0}")]
    LeadsOut(String),
}

impl UnusableData {
    fn remedy(&self) -> Remedy {
        match self {
            Self::Incomplete(_) => Remedy::NameCompleteDirectory,
            Self::OtherVersion { .. } => Remedy::ChooseMatchingVersion,
            Self::InUseByServer(name) => Remedy::MarkServer(name.clone()),
            Self::InUse(_) | Self::NotShutDown => Remedy::ShutDownSource,
            Self::Lacks { command, .. } => Remedy::PrepareSource(command.clone()),
            Self::LeadsOut(_) => Remedy::CopyToOnePlace,
        }
    }
}

pub(crate) fn unless_cancelled(cancel: &CancelToken) -> Result<()> {
    if cancel.is_cancelled() { Err(Error::Interrupted) } else { Ok(()) }
}

/// Adds the operation and the path to a system error.
pub(crate) trait AtPath<T> {
    fn at(self, operation: &'static str, path: impl AsRef<Path>) -> Result<T>;
}

impl<T, E: Into<io::Error>> AtPath<T> for std::result::Result<T, E> {
    fn at(self, operation: &'static str, path: impl AsRef<Path>) -> Result<T> {
        self.map_err(|reason| Error::io(operation, path, reason))
    }
}

/// Returns the path of everything that a record describes: its directory, unless that has records of others.
fn whole(record: &Path) -> &Path {
    record.parent().filter(|above| !above.ends_with("pools")).unwrap_or(record)
}

/// Serialises a system error as its number and text. The reader uses nothing else.
mod reason {
    use std::io;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(error: &io::Error, to: S) -> Result<S::Ok, S::Error> {
        (error.raw_os_error(), error.to_string()).serialize(to)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<io::Error, D::Error> {
        let (number, text) = <(Option<i32>, String)>::deserialize(from)?;
        Ok(number.map_or_else(|| io::Error::other(text), io::Error::from_raw_os_error))
    }
}

fn looked(places: &[PathBuf]) -> String {
    let places: Vec<String> = places.iter().map(|place| format!("`{}`", ShownPath(place))).collect();
    places.join(", ")
}

pub(crate) fn tail(text: &str) -> String {
    text.lines().map(|line| format!("\n  {line}")).collect()
}
