//! Tells data that has changed since it was cloned from unchanged data.
//!
//! An engine reports a position that moves with every write ([`Engine::written`]). It is noted at the first start,
//! after the recovery and before a client can connect: until then, only the engine has written.

use std::path::Path;

use calve_core::CancelToken;

use super::data::{Donor, Service, find, take_turn, write};
use crate::engine::Engine;
use crate::engine::address::Address;
use crate::error::{Error, Result};
use crate::files::private;
use crate::registry::template::{self, DatabaseTemplate};
use crate::registry::{DATA, Home};
use crate::server::messages::{Answer, Request};

/// The position at the first start. Exists before a client can connect. Empty if the engine has none.
const STARTED: &str = "started";

impl Donor {
    /// Returns the donor of a clone about to be made: this service, or its own donor if it has nothing of its own.
    pub(super) fn find(home: &Home, service: &Service) -> Option<Self> {
        // Its server may be ending.
        let (may_have_more, written) = changes(home, service).unwrap_or((true, None));
        if !may_have_more {
            return service.donor.clone();
        }
        Some(Self { name: service.name.clone(), made_unix_s: service.made_unix_s, written })
    }

    /// Merges the answers of [`Donor::find`] before and after a clone. Writes made meanwhile may be in the clone.
    pub(super) fn merge(before: Option<Self>, after: Option<Self>) -> Option<Self> {
        if before == after { before } else { after.or(before).map(|donor| Self { written: None, ..donor }) }
    }

    /// Returns whether the donor is known to still have all that was cloned from it.
    fn has_all(&self, home: &Home) -> bool {
        let service = find(home, &self.name).ok().filter(|service| service.made_unix_s == self.made_unix_s);
        let now = service.and_then(|service| position(home, &service).ok().flatten());
        now.is_some() && now == self.written
    }
}

/// Returns whether the data may have contents that neither its template nor its donor has.
pub fn is_written(home: &Home, service: &Service) -> Result<bool> {
    let changes = changes(home, service);
    // Another process may have removed it meanwhile.
    find(home, &service.name)?;
    let lacks = service.donor.as_ref().is_some_and(|donor| !donor.has_all(home));
    // A replaced or removed template no longer has the data of a worktree.
    let is_there = || template::load(home, &service.template).is_ok_and(|template| service.is_of(&template));
    Ok(lacks || (service.is_promoted && !is_there()) || changes?.0)
}

/// Returns whether the data may have changed since it was cloned, and if so its position, if known.
fn changes(home: &Home, service: &Service) -> Result<(bool, Option<String>)> {
    if !was_started(&service.slot) {
        return Ok((false, None));
    }
    // An unreadable note counts as a change.
    let noted: Option<String> = private::read_json(&service.slot.join(STARTED)).ok().flatten().flatten();
    let now = position(home, service)?;
    Ok((now.is_none() || now != noted, now))
}

/// Returns the position now. `None`: unknown, as after a crash until a recovery, or with an unreadable server record.
pub(crate) fn position(home: &Home, service: &Service) -> Result<Option<String>> {
    // Only its supervisor knows that this server, and no other, answers.
    match service.ask(home, Request::Written, &CancelToken::default()) {
        Ok(None) => Ok(service.engine()?.written(&service.data_directory(), None)),
        Ok(Some(Answer::Written(written))) => Ok(written),
        Ok(_) | Err(Error::RecordDamaged(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns whether a client may have written to the data of this slot.
pub(crate) fn was_started(slot: &Path) -> bool {
    slot.join(STARTED).try_exists().unwrap_or(true)
}

/// Begins to count writes, and notes the position of data before clients first see it.
pub(crate) fn note_start(slot: &Path, engine: &dyn Engine, server: &Address) -> Result<()> {
    let data = slot.join(DATA);
    engine.begin_count(&data, server)?;
    if was_started(slot) { Ok(()) } else { note(slot, engine.written(&data, Some(server)).as_deref()) }
}

/// Notes that `template` has everything up to this position. `None`: it lacks something.
pub(crate) fn set_promoted(home: &Home, name: &str, template: &DatabaseTemplate, position: Option<&str>) -> Result<()> {
    let (_turn, service) = take_turn(home, name, &CancelToken::default())?;
    let slot = service.slot.clone();
    if was_started(&slot) {
        note(&slot, position)?;
    }
    let template_identity = template.identity();
    write(&slot, Service { donor: None, template_identity, is_promoted: true, ..service })
}

fn note(slot: &Path, position: Option<&str>) -> Result<()> {
    // Commits survive a power failure, so the note that clients may have made some must too.
    private::write_json_to_disk(&slot.join(STARTED), &position)
}
