//! The data of a service, put back to what its template has.

use calve_core::{CancelToken, RemovalWait};
use fs_err as fs;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::create::{StagedData, from_template};
use super::{DOCUMENT, Service, TURN, UnsavedDataRule, find, run, take_turn};
use crate::error::{Error, Result};
use crate::files::{private, trash};
use crate::operation::Operation;
use crate::registry::{Home, unix_now};

/// Replaces the data by a new clone of its template. A server that runs ends first, and none is started. Its URL stays the same.
pub fn reset(home: &Home, name: &str, cancel: &CancelToken) -> Result<Service> {
    home.prepare()?;
    let staged = StagedData::make(home, name)?;
    let (_turn, former) = take_turn(home, name)?;
    let cloned = from_template(home, &former.template, &staged.place, cancel)?;
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
    run::end(home, &former, UnsavedDataRule::Lose)?;
    // Until the former data is out of the way, so that nobody takes it for what a killed run left.
    let _held = run::take_data(home, &former)?;
    match renameat_with(CWD, &staged.place, CWD, &former.place, RenameFlags::EXCHANGE) {
        // There are file systems that cannot do that. Whoever comes between finds no data, and clones it from the template.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            trash::remove(&former.place, RemovalWait::No)?;
            fs::rename(&staged.place, &former.place)
                .map_err(|error| Error::io(Operation::Rename, &staged.place, error))?;
        }
        exchanged => exchanged.map_err(|errno| Error::io(Operation::Rename, &staged.place, errno))?,
    }
    // It takes away what is under its hidden name now: the former data.
    drop(staged);
    find(home, name)
}
