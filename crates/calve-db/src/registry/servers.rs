//! Running servers, as commands look them up.

use std::path::Path;

use super::ending::{self, Ending};
use super::name;
use super::record::{Record, Server, read};
use super::slots::{SocketsNote, is_held, signature, slot_of, slots};
use crate::engine::container;
use crate::error::{Error, Result};
use crate::files::home::Home;
use crate::files::runtime;
use crate::sys::ProcessHandle;

/// Lists the running servers by name, without waiting standbys and unreadable records.
pub fn list(home: &Home) -> Result<Vec<Record>> {
    Ok(each(home)?.into_iter().filter_map(|(_, record)| record.ok()).map(as_it_is).collect())
}

/// Lists the names of the running servers whose data goes with them, including those with unreadable records.
pub fn throwaway(home: &Home) -> Result<Vec<String>> {
    let kept =
        |name: &str, record: &Result<Record>| record.as_ref().map_or_else(|_| is_service(home, name), |it| it.durable);
    let found = each(home)?.into_iter().filter(|(name, record)| !kept(name, record));
    Ok(found.map(|(slot, record)| record.map_or(slot, |record| record.server.name)).collect())
}

fn each(home: &Home) -> Result<Vec<(String, Result<Record>)>> {
    let named = slots(home)?.into_iter().filter_map(|slot| {
        let name = slot.file_name()?.to_string_lossy().into_owned();
        let record = read(&slot).transpose().filter(|_| !name.starts_with('.') && is_held(&slot))?;
        Some((name, record)).filter(|(_, record)| !record.as_ref().is_ok_and(|record| record.waits))
    });
    Ok(named.collect())
}

/// Returns whether a server without a readable record has data that outlives it.
fn is_service(home: &Home, name: &str) -> bool {
    home.services.join(name).exists()
}

/// Clears the pid of a server that has ended: on a full disk its supervisor, which goes on, could not.
fn as_it_is(mut record: Record) -> Record {
    let lives = |pid, started| ProcessHandle::open(pid, started).is_some();
    // If the supervisor cannot be seen, neither can the server.
    let is_seen = lives(record.supervisor, record.supervisor_started);
    let may_live = |pid: &u32| !record.server.is_down && (lives(*pid, record.pid_started) || !is_seen);
    record.server.pid = record.server.pid.filter(may_live);
    record
}

/// Finds a running server. Fails with the reason of its end if known.
pub fn find(home: &Home, name: &str) -> Result<Record> {
    name::check(name)?;
    let slot = slot_of(home, name);
    let record = if is_held(&slot) { read(&slot)? } else { None };
    record.filter(|record| record.server.name == name && !record.waits).ok_or_else(|| ending::missing(home, name))
}

/// Replaces an unreadable record by one with only the supervisor's process and socket.
pub(crate) fn without_record(home: &Home, name: &str) -> Record {
    let slot = slot_of(home, name);
    let control = SocketsNote::read(&slot).directory(home).map(|directory| runtime::control(&directory));
    // A sweep signs for the supervisor while it removes a container.
    let (supervisor, supervisor_started) = signature(&slot).filter(|_| !container::is_noted(&slot)).unzip();
    Record {
        server: Server { name: name.to_owned(), ..Server::default() },
        control: control.unwrap_or_default(),
        supervisor: supervisor.unwrap_or_default(),
        supervisor_started,
        durable: is_service(home, name),
        ..Record::default()
    }
}

/// Returns whether the record's supervisor still has the slot: a later server of the same name may have taken it.
pub(crate) fn is_held_by(slot: &Path, record: &Record) -> bool {
    signature(slot) == Some((record.supervisor, record.supervisor_started.unwrap_or_default())) && is_held(slot)
}

/// Returns the last log lines of a running or recently ended server, as it wrote them, and how it ended, if it has.
pub fn log(home: &Home, name: &str) -> Result<(String, Option<Ending>)> {
    match find(home, name) {
        Err(Error::ServerEnded { .. }) => {
            let ending = ending::ending(home, name).ok_or_else(|| Error::UnknownServer(name.into()))?;
            Ok((ending.log.clone(), Some(ending)))
        }
        found => Ok((crate::files::log::last_lines(&found?.files(home)), None)),
    }
}
