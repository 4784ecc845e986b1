//! What can go wrong.

use std::io;
use std::path::{Path, PathBuf};

use calve_core::Shown;

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, and where.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or directory could not be worked on.
    #[error("cannot {operation} `{}`: {source}", Shown(.path))]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The clone engine refused or failed.
    #[error(transparent)]
    Clone(#[from] calve_core::Error),
    /// A name, a path or an option that cannot be used.
    #[error("{0}")]
    Usage(String),
    /// There is no such template.
    #[error("there is no template `{0}`")]
    UnknownTemplate(String),
    /// Its first build has not finished.
    #[error("the template `{0}` is still being built")]
    TemplateBeingBuilt(String),
    /// Servers use the template's files.
    #[error("the template `{name}` is used by the server `{server}`")]
    TemplateInUse {
        /// The template.
        name: String,
        /// One of the servers.
        server: String,
    },
    /// The template's files are not what they were when it was made.
    #[error("the template `{name}` is damaged: {what}")]
    TemplateDamaged {
        /// The template.
        name: String,
        /// What is different.
        what: String,
    },
    /// There is no such server.
    #[error("there is no server `{0}`")]
    UnknownServer(String),
    /// The name is taken.
    #[error("there is a server `{0}` already")]
    ServerExists(String),
    /// The server's programs are not there.
    #[error("cannot find `{program}`; looked in {}", looked(.places))]
    NoProgram {
        /// Its name.
        program: String,
        /// Where it was looked for.
        places: Vec<PathBuf>,
    },
    /// The server program is not one that is supported.
    #[error("`{}` is {version}; supported: {supported}", Shown(.path))]
    Version {
        /// The program.
        path: PathBuf,
        /// What it is.
        version: String,
        /// What is supported.
        supported: &'static str,
    },
    /// A program that was run has failed.
    #[error("{program} failed ({how}){}", tail(.said))]
    Program {
        /// Its name.
        program: String,
        /// Its exit code or signal.
        how: String,
        /// The last lines of what it said.
        said: String,
    },
    /// The server ended before it was ready, or was never ready.
    #[error("the server {how}{}", tail(.log))]
    ServerFailed {
        /// In which way.
        how: String,
        /// The last lines of its log.
        log: String,
    },
    /// The command that was to fill the template has failed.
    #[error("the command failed ({how}), so the template `{template}` was not made; the server's log is `{}`", Shown(.log))]
    Command {
        /// The template.
        template: String,
        /// The exit code for whoever waits for it.
        code: u8,
        /// Its exit code or signal.
        how: String,
        /// Where the log is kept.
        log: PathBuf,
    },
    /// The command that was to fill the template succeeded without connecting to its server.
    #[error("the command did not connect to the server that it should fill, so the template `{template}` was not made")]
    NotConnected {
        /// The template.
        template: String,
    },
    /// An option file leads the engine's clients to another server.
    #[error("`{}` sets `{option}`, which leads MariaDB's clients to another server", Shown(.path))]
    OptionFile {
        /// The file.
        path: PathBuf,
        /// The option.
        option: String,
    },
    /// The template of that name is of another engine.
    #[error("there is a template `{name}` of the engine {engine}")]
    OtherEngine {
        /// Its name.
        name: String,
        /// Its engine.
        engine: String,
    },
    /// The template was made again by an engine or version that the server cannot use.
    #[error("the template `{template}` was made again by {now}, but the server runs {was}; it stays as it is")]
    TemplateChanged {
        /// The template.
        template: String,
        /// Its engine and version now.
        now: String,
        /// Those of the server.
        was: String,
    },
    /// A data directory that cannot be taken over.
    #[error("`{}` cannot be made a template: {reason}", Shown(.path))]
    NotUsable {
        /// The directory.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// Somebody else has the port.
    #[error("port {0} of 127.0.0.1 is taken")]
    PortTaken(u16),
    /// There is no place for sockets.
    #[error("cannot keep sockets in `{}`: {source}", Shown(.path))]
    Sockets {
        /// Where they would be.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// No path for sockets is short enough.
    #[error("the socket's path `{}` would have {bytes} bytes, and a system permits {most}", Shown(.path))]
    SocketPath {
        /// The path.
        path: PathBuf,
        /// Its length.
        bytes: usize,
        /// What is permitted.
        most: usize,
    },
    /// A strategy that was asked for cannot be used here.
    #[error("the strategy `{strategy}` cannot be used: {reason}")]
    Strategy {
        /// Its name.
        strategy: String,
        /// Why not.
        reason: String,
    },
    /// What the process that looks after the server has told.
    #[error("{message}")]
    Told {
        /// The message.
        message: String,
        /// What to do next.
        hint: String,
        /// Whether it was a requirement that was refused.
        refused: bool,
    },
    /// That process is gone.
    #[error("the process that looks after the server `{0}` ended unexpectedly")]
    SupervisorGone(String),
    /// The caller cancelled.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    pub(crate) fn io(operation: &'static str, path: impl AsRef<Path>, reason: impl Into<io::Error>) -> Self {
        Self::Io { operation, path: path.as_ref().to_path_buf(), source: reason.into() }
    }

    pub(crate) fn not_usable(path: &Path, reason: impl Into<String>) -> Self {
        Self::NotUsable { path: path.to_path_buf(), reason: reason.into() }
    }

    /// What the user can do next, as one sentence without a full stop.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                "free some space, or set CALVE_HOME to a place with more of it".into()
            }
            Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "check who owns it, or set CALVE_HOME to a place of your own".into()
            }
            Self::Io { .. } => "check the path and the disk, then try again".into(),
            Self::Usage(_) => "see `calve db --help`".into(),
            Self::UnknownTemplate(_) => {
                "see `calve db template list`, or make it with `calve db template create`".into()
            }
            Self::TemplateBeingBuilt(_) => "try again when `calve db template create` has finished".into(),
            Self::TemplateInUse { server, .. } => format!("stop it first: calve db stop {server}"),
            Self::TemplateDamaged { name, .. } => format!("make it again: calve db template create {name} --rebuild …"),
            Self::UnknownServer(_) => "see `calve db list`".into(),
            Self::ServerExists(name) => format!("name another one, or stop it: calve db stop {name}"),
            Self::NoProgram { .. } => "install the server, or name its directory with --server-bin".into(),
            Self::Version { .. } => "name the directory of a supported version with --server-bin".into(),
            Self::Program { .. } => "look at what it said, then try again".into(),
            Self::ServerFailed { log, .. } if log.is_empty() => "it had not written to its log".into(),
            Self::ServerFailed { .. } => "the lines above are the last of its log".into(),
            Self::Command { .. } => "correct the command, and create the template again".into(),
            Self::NotConnected { .. } => {
                "check where the command connects; make it use DATABASE_URL, or leave it out for an empty template"
                    .into()
            }
            Self::OptionFile { .. } => {
                "move that line to a group of its own, such as [clientprod] for `mariadb --defaults-group-suffix=prod`"
                    .into()
            }
            Self::OtherEngine { name, .. } => {
                format!(
                    "choose another name, remove it with `calve db template remove {name}`, or replace it with --rebuild"
                )
            }
            Self::TemplateChanged { .. } => "start a new server from the template, and stop this one".into(),
            Self::NotUsable { .. } => {
                "shut its server down cleanly, and name a complete data directory without links that lead elsewhere"
                    .into()
            }
            Self::PortTaken(_) => "name another port, or none: a free one is then taken".into(),
            Self::Sockets { path, .. } if path.starts_with("/run") || path.starts_with("/var/run") => {
                "make it a directory of root's, which is where root's sockets belong".into()
            }
            Self::Sockets { .. } => {
                "set XDG_RUNTIME_DIR to a directory of your own with a short path, or remove what is in the way".into()
            }
            Self::SocketPath { .. } => "set XDG_RUNTIME_DIR to a short path of your own".into(),
            Self::Strategy { .. } => "leave --strategy out: the best one is then taken".into(),
            Self::Told { hint, .. } => hint.clone(),
            Self::SupervisorGone(_) => "run `calve db gc`, then try again".into(),
            // The remedies of the engine are worded by whoever shows them.
            Self::Clone(_) | Self::Interrupted => return None,
        })
    }
}

fn looked(places: &[PathBuf]) -> String {
    let places: Vec<String> = places.iter().map(|place| format!("`{}`", Shown(place))).collect();
    places.join(", ")
}

fn tail(text: &str) -> String {
    text.lines().map(|line| format!("\n  {line}")).collect()
}
