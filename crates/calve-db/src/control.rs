//! Requests to the supervisors of servers that run.

use std::io::{BufReader, ErrorKind};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use calve_core::CancelToken;
use rustix::process::Signal;

use crate::error::{Error, Result};
use crate::messages::{Answer, Request, receive, send};
use crate::registry::Home;
use crate::registry::{self, Record};
use crate::server::wait_for_word;
use crate::sys::ProcessHandle;
use crate::template::DatabaseTemplate;

/// A server that was stopped.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StopReport {
    /// The server as it was.
    pub record: Record,
    /// From the request to the answer.
    pub took: Duration,
}

/// Ends a server. Its files are out of sight on return, and deleted a little later. One of a service whose data it cannot write goes on.
pub fn stop(home: &Home, name: &str, cancel: &CancelToken) -> Result<StopReport> {
    stop_by(home, name, Request::Stop, cancel)
}

/// Ends a server like [`stop`], by this request.
pub(crate) fn stop_by(home: &Home, name: &str, request: Request, cancel: &CancelToken) -> Result<StopReport> {
    let started = Instant::now();
    let record = registry::find(home, name)?;
    match ask(&record, request, cancel).and_then(Answer::into_result) {
        Ok(_) => {}
        // Nobody listens, because the socket was removed; or it ended in this moment.
        Err(Error::SupervisorGone(_)) => end(home, &record)?,
        Err(error) => return Err(error),
    }
    Ok(StopReport { record, took: started.elapsed() })
}

/// A server that was put back.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ResetReport {
    /// The server as it is now.
    pub record: Record,
    /// From the request to the answer.
    pub took: Duration,
}

/// Puts a server back to its template, or to a mark. It keeps its name and address; sessions are cut off.
pub fn reset(home: &Home, name: &str, to: Option<&str>, cancel: &CancelToken) -> Result<ResetReport> {
    let started = Instant::now();
    let record = registry::find(home, name)?;
    match ask(&record, Request::Reset(to.map(str::to_owned)), cancel)?.into_result()? {
        Answer::Ready(ready) => Ok(ResetReport { record: *ready, took: started.elapsed() }),
        _ => Err(Error::SupervisorGone(name.into())),
    }
}

/// Keeps the present state of a server under a name, to which [`reset`] goes back. The server is stopped in order and started again:
/// sessions are cut off, and what they had not committed is not in the mark.
pub fn mark(home: &Home, server: &str, mark: &str, cancel: &CancelToken) -> Result<DatabaseTemplate> {
    crate::registry::name::check(mark)?;
    let record = registry::find(home, server)?;
    match ask(&record, Request::Mark(mark.to_owned()), cancel)?.into_result()? {
        Answer::Marked(template) => Ok(*template),
        _ => Err(Error::SupervisorGone(server.into())),
    }
}

pub fn unmark(home: &Home, server: &str, mark: &str, cancel: &CancelToken) -> Result<()> {
    crate::registry::name::check(mark)?;
    let record = registry::find(home, server)?;
    ask(&record, Request::Unmark(mark.to_owned()), cancel)?.into_result().map(|_| ())
}

/// Asks a supervisor, and waits for its answer. When cancelled, stops waiting; the supervisor notices the closed connection.
pub(crate) fn ask(record: &Record, request: Request, cancel: &CancelToken) -> Result<Answer> {
    let gone = || Error::SupervisorGone(record.name.clone());
    let mut stream = UnixStream::connect(&record.control).map_err(|_| gone())?;
    send(&mut stream, &request).map_err(|_| gone())?;
    let mut talk = BufReader::new(stream);
    wait_for_word(&talk, cancel)?;
    match receive(&mut talk) {
        Ok(answer) => answer.ok_or_else(gone),
        Err(error) if error.kind() == ErrorKind::InvalidData => Err(Error::OtherVersion(record.name.clone())),
        Err(_) => Err(gone()),
    }
}

/// Asks by signal, and waits.
fn end(home: &Home, record: &Record) -> Result<()> {
    if let Some(supervisor) = ProcessHandle::open(record.supervisor, record.supervisor_started) {
        supervisor.signal(Signal::TERM);
        let started = Instant::now();
        while supervisor.lives() && started.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    crate::sweep::sweep(home).map(|_| ())
}
