//! Requests to supervisors of running servers.

use std::io::{BufReader, ErrorKind};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use calve_core::CancelToken;
use rustix::process::Signal;

use crate::error::{Error, Remedy, Result, unless_cancelled};
use crate::registry::template::DatabaseTemplate;
use crate::registry::{self, Home, Record};
use crate::server::messages::{Answer, Request, receive, send};
use crate::server::starter::wait_for_word;
use crate::sys::ProcessHandle;

const ENDING: Duration = Duration::from_secs(10);

/// Ends a server, and moves its files out of sight, to be deleted later. A service's server that cannot write its data
/// goes on. Returns the server as it was, or `None` if its record could not be read.
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
    let is_held = |slot: &Path| registry::is_held_by(slot, &record);
    match change(home, &record, request, cancel) {
        Ok(_) if !slot.exists() => {}
        // A signal would not report data that it cannot write.
        Err(Error::SupervisorGone(_)) if !may_lose && !has_ended(home, name, is_held, cancel)? => {
            let text = format!("the supervisor of the server `{name}` does not answer, so it was not stopped");
            return Err(Error::failed(text, Remedy::StopAnyway));
        }
        // The supervisor missed its slot in a home that was moved, or its socket was removed.
        Ok(_) | Err(Error::SupervisorGone(_)) => {
            end(home, &record, cancel)?;
            registry::forget_ending(home, name);
        }
        // It just ended.
        Err(Error::StoppedMeanwhile(_) | Error::ServerEnded { .. }) => end(home, &record, cancel)?,
        Err(error) => return Err(error),
    }
    match unreadable {
        Some(error) if registry::is_held(&slot) => Err(error),
        None if is_held(&slot) => Err(Error::failed(format!("the server `{name}` is still ending"), Remedy::TryAgain)),
        unreadable => Ok(unreadable.is_none().then_some(record)),
    }
}

/// Resets a server to its template, or to a mark. It keeps its name and address, but no sessions.
pub fn reset(home: &Home, name: &str, to: Option<&str>, cancel: &CancelToken) -> Result<Record> {
    let record = registry::find(home, name)?;
    match change(home, &record, Request::Reset(to.map(str::to_owned)), cancel)? {
        Answer::Ready(ready) => Ok(*ready),
        _ => Err(Error::SupervisorGone(name.into())),
    }
}

/// Keeps a server's state for [`reset`]. A clean restart cuts off sessions: their uncommitted work is not in the mark.
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

/// Fails with the reason if the server ended by itself. Cancelled, no mark is made, but other requests are finished.
fn change(home: &Home, record: &Record, request: Request, cancel: &CancelToken) -> Result<Answer> {
    let is_given_up = matches!(request, Request::Mark(_));
    let answer = ask(record, request, cancel).map_err(|error| match error {
        Error::SupervisorGone(name) => registry::gone(home, &name),
        Error::Interrupted if !is_given_up => Error::GoesOn(record.server.name.clone()),
        other => other,
    });
    answer?.into_result()
}

/// Asks a supervisor, and waits. When cancelled, closes the connection, and returns an answer that came before that.
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
        // The request was carried out, or refused.
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            let name = &record.server.name;
            let text =
                format!("the server `{name}` was started by another version of Calve, whose answer cannot be read");
            Err(Error::failed(text, Remedy::RestartServer(name.clone())))
        }
        Err(_) => Err(gone()),
    }
}

/// Waits while a supervisor that is probably ending holds its slot. Returns whether it has ended.
pub(crate) fn has_ended(
    home: &Home,
    name: &str,
    is_held: impl Fn(&Path) -> bool,
    cancel: &CancelToken,
) -> Result<bool> {
    let (slot, started) = (registry::slot_of(home, name), Instant::now());
    while is_held(&slot) && started.elapsed() < ENDING {
        unless_cancelled(cancel)?;
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(!is_held(&slot))
}

fn supervisor(record: &Record) -> Option<ProcessHandle> {
    ProcessHandle::open(record.supervisor, record.supervisor_started)
}

/// Ends a server by a signal to its supervisor, and waits for a while. Cancelling ends only the wait.
fn end(home: &Home, record: &Record, cancel: &CancelToken) -> Result<()> {
    if let Some(supervisor) = supervisor(record) {
        supervisor.signal(Signal::TERM);
        let started = Instant::now();
        while supervisor.lives() && started.elapsed() < ENDING {
            if cancel.is_cancelled() {
                return Err(Error::GoesOn(record.server.name.clone()));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    crate::server::sweep::sweep(home).map(|_| ())
}
