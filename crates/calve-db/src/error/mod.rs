//! Errors. They cross the socket of a supervisor as they are.

pub(crate) mod end_reason;
pub(crate) mod operation;
pub(crate) mod remedy;
mod unusable_data;

use std::io;
use std::path::{Path, PathBuf};

use calve_core::Strategy;
use calve_core::internal::ShownPath;
use serde::{Deserialize, Serialize};

use crate::error::end_reason::EndReason;
use crate::error::operation::Operation;
use crate::error::remedy::Remedy;

pub use unusable_data::UnusableData;

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// The kind of error, and the place.
#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Error {
    /// A file or directory could not be worked on.
    #[error("cannot {operation} `{}`: {source}", ShownPath(.path))]
    Io {
        #[serde(with = "crate::error::operation")]
        operation: Operation,
        path: PathBuf,
        #[serde(with = "reason")]
        source: io::Error,
        /// The clone engine's remedy, if that failed.
        remedy: Option<calve_core::error::Remedy>,
    },
    #[error("cannot keep templates and servers in `{}`: {source}", ShownPath(.path))]
    Home {
        path: PathBuf,
        #[serde(with = "reason")]
        source: io::Error,
    },
    /// A record is there, and so is what it describes.
    #[error("`{}` is damaged, or of another version", ShownPath(.0))]
    RecordDamaged(PathBuf),
    /// The data directory to take over cannot be read.
    #[error("cannot {operation} `{}`: {source}", ShownPath(.path))]
    Unreadable {
        #[serde(with = "crate::error::operation")]
        operation: Operation,
        path: PathBuf,
        #[serde(with = "reason")]
        source: io::Error,
    },
    /// The clone engine refused or failed.
    #[error("{message}")]
    Clone {
        message: String,
        /// The path that has no room for the clone, if that is the reason.
        full: Option<PathBuf>,
        remedy: Option<calve_core::error::Remedy>,
    },
    /// The name of a template or a server cannot be used.
    #[error("`{}` is not a valid name: use up to {longest} letters, digits, `-`, `_` and `.`, beginning with a letter or a digit", .name.escape_default())]
    BadName { name: String, longest: usize },
    #[error("unknown engine `{}`; the engines are {}", .name.escape_default(), .known.join(" and "))]
    UnknownEngine { name: String, known: Vec<String> },
    /// A template without a base needs an engine.
    #[error("no engine was named")]
    EngineNeeded,
    #[error("the base template `{base}` is for {engine}")]
    BaseOfOtherEngine { base: String, engine: String },
    #[error("a template is made from a data directory or from a base template, not from both")]
    TwoSources,
    /// Without an image it has nothing to do.
    #[error("a container runtime was named without an image")]
    RuntimeWithoutImage,
    /// A pattern of input files matches nothing.
    #[error("no file matches `{}`", .0.escape_default())]
    NoInput(String),
    #[error("the pattern `{}` is not valid: {reason}", .pattern.escape_default())]
    BadPattern { pattern: String, reason: String },
    /// A path cannot be handed to a database server.
    #[error("`{}` is not UTF-8", ShownPath(.0))]
    NotUtf8(PathBuf),
    #[error("there is no process {0} to own the server")]
    NoOwner(u32),
    #[error("no database server runs as root, and this system has no user {}", .0.join(", "))]
    NoAccount(Vec<String>),
    #[error("the user that the server runs as cannot reach `{}`", ShownPath(.0))]
    Unreachable(PathBuf),
    #[error("a server without a template cannot be reset")]
    NothingToResetTo,
    #[error("the server `{server}` has no mark `{mark}`")]
    UnknownMark { server: String, mark: String },
    #[error("the server `{server}` has a mark `{mark}` already")]
    MarkExists { server: String, mark: String },
    /// The data of the server is not all in its directory, or cannot be kept for another reason. It goes on.
    #[error("the server `{server}` cannot be marked: {reason}")]
    CannotMark { server: String, reason: UnusableData },
    #[error("a pool of {size} servers is too large: at most {most}")]
    PoolSize { size: usize, most: usize },
    #[error("there is no template `{0}`")]
    UnknownTemplate(String),
    /// Its first build has not finished.
    #[error("the template `{0}` is still being built")]
    TemplateBeingBuilt(String),
    /// The template's files are not what they were when it was made.
    #[error("the template `{name}` is damaged: {what}")]
    TemplateDamaged {
        name: String,
        what: String,
        /// The image that it was pulled from, if it was.
        origin: Option<String>,
    },
    #[error("there is no data of the service `{0}`")]
    UnknownService(String),
    /// A process still has the data open.
    #[error("the data of `{0}` is still in use by a server that ended or is ending")]
    ServiceInUse(String),
    /// It has writes that exist nowhere else, and goes on.
    #[error("the server `{name}` {how}, so it was not stopped{}", tail(.log))]
    ServiceUnsaved {
        name: String,
        /// The step that failed, as a verb phrase.
        how: String,
        /// The last lines of its log.
        log: String,
    },
    /// It holds what nothing else does.
    #[error("the data of the service `{service}` of `{}` may have changes that are nowhere else", ShownPath(worktree))]
    ServiceWritten {
        service: String,
        /// The root of its worktree.
        worktree: PathBuf,
    },
    /// It holds the data of a worktree, which no command can make again.
    #[error("the template `{0}` holds the data of a worktree, which would be lost")]
    TemplatePromoted(String),
    /// Servers in containers keep no data.
    #[error("the template `{0}` runs from an image, and a service cannot")]
    ServiceFromImage(String),
    /// Data that are kept cannot be put back.
    #[error("the server `{0}` keeps its data, so it has neither marks nor resets")]
    Durable(String),
    #[error("there is no server `{0}`")]
    UnknownServer(String),
    /// The server ended unasked.
    #[error("the server `{name}` {reason}")]
    ServerEnded { name: String, reason: EndReason },
    /// It is there, with its marks, and takes a reset.
    #[error("the server `{name}` is down, because it could not be started again: {cause}")]
    ServerDown {
        name: String,
        cause: String,
        /// The path on a full disk, if that is why.
        full: Option<PathBuf>,
    },
    #[error("there is a server `{0}` already")]
    ServerExists(String),
    #[error("cannot find `{program}`; looked in {}", looked(.places))]
    NoProgram { program: String, places: Vec<PathBuf> },
    /// The program by which a template, or data that came from it, was made is not there any more, as after an upgrade of the system.
    #[error("`{}`, which made the template `{template}`, is gone: {version}", ShownPath(.program))]
    ProgramGone {
        program: PathBuf,
        template: String,
        version: String,
        /// The image that the template was pulled from, if it was.
        origin: Option<String>,
    },
    /// The server program is not one that is supported.
    #[error("`{}` is {version}; supported: {supported}", ShownPath(.path))]
    Version { path: PathBuf, version: String, supported: String },
    /// No program that runs containers is here.
    #[error("cannot find {}", one_of(.0))]
    NoRuntime(Vec<PathBuf>),
    /// It runs no containers, or is another one than is supported.
    #[error("`{}` is neither podman nor docker: {said}", ShownPath(.runtime))]
    UnknownRuntime { runtime: PathBuf, said: String },
    /// Its containers have other files, users or ports than this machine.
    #[error("the engine of `{}` does not share this machine's files and users", ShownPath(.0))]
    EngineElsewhere(PathBuf),
    /// An earlier build made it for such an engine. The volumes are those that it has noted.
    #[error("the template `{name}` is for servers in volumes of a Docker engine, which are no longer supported")]
    TemplateInVolumes { name: String, volumes: Vec<String> },
    /// A server has its data in such volumes. The names of its container and volumes begin with `name`.
    #[error(
        "its data is in volumes of a Docker engine, which are no longer supported; to remove it: docker rm --force {name} && \
         docker volume rm $(docker volume ls --quiet --filter name={name}) && rm -r {}", ShownPath(.place)
    )]
    ServerInVolumes { name: String, place: PathBuf },
    /// The program that runs containers has failed.
    #[error("`{}` failed{}", ShownPath(.runtime), tail(.said))]
    Runtime {
        runtime: PathBuf,
        /// Its exit code, if it was not killed.
        code: Option<i32>,
        said: String,
    },
    /// The same, for lack of subordinate ids.
    #[error("`{}` failed{}", ShownPath(.runtime), tail(.said))]
    NoSubordinateIds { runtime: PathBuf, said: String },
    #[error("there is no image `{}` on this machine", .image.escape_default())]
    NoImage {
        /// The program that would have it.
        runtime: PathBuf,
        image: String,
    },
    /// The image's programs do not run here.
    #[error("the image `{}` is for another architecture than this machine's", .0.escape_default())]
    ImageOfOtherArchitecture(String),
    /// The image is of something else.
    #[error("the image `{}` has no `{program}`", .image.escape_default())]
    ImageWithoutServer { image: String, program: String },
    /// A path has a colon, which runtimes cannot be told of.
    #[error("`{}` cannot be mounted into a container, because of the colon", ShownPath(.0))]
    CannotBind(PathBuf),
    #[error("{program} failed ({how}){}", tail(.said))]
    Program {
        program: String,
        /// Its exit code or signal.
        how: String,
        /// The last lines of what it said.
        said: String,
        /// The path on a full disk, if it said so.
        full: Option<PathBuf>,
    },
    /// The server ended before it was ready, or was never ready.
    #[error("the server {how}{}", tail(.log))]
    ServerFailed {
        how: String,
        /// The last lines of its log.
        log: String,
        /// The path on a full disk, if that is why.
        full: Option<PathBuf>,
    },
    #[error("the command failed ({how}), so the template `{template}` was not made; the server's log is `{}`", ShownPath(.log))]
    Command {
        template: String,
        /// The exit code for the waiting process.
        code: u8,
        /// Its exit code or signal.
        how: String,
        /// Where the log is kept.
        log: PathBuf,
    },
    #[error("the command never connected to the server it was to fill, so the template `{template}` was not made")]
    NotConnected { template: String },
    #[error("`{}` sets `{option}`, which leads MariaDB's clients to another server or user", ShownPath(.path))]
    OptionFile { path: PathBuf, option: String },
    #[error("there is a template `{name}` of the engine {engine}")]
    OtherEngine { name: String, engine: String },
    /// The template was made again by an engine or version that the server cannot use.
    #[error("the template `{template}` was made again by {now}, but the server runs {was}; it stays as it is")]
    TemplateChanged {
        template: String,
        /// Its engine and version now.
        now: String,
        /// Those of the server.
        was: String,
    },
    /// The data of a service would be replaced by that of another engine, under another URL.
    #[error(
        "the template `{template}` is now of the engine {now}, and the service `{service}` of {was}; it stays as it is"
    )]
    ServiceOfOtherEngine { service: String, was: String, template: String, now: String },
    #[error("`{}` cannot be made a template: {reason}", ShownPath(.path))]
    NotUsable { path: PathBuf, reason: UnusableData },
    /// Data that is kept cannot be used by the program that is installed.
    #[error("its data cannot be used: {reason}")]
    ServiceNotUsable { reason: UnusableData },
    /// The data directory that a command has filled cannot be a template.
    #[error("the template `{template}` was not made: {reason}")]
    BuildNotUsable { template: String, reason: UnusableData },
    /// Data that came from a registry cannot be used on this machine.
    #[error("the template `{name}` was not pulled: {reason}")]
    PullNotUsable { name: String, reason: UnusableData },
    /// Its program is in an image of its own.
    #[error("the template `{0}` runs from an image, and cannot be pushed")]
    PushFromImage(String),
    #[error("port {0} of 127.0.0.1 is taken")]
    PortTaken(u16),
    #[error("port {0} needs a privilege that this user does not have")]
    PortNotPermitted(u16),
    /// There is no place for sockets.
    #[error("cannot keep sockets in `{}`: {source}", ShownPath(.path))]
    Sockets {
        /// Where they would be.
        path: PathBuf,
        #[serde(with = "reason")]
        source: io::Error,
    },
    /// No path for sockets is short enough.
    #[error("the socket path `{}` is {bytes} bytes long; the system allows {most}", ShownPath(.path))]
    SocketPath {
        path: PathBuf,
        bytes: usize,
        /// The most that is permitted.
        most: usize,
    },
    #[error("the path of the data directory `{}` is {bytes} bytes long; the server allows {most}", ShownPath(.path))]
    DataPath {
        path: PathBuf,
        bytes: usize,
        /// The most that is permitted.
        most: usize,
    },
    #[error("the strategy `{strategy}` cannot be used: {reason}")]
    Strategy { strategy: Strategy, reason: String },
    #[error("the supervisor of the server `{0}` ended unexpectedly")]
    SupervisorGone(String),
    /// Its supervisor knows its files by their paths.
    #[error("the server was started in `{}`, which was moved since", ShownPath(.0))]
    HomeMoved(PathBuf),
    /// Another command has ended it before it could do what was asked.
    #[error("the server `{0}` was stopped meanwhile")]
    StoppedMeanwhile(String),
    /// Its supervisor is of another version, and has carried the request out, or has refused it.
    #[error("the server `{0}` was started by another version of Calve, whose answer cannot be read")]
    OtherVersion(String),
    #[error("interrupted")]
    Interrupted,
    /// Nothing waits for the answer any more.
    #[error("interrupted, but the server `{0}` finishes what it has begun")]
    GoesOn(String),
}

