//! Data that outlives its servers: a directory below `services` for each, with the data, its description, a log and two locks.
//!
//! `turn` is held by whoever starts, ends, clones or removes; `lock` by the supervisor and by every process of the server, so that no second
//! server is started on data which the last process of another one may still write to.

mod copy;
mod create;
mod doom;
mod position;
mod reset;
mod run;

pub(crate) use copy::start_copy;
pub(crate) use create::copy_running;
pub use create::{NewService, ServiceData, ServiceOrigin, create, usable_template};
pub use doom::{DoomedService, WrittenDataRule, doom, sweep_doomed};
pub use position::is_written;
pub(crate) use position::{note_first, position, was_started};
pub use reset::reset;
pub(crate) use run::hold;
pub use run::{UnsavedDataRule, start, stop};

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use calve_core::{CancelToken, Strategy};
use serde::{Deserialize, Serialize};

use crate::address::Address;
use crate::engine::{self, Engine};
use crate::error::{Error, Result};
use crate::files::account::Account;
use crate::files::private;
use crate::files::random;
use crate::log;
use crate::registry::{self, Home, Record, name};
use crate::template;

const DOCUMENT: &str = "service.json";
/// As in a server's place.
const LOCK: &str = "lock";
const TURN: &str = "turn";
const DATA: &str = "data";
/// There once the clone was written to the disk.
const ON_DISK: &str = "on-disk";
/// There while its keeper is being removed.
const DOOMED: &str = "doomed";

/// Data that outlives its servers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Service {
    /// The name of its servers.
    pub name: String,
    /// The keeper's name for it.
    pub service: String,
    /// Tells its keeper from others.
    pub keeper_id: String,
    /// Where its keeper is.
    pub keeper: OsString,
    pub engine: String,
    /// The template that it comes from, maybe by way of others.
    pub template: String,
    pub made_unix_s: u64,
    pub(crate) program: PathBuf,
    pub(crate) version: String,
    pub(crate) account: Account,
    pub(crate) notifies: bool,
    /// How it was cloned.
    pub(crate) strategy: Strategy,
    /// The name of its runtime directory, which is always the same one, so that its URL is too.
    runtime: String,
    /// The service that it was cloned from, if that had data which its template lacks.
    #[serde(default)]
    donor: Option<position::Donor>,
    #[serde(skip)]
    place: PathBuf,
}

impl Service {
    fn engine(&self) -> Result<&'static dyn Engine> {
        engine::named(&self.engine)
    }

    /// Returns how programs reach its server, now or when it is started.
    pub fn address(&self, home: &Home) -> Result<Address> {
        match self.server(home) {
            Some(record) => Ok(record.address),
            None => Ok(self.engine()?.address(&home.runtime().join(&self.runtime), None, None)),
        }
    }

    /// Returns its server, if that runs.
    pub fn server(&self, home: &Home) -> Option<Record> {
        registry::find(home, &self.name).ok()
    }

    /// Returns its data directory.
    pub fn data_directory(&self) -> PathBuf {
        self.place.join(DATA)
    }

    /// Returns the last lines that its servers have logged.
    pub fn log(&self) -> String {
        log::last_lines(&self.place)
    }
}

/// Returns a word that tells a new keeper from others.
pub fn new_keeper_id() -> Result<String> {
    random::letters(8)
}

/// Returns all of them, by name.
pub fn services(home: &Home) -> Result<Vec<Service>> {
    Ok(template::directories(&home.services())?.iter().filter_map(|place| read(place)).collect())
}

/// Returns the one whose servers have this name.
pub fn find(home: &Home, name: &str) -> Result<Service> {
    name::check(name)?;
    read(&home.services().join(name)).ok_or_else(|| Error::UnknownService(name.into()))
}

/// Notes that its template has everything up to this position.
pub(crate) fn set_promoted(home: &Home, name: &str, position: Option<&str>) -> Result<()> {
    let (_turn, service) = take_turn(home, name, &CancelToken::default())?;
    let place = service.place.clone();
    if was_started(&place) {
        position::note(&place, position)?;
    }
    private::write_json(&place.join(DOCUMENT), &Service { donor: None, ..service })
}

/// Notes that its keeper is elsewhere now.
pub fn set_keeper(home: &Home, service: &Service, keeper: OsString) -> Result<()> {
    let (_turn, service) = take_turn(home, &service.name, &CancelToken::default())?;
    let place = service.place.clone();
    private::write_json(&place.join(DOCUMENT), &Service { keeper, ..service })
}

fn read(place: &Path) -> Option<Service> {
    let is_named = place.file_name().is_some_and(|name| !name.to_string_lossy().starts_with('.'));
    let service: Service = is_named.then(|| private::read_json(&place.join(DOCUMENT))).flatten()?;
    Some(Service { place: place.to_path_buf(), ..service })
}

/// Waits until nobody else starts, ends, clones or removes it, or `cancel` ends the wait.
fn take_turn(home: &Home, name: &str, cancel: &CancelToken) -> Result<(File, Service)> {
    loop {
        let service = find(home, name)?;
        let path = service.place.join(TURN);
        let turn = registry::take_lock_unless(&path, cancel, || {})?;
        if registry::is_lock_at(&turn, &path) {
            // It may have changed while somebody else had it.
            return Ok((turn, find(home, name)?));
        }
    }
}
