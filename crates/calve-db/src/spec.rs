//! What is said between the command that starts a server and the process that looks after it. Both are of one version, so
//! this is no interface: each message is one line of JSON.

use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::copy_up::Copied;
use crate::engine::Purpose;
use crate::error::{Error, Result};
use crate::registry::Record;

/// The server that is wanted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) name: String,
    /// `None` while a template is built.
    pub(crate) template: Option<String>,
    pub(crate) engine: String,
    pub(crate) program: PathBuf,
    pub(crate) account: Account,
    /// Its place in the registry: here its files go.
    pub(crate) place: PathBuf,
    /// For sockets and configuration.
    pub(crate) directory: PathBuf,
    /// Where requests to the supervisor come in.
    pub(crate) control: PathBuf,
    pub(crate) origin: Origin,
    pub(crate) purpose: Purpose,
    /// By name; `None` is the best.
    pub(crate) strategy: Option<String>,
    /// The port wanted; 0 is any.
    pub(crate) tcp: Option<u16>,
    pub(crate) ttl: Option<Duration>,
    pub(crate) owner: Owner,
    /// Whether namespaces are to be tried.
    pub(crate) isolate: bool,
    /// Whether the data directory must not depend on a mount.
    pub(crate) whole: bool,
    /// Whether this server program is known to tell when it is ready.
    pub(crate) notifies: bool,
}

/// Where the data directory comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Origin {
    /// The engine makes a new one.
    Init,
    /// A template: the directory that holds its `data` and its lock.
    Template(PathBuf),
    /// Somebody's data directory.
    Directory(PathBuf),
}

/// Whose end is the server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Owner {
    /// Nobody's: it is there until it is stopped, or too old.
    Nobody,
    /// The process that started it, which holds the other end of a socket.
    Starter,
    /// This process.
    Process(u32),
}

/// What is asked of a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// End the server and remove its files.
    Stop,
    /// Back to the template.
    Reset,
    /// From now on nobody's.
    Keep,
    /// Stop the server in order, and leave its files.
    Finish,
}

/// The answer, to a request or to the specification.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// It is done, and this is the server.
    Ready(Box<Ready>),
    /// It is done.
    Done,
    /// The server is gone; this is what its overlay had copied.
    Stopped { copied: Vec<Copied> },
    /// It failed.
    Failed { message: String, hint: String, refused: bool },
    /// A new supervisor must do without namespaces.
    NoNamespaces,
}

/// A server that answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Ready {
    pub(crate) record: Record,
    /// What was taken away from a data directory that was taken over.
    pub(crate) neutralised: Vec<String>,
}

impl Answer {
    pub(crate) fn failed(error: &Error) -> Self {
        let refused = matches!(error, Error::Strategy { .. } | Error::Told { refused: true, .. });
        Self::Failed { message: error.to_string(), hint: error.hint().unwrap_or_default(), refused }
    }

    /// An answer that is a failure, as an error.
    pub(crate) fn into_result(self) -> Result<Self> {
        match self {
            Self::Failed { message, hint, refused } => Err(Error::Told { message, hint, refused }),
            other => Ok(other),
        }
    }
}

/// Writes one message.
pub(crate) fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)
}

/// Reads one message; `None` at the end.
pub(crate) fn receive<M: for<'a> Deserialize<'a>>(from: &mut impl BufRead) -> io::Result<Option<M>> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_str(&line)?))
}