impl From<calve_core::Error> for Error {
    fn from(error: calve_core::Error) -> Self {
        let remedy = error.remedy();
        match error {
            calve_core::Error::Interrupted => Self::Interrupted,
            calve_core::Error::Io { operation, path, source } => {
                Self::Io { operation: Operation::Clone(operation), path, source, remedy }
            }
            calve_core::Error::NoRoom { ref path, .. } => {
                Self::Clone { full: Some(path.clone()), message: error.to_string(), remedy }
            }
            other => Self::Clone { message: other.to_string(), full: None, remedy },
        }
    }
}

impl Error {
    /// Returns the error of an operation on a path.
    pub fn io(operation: Operation, path: impl AsRef<Path>, reason: impl Into<io::Error>) -> Self {
        let path = path.as_ref().to_path_buf();
        Self::Io { operation, path, source: calve_core::internal::without_path(reason.into()), remedy: None }
    }

    /// Returns an error without the log. A caller that knows where the log is adds it.
    pub(crate) fn server_failed(how: impl Into<String>) -> Self {
        Self::ServerFailed { how: how.into(), log: String::new(), full: None }
    }

    pub(crate) fn not_usable(path: &Path, reason: UnusableData) -> Self {
        Self::NotUsable { path: path.to_path_buf(), reason }
    }

