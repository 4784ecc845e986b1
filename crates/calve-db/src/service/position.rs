//! Tells data that has changed since it was cloned from data that has not.
//!
//! An engine tells by a position, which moves with everything that is written ([`Engine::written`]). It is noted at the first start, when the
//! server has recovered and nobody but Calve can reach it: up to there, nothing but the engine itself has written.

use std::path::Path;

use calve_core::CancelToken;
use serde::{Deserialize, Serialize};

use super::{Service, find};
use crate::address::Address;
use crate::control;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::files::private;
use crate::messages::{Answer, Request, Spec};
use crate::operation::Operation;
use crate::registry::Home;

/// The position at the first start. There as soon as the first client may have come in; empty if the engine has none.
const STARTED: &str = "started";

/// A state of data, as far as that can be told.
#[derive(PartialEq, Eq)]
enum State {
    /// It has nothing that it was not cloned with.
    Unchanged,
    Changed {
        position: String,
    },
    Unknown,
}

/// A service whose data another one was cloned from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Donor {
    name: String,
    /// When its data was made: a reset makes it anew.
    made_unix_s: u64,
    /// Its position just before it was cloned, if there is one.
    written: Option<String>,
}

impl Donor {
    /// Returns the service that a clone which is about to be made gets more from than its template has: this one, or, where it has nothing of
    /// its own, the one that it was cloned from.
    pub(super) fn of(home: &Home, service: &Service) -> Option<Self> {
        let written = match state(home, service) {
            Ok(State::Unchanged) => return service.donor.clone(),
            Ok(State::Changed { position }) => Some(position),
            // Its server may end in this moment.
            Ok(State::Unknown) | Err(_) => None,
        };
        Some(Self { name: service.name.clone(), made_unix_s: service.made_unix_s, written })
    }

    /// Returns the donor of a clone that was made between these two answers of [`Donor::of`]. What was written meanwhile may be in the clone.
    pub(super) fn of_both(before: Option<Self>, after: Option<Self>) -> Option<Self> {
        if before == after { before } else { after.or(before).map(|donor| Self { written: None, ..donor }) }
    }

    /// Returns whether it has still all that was cloned from it. It does not if that cannot be told.
    fn has_all(&self, home: &Home) -> bool {
        let service = find(home, &self.name).ok().filter(|service| service.made_unix_s == self.made_unix_s);
        let now = service.and_then(|service| position(home, &service).ok().flatten());
        now.is_some() && now == self.written
    }
}

/// Returns whether its data may have what neither its template nor the service that it was cloned from has.
pub fn is_written(home: &Home, service: &Service) -> Result<bool> {
    // Another process may have removed it since.
    find(home, &service.name)?;
    let lacks = service.donor.as_ref().is_some_and(|donor| !donor.has_all(home));
    Ok(lacks || state(home, service)? != State::Unchanged)
}

fn state(home: &Home, service: &Service) -> Result<State> {
    if !was_started(&service.place) {
        return Ok(State::Unchanged);
    }
    let noted: Option<String> = private::read_json(&service.place.join(STARTED)).flatten();
    Ok(match position(home, service)? {
        None => State::Unknown,
        now if now == noted => State::Unchanged,
        Some(position) => State::Changed { position },
    })
}

/// Returns the position now. `None`: it cannot be told, as after a crash, until a server has recovered the data.
pub(crate) fn position(home: &Home, service: &Service) -> Result<Option<String>> {
    match service.server(home) {
        None => Ok(service.engine()?.written(&service.data_directory(), None)),
        // Only its supervisor knows that it is this server which answers.
        Some(record) => match control::ask(&record, Request::Written, &CancelToken::default())? {
            Answer::Written(written) => Ok(written),
            _ => Ok(None),
        },
    }
}

/// Returns whether a client may have been in the data at this place.
pub(crate) fn was_started(place: &Path) -> bool {
    place.join(STARTED).try_exists().unwrap_or(true)
}

/// Notes the position of data that is going to be shown to clients for the first time.
pub(crate) fn note_first(spec: &Spec, engine: &dyn Engine, server: &Address) -> Result<()> {
    let Some(place) = &spec.durable else { return Ok(()) };
    note(place, engine.written(&spec.files().join(super::DATA), Some(server)).as_deref())
}

pub(super) fn note(place: &Path, position: Option<&str>) -> Result<()> {
    let path = place.join(STARTED);
    private::write_json(&path, &position)?;
    // What clients commit outlives a power failure, and so does the knowledge that they may have been in.
    for path in [path.as_path(), place] {
        let synced = fs_err::File::open(path).and_then(|file| Ok(rustix::fs::fsync(file)?));
        synced.map_err(|error| Error::io(Operation::Sync, path, error))?;
    }
    Ok(())
}
