//! Requests to the supervisors of servers that run.

use std::io::{BufReader, ErrorKind};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use calve_core::CancelToken;
use rustix::process::Signal;

use crate::error::{Error, Remedy, Result};
use crate::registry::Home;
use crate::registry::template::DatabaseTemplate;
use crate::registry::{self, Record};
use crate::server::messages::{Answer, Request, receive, send};
use crate::server::starter::wait_for_word;
use crate::sys::ProcessHandle;

/// Ends a server. Its files are out of sight on return, and deleted a little later. One of a service whose data it cannot write goes on.
/// Returns the server as it was, or `None` if its record could not be read.
pub fn stop(home: &Home, name: &str, cancel: &CancelToken) -> Result<Option<Record>> {
    stop_by(home, name, Request::Stop, cancel)
}

pub(crate) fn stop_by(home: &Home, name: &str, request: Request, cancel: &CancelToken) -> Result<Option<Record>> {
    let slot = registry::slot_of(home, name);
    let (record, unreadable) = match registry::find(home, name) {
        Err(error @ Error::RecordDamaged(_)) => (registry::without_record(home, name), Some(error)),
        found => (found?, None),
    };
    let may_lose = !record.durable || request == Request::StopAnyway;
    match change(home, &record, request, cancel) {
        Ok(_) if !slot.exists() => {}
        // A signal says nothing about what it cannot write.
        Err(Error::SupervisorGone(_)) if !may_lose && supervisor(&record).is_some() => {
            let text = format!("the supervisor of the server `{name}` does not answer, so it was not stopped");
            return Err(Error::failed(text, Remedy::StopAnyway));
        }
        // In a home that was moved, its supervisor has not found the slot; or its socket was removed and has no listener.
        Ok(_) | Err(Error::SupervisorGone(_)) => {
            end(home, &record, cancel)?;
            registry::forget_ending(home, name);
        }
        // It ended in this moment.
        Err(Error::StoppedMeanwhile(_) | Error::ServerEnded { .. }) => end(home, &record, cancel)?,
        Err(error) => return Err(error),
    }
    match unreadable {
        Some(error) if registry::is_held(&slot) => Err(error),
        None if registry::is_held_by(&slot, &record) => {
            Err(Error::failed(format!("the server `{name}` is still ending"), Remedy::TryAgain))
        }
        unreadable => Ok(unreadable.is_none().then_some(record)),
    }
}

/// Puts a server back to its template, or to a mark. It keeps its name and address; sessions are cut off. Returns it as it is now.
pub fn reset(home: &Home, name: &str, to: Option<&str>, cancel: &CancelToken) -> Result<Record> {
    let record = registry::find(home, name)?;
    match change(home, &record, Request::Reset(to.map(str::to_owned)), cancel)? {
        Answer::Ready(ready) => Ok(*ready),
        _ => Err(Error::SupervisorGone(name.into())),
    }
}

/// Keeps the present state of a server under a name, to which [`reset`] goes back. The server is stopped in order and started again:
/// sessions are cut off, and what they had not committed is not in the mark.
pub fn mark(home: &Home, server: &str, mark: &str, cancel: &CancelToken) -> Result<DatabaseTemplate> {
    crate::registry::name::check(mark)?;
    let record = registry::find(home, server)?;
    match change(home, &record, Request::Mark(mark.to_owned()), cancel)? {
        Answer::Marked(template) => Ok(*template),
        _ => Err(Error::SupervisorGone(server.into())),
    }
}

pub fn unmark(home: &Home, server: &str, mark: &str, cancel: &CancelToken) -> Result<()> {
    crate::registry::name::check(mark)?;
    let record = registry::find(home, server)?;
    change(home, &record, Request::Unmark(mark.to_owned()), cancel).map(drop)
}

/// Asks a supervisor to change or end its server. Fails with the reason if that has ended by itself. When cancelled, no mark is made; of other
/// requests the supervisor finishes what it has begun.
fn change(home: &Home, record: &Record, request: Request, cancel: &CancelToken) -> Result<Answer> {
    let is_given_up = matches!(request, Request::Mark(_));
    let answer = ask(record, request, cancel).map_err(|error| match error {
        Error::SupervisorGone(name) => registry::gone(home, &name),
        Error::Interrupted if !is_given_up => Error::GoesOn(record.server.name.clone()),
        other => other,
    });
    answer?.into_result()
}

/// Asks a supervisor, and waits for its answer. When cancelled, stops waiting: the answer is here, or the supervisor notices the closed
/// connection when it gives it.
pub(crate) fn ask(record: &Record, request: Request, cancel: &CancelToken) -> Result<Answer> {
    let gone = || Error::SupervisorGone(record.server.name.clone());
    let mut stream = UnixStream::connect(&record.control).map_err(|_| gone())?;
    send(&mut stream, &request).map_err(|_| gone())?;
    let mut talk = BufReader::new(stream);
    if let Err(interrupted) = wait_for_word(&talk, cancel) {
        let _ = talk.get_ref().shutdown(Shutdown::Both);
        return receive(&mut talk).ok().flatten().ok_or(interrupted);
    }
    match receive(&mut talk) {
        Ok(answer) => answer.ok_or_else(gone),
        // It has carried the request out, or has refused it.
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            let name = &record.server.name;
            let text =
                format!("the server `{name}` was started by another version of Calve, whose answer cannot be read");
            Err(Error::failed(text, Remedy::RestartServer(name.clone())))
        }
        Err(_) => Err(gone()),
    }
}

fn supervisor(record: &Record) -> Option<ProcessHandle> {
    ProcessHandle::open(record.supervisor, record.supervisor_started)
}

/// Asks by signal, and waits for a while. When cancelled, stops waiting; the supervisor ends all the same.
fn end(home: &Home, record: &Record, cancel: &CancelToken) -> Result<()> {
    if let Some(supervisor) = supervisor(record) {
        supervisor.signal(Signal::TERM);
        let started = Instant::now();
        while supervisor.lives() && started.elapsed() < Duration::from_secs(10) {
            if cancel.is_cancelled() {
                return Err(Error::GoesOn(record.server.name.clone()));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    crate::server::sweep::sweep(home).map(|_| ())
}
