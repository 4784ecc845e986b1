//! Messages between commands and a server's supervisor: one line of JSON each. The starter has the supervisor's
//! version. The sender of a request may have a later one.

use std::borrow::Cow;
use std::io::{self, BufRead, Read as _, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use calve_core::Strategy;
use serde::{Deserialize, Serialize};

use crate::engine::container::Container;
use crate::engine::{Purpose, ServerProgram};
use crate::error::{Error, Remedy, Result};
use crate::registry::Record;
use crate::registry::template::{self, DatabaseTemplate};
use crate::sys::ProcessHandle;

#[derive(Debug, Serialize, Deserialize)]
#[expect(clippy::large_enum_variant, reason = "a process has one of them")]
pub(crate) enum Order<'a> {
    Serve(Cow<'a, Spec>),
    /// Write the file system of this path to the disk, and end.
    Sync(Cow<'a, Path>),
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Spec {
    /// The record as known before the start. `strategy`: the one wanted, if not the best. `isolated`: try namespaces.
    pub(crate) record: Record,
    pub(crate) program: ServerProgram,
    pub(crate) container: Option<Container>,
    /// Its slot in the registry. It holds the files, unless `durable` does.
    pub(crate) slot: PathBuf,
    /// Where to leave a report if no caller waits for it.
    pub(crate) logs: PathBuf,
    pub(crate) origin: Origin,
    pub(crate) purpose: Purpose,
    /// The port wanted. 0: any.
    pub(crate) tcp: Option<u16>,
    pub(crate) ttl: Option<Duration>,
    pub(crate) owner: Ownership,
    /// The data directory must not depend on a mount.
    pub(crate) whole: bool,
    /// The file of its template's pool, which need not exist.
    pub(crate) pool: Option<PathBuf>,
    /// The directory of data that outlives it.
    pub(crate) durable: Option<PathBuf>,
}

impl Spec {
    /// Returns whether the kernel itself removes the leftovers of a killed supervisor.
    pub(crate) fn is_left_to_the_kernel(&self) -> bool {
        self.record.isolated && self.container.is_none()
    }

    pub(crate) fn files(&self) -> &Path {
        self.durable.as_ref().unwrap_or(&self.slot)
    }

    /// Returns the paths that the server must see unchanged.
    pub(crate) fn needed(&self) -> Vec<&Path> {
        let mut paths = vec![self.slot.as_path(), &self.record.directory, &self.program.path];
        paths.extend(self.durable.as_deref());
        if self.container.is_some() {
            // Podman's locks are there, for all its processes.
            paths.push(Path::new("/dev/shm"));
        }
        match &self.origin {
            Origin::Init | Origin::Present => {}
            Origin::Template(path) | Origin::Directory(path) => paths.push(path),
        }
        paths
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Origin {
    /// The engine makes a new one.
    #[default]
    Init,
    /// The directory of a template, with its `data` and its lock.
    Template(PathBuf),
    Directory(PathBuf),
    /// It exists, left by a server that was shut down cleanly.
    Present,
}

impl Origin {
    pub(crate) fn template_identity(&self) -> String {
        let Self::Template(slot) = self else { return String::new() };
        template::read(slot).ok().flatten().map(|template| template.identity()).unwrap_or_default()
    }
}

/// The event that ends a server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Ownership {
    /// It runs until it is stopped, or too old.
    #[default]
    Nobody,
    /// The end of the returned [`crate::OwnedServer`], which holds the other end of the supervisor's socket.
    #[serde(rename = "Starter")]
    Caller,
    /// The first end of one of these processes.
    Processes(Vec<u32>),
}

impl Ownership {
    pub(crate) fn processes(&self) -> Result<Vec<ProcessHandle>> {
        let Self::Processes(pids) = self else { return Ok(Vec::new()) };
        let none =
            |pid| Error::failed(format!("there is no process {pid} to own the server"), Remedy::NameRunningProcess);
        pids.iter().map(|pid| ProcessHandle::open(*pid, None).ok_or_else(|| none(pid))).collect()
    }

    pub(crate) fn first_pid(&self) -> Option<u32> {
        let Self::Processes(pids) = self else { return None };
        pids.first().copied()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// End the server and remove its files. A service's server ends only if it can write all its data.
    Stop,
    /// The same, even if data is lost.
    StopAnyway,
    Reset(Option<String>),
    Mark(String),
    Unmark(String),
    /// End, if it still waits.
    Dismiss,
    /// Report the position of kept data, which every write changes.
    Written,
    /// Clone kept data into the directory of this name beside its own.
    Copy(String),
    Claim(Claim),
    /// Release the server from its owner.
    Keep,
    /// Shut the server down cleanly, and leave its files.
    Finish,
    /// The starter runs this command, which must end with the starter. There is no answer.
    Command(u32),
}

impl Request {
    /// Returns whether the request is for throwaway data, and makes no sense once the server is stopped.
    pub(crate) fn changes_data(&self) -> bool {
        matches!(self, Self::Reset(_) | Self::Mark(_) | Self::Unmark(_))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claim {
    /// `None`: it keeps its name.
    pub(crate) name: Option<String>,
    pub(crate) ttl: Option<Duration>,
    pub(crate) owner: Ownership,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// Done, and this is the server now.
    Ready(Box<Record>),
    Done,
    /// Another caller has the standby already.
    Taken,
    Written(Option<String>),
    Copied(Option<Strategy>),
    Marked(Box<DatabaseTemplate>),
    Stopped {},
    Failed(Error),
    /// Try again with a supervisor without namespaces.
    NoNamespaces,
}

impl Answer {
    pub(crate) fn failed(error: Error) -> Self {
        // A path that is not UTF-8 cannot be in JSON.
        let is_plain = serde_json::to_vec(&error).is_ok();
        let plain = || Error::Clone { message: error.to_string(), full: None, remedy: None };
        Self::Failed(if is_plain { error } else { plain() })
    }

    pub(crate) fn into_result(self) -> Result<Self> {
        match self {
            Self::Failed(error) => Err(error),
            other => Ok(other),
        }
    }
}

const LONGEST_MESSAGE: u64 = 64 << 20;

pub(crate) fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)
}

/// Reads one message. `None`: the end.
pub(crate) fn receive<M: for<'a> Deserialize<'a>>(from: &mut impl BufRead) -> io::Result<Option<M>> {
    let mut line = Vec::new();
    if from.by_ref().take(LONGEST_MESSAGE).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    // A truncated message is no JSON.
    Ok(Some(serde_json::from_slice(&line)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn fuzz_answers() {
        let failed = serde_json::to_vec(&Answer::Failed(Error::UnknownServer("a".into())));
        let stopped = serde_json::to_vec(&Answer::Stopped {});
        let seeds = [[failed.unwrap(), b"\n".to_vec()].concat(), [stopped.unwrap(), b"\n".to_vec()].concat()];
        let seeds: Vec<&[u8]> = seeds.iter().map(Vec::as_slice).collect();
        calve_testkit::fuzz(&seeds, |mut input| {
            drop(receive::<Answer>(&mut input));
        });
    }

    #[test]
    fn an_error_of_the_engine_keeps_its_remedy() {
        use calve_core::error::Remedy::{CreateDirectory, RaiseOpenFiles};
        let missing = calve_core::Error::ParentMissing("/gone".into());
        let (operation, path) = (calve_core::error::Operation::Open, "/many".into());
        let too_many = calve_core::Error::Io { operation, path, source: rustix::io::Errno::MFILE.into() };
        for (error, remedy) in [(missing, CreateDirectory("/gone".into())), (too_many, RaiseOpenFiles)] {
            let mut line = Vec::new();
            send(&mut line, &Answer::failed(error.into())).unwrap();
            let received = receive::<Answer>(&mut &*line).unwrap().unwrap().into_result().unwrap_err();
            assert_eq!(received.remedy(), Some(crate::Remedy::Engine(remedy)));
        }
    }

    #[test]
    fn a_message_without_an_end_is_refused() {
        let endless = io::repeat(b'[');
        let read = receive::<Answer>(&mut io::BufReader::new(endless));
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