    /// Returns whether the caller asked for something that makes no sense, on any machine.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::BadName { .. }
                | Self::UnknownEngine { .. }
                | Self::EngineNeeded
                | Self::BaseOfOtherEngine { .. }
                | Self::TwoSources
                | Self::RuntimeWithoutImage
                | Self::NoInput(_)
                | Self::BadPattern { .. }
                | Self::PoolSize { .. }
                | Self::NotUtf8(_)
        )
    }

    /// Returns the path on a file system that had no room, if that is the reason.
    pub(crate) fn full_disk(&self) -> Option<&Path> {
        match self {
            Self::Io { source, path, .. } | Self::Home { source, path }
                if source.kind() == io::ErrorKind::StorageFull =>
            {
                Some(path)
            }
            Self::Clone { full, .. }
            | Self::Program { full, .. }
            | Self::ServerFailed { full, .. }
            | Self::ServerDown { full, .. } => full.as_deref(),
            _ => None,
        }
    }

    /// Returns what the user can do next.
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
            Self::Home { .. } | Self::Unreachable(_) | Self::CannotBind(_) => Remedy::ChooseHome,
            Self::RecordDamaged(path) => Remedy::RestoreRecord(whole(path).to_path_buf()),
            Self::Unreadable { .. } => Remedy::ReadAsOwner,
            Self::BadName { .. } | Self::UnknownEngine { .. } | Self::BaseOfOtherEngine { .. } | Self::NoInput(_) => {
                Remedy::ReadHelp
            }
            Self::PoolSize { .. } | Self::BadPattern { .. } | Self::NotUtf8(_) => Remedy::ReadHelp,
            Self::NoOwner(_) => Remedy::NameRunningProcess,
            Self::EngineNeeded => Remedy::NameEngine,
            Self::TwoSources => Remedy::NameOneSource,
            Self::NoAccount(names) => Remedy::CreateAccount(names.clone()),
            Self::UnknownTemplate(name) => Remedy::CreateTemplate(name.clone()),
            Self::TemplateBeingBuilt(_) => Remedy::WaitForBuild,
            Self::TemplateDamaged { name, origin, .. } => Remedy::for_damaged(name.clone(), origin.clone()),
            Self::UnknownServer(_) | Self::UnknownService(_) | Self::StoppedMeanwhile(_) => Remedy::ListServers,
            Self::ServiceUnsaved { .. } => Remedy::ForceStop,
            Self::ServiceWritten { .. } => Remedy::ForceRemoval,
            Self::ServiceInUse(_) => Remedy::TryAgain,
            Self::PullNotUsable { reason: UnusableData::OtherVersion { .. }, .. } => Remedy::ChooseMatchingVersion,
            Self::PullNotUsable { reason: UnusableData::UnknownEngine(_), .. } => Remedy::ReadHelp,
            Self::PullNotUsable { name, .. } => Remedy::RebuildTemplate(name.clone()),
            Self::ProgramGone { template, origin, .. } => Remedy::for_version(template.clone(), origin.clone()),
            Self::ServiceFromImage(_) | Self::PushFromImage(_) => Remedy::ChooseProgramTemplate,
            Self::Durable(_) => Remedy::StartThrowaway,
            Self::UnknownMark { server, .. } => Remedy::ListMarks(server.clone()),
            Self::CannotMark { reason: UnusableData::LeadsOut(_), .. } => Remedy::DropOutside,
            Self::CannotMark { server, .. } => Remedy::ReadLog(server.clone()),
            Self::MarkExists { server, mark } => Remedy::RemoveMark { server: server.clone(), mark: mark.clone() },
            Self::ServerDown { name, .. } => Remedy::ResetServer(name.clone()),
            Self::ServerEnded { name, .. } => Remedy::ReadLog(name.clone()),
            Self::ServerExists(name) => Remedy::StopServer(name.clone()),
            Self::NoProgram { .. } => Remedy::InstallServer,
            Self::NoRuntime(_) | Self::UnknownRuntime { .. } => Remedy::InstallRuntime,
            Self::EngineElsewhere(_) | Self::ServerInVolumes { .. } => Remedy::UseLocalServer,
            Self::TemplateInVolumes { name, volumes } => {
                Remedy::RemoveVolumes { template: name.clone(), volumes: volumes.clone() }
            }
            Self::NoSubordinateIds { .. } => Remedy::GrantIds,
            Self::Runtime { runtime, .. } => Remedy::CheckRuntime(runtime.clone()),
            Self::NoImage { runtime, image } => Remedy::PullImage { runtime: runtime.clone(), image: image.clone() },
            Self::RuntimeWithoutImage | Self::ImageWithoutServer { .. } | Self::ImageOfOtherArchitecture(_) => {
                Remedy::ChooseImage
            }
            Self::Version { .. } => Remedy::ChooseSupportedVersion,
            Self::ServerFailed { log, .. } if log.is_empty() => Remedy::CheckServerProgram,
            Self::Program { .. } | Self::ServerFailed { .. } => Remedy::ReadOutput,
            Self::Command { .. } | Self::BuildNotUsable { .. } => Remedy::CorrectCommand,
            Self::NotConnected { .. } => Remedy::ConnectToServer,
            Self::OptionFile { .. } => Remedy::MoveOption,
            Self::OtherEngine { name, .. } | Self::TemplatePromoted(name) => Remedy::ReplaceTemplate(name.clone()),
            Self::TemplateChanged { .. } | Self::NothingToResetTo => Remedy::StartNewServer,
            Self::ServiceOfOtherEngine { .. } => Remedy::NameServiceAnew,
            Self::NotUsable { reason, .. } | Self::ServiceNotUsable { reason } => reason.remedy(),
            Self::PortTaken(_) => Remedy::ChooseAnotherPort,
            Self::PortNotPermitted(_) => Remedy::ChooseUnprivilegedPort,
            Self::Sockets { path, .. } if path.starts_with("/run") || path.starts_with("/var/run") => {
                Remedy::MakeRuntimeRoots
            }
            Self::Sockets { .. } | Self::SocketPath { .. } => Remedy::ChooseRuntime,
            Self::DataPath { .. } => Remedy::ShortenHome,
            Self::Strategy { .. } => Remedy::DropStrategy,
            Self::SupervisorGone(_) => Remedy::Sweep,
            Self::HomeMoved(_) => Remedy::MoveHomeBack,
            Self::OtherVersion(name) => Remedy::RestartServer(name.clone()),
            Self::Interrupted | Self::GoesOn(_) => return None,
        })
    }
}

/// Returns the path that has everything a record describes: the record's directory, unless that has those of others.
fn whole(record: &Path) -> &Path {
    record.parent().filter(|above| !above.ends_with("pools")).unwrap_or(record)
}

/// An error of the system as its number, or its kind's text: the reader has no other use for it.
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

fn one_of(names: &[PathBuf]) -> String {
    names.iter().map(|name| format!("`{}`", ShownPath(name))).collect::<Vec<_>>().join(" or ")
}

fn tail(text: &str) -> String {
    text.lines().map(|line| format!("\n  {line}")).collect()
}
