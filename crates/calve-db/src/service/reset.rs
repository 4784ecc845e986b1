//! The data of a service, put back to what its template has.

use calve_core::{CancelToken, RemovalWait};

use super::create::{StagedData, from_template};
use super::{DOCUMENT, Service, TURN, UnsavedDataRule, find, run, take_turn};
use crate::error::Result;
use crate::files::{private, trash};
use crate::registry::{Home, unix_now};

/// Replaces the data by a new clone of its template, or of `template`. A server that runs ends first, and none is started. Its URL stays the same.
pub fn reset(home: &Home, name: &str, template: Option<&str>, cancel: &CancelToken) -> Result<Service> {
    home.prepare()?;
    let staged = StagedData::make(home, name)?;
    let (_turn, former) = take_turn(home, name, cancel)?;
    let cloned = from_template(home, template.unwrap_or(&former.template), &staged.place, cancel)?;
    let service = Service {
        name: former.name.clone(),
        service: former.service.clone(),
        keeper_id: former.keeper_id.clone(),
        keeper: former.keeper.clone(),
        runtime: former.runtime.clone(),
        made_unix_s: unix_now(),
        ..cloned
    };
    private::open(&staged.place.join(TURN))?;
    private::write_json(&staged.place.join(DOCUMENT), &service)?;
    run::unless_cancelled(cancel)?;
    // From here on it goes through: a server that has ended without what it could not write is not left with its former data.
    run::end(home, &former, UnsavedDataRule::Lose, &CancelToken::default())?;
    // Until the former data is out of the way, so that nobody takes it for what a killed run left.
    let _held = run::take_data(home, &former, &CancelToken::default())?;
    // Where that is not possible, whoever comes between finds no data, and clones it from the template.
    private::exchange(&staged.place, &former.place, || trash::remove(&former.place, RemovalWait::No))?;
    // It takes away what is under its hidden name now: the former data.
    drop(staged);
    find(home, name)
}
