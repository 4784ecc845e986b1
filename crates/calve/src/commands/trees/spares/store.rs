//! Where spares are noted.

use std::path::PathBuf;

use calve_core::options::SpareUse;
use calve_core::spares::Spares;

use crate::failure::{FAILED, Failure};
use crate::home;

pub(super) fn state() -> Result<PathBuf, Failure> {
    home::directory().map_err(|why| {
        let hint = "set CALVE_HOME to the directory in which Calve may keep its state";
        Failure::stated(FAILED, format!("there is no place for spares: {why}"), hint)
    })
}

pub(crate) fn store() -> Result<Spares, Failure> {
    let home = state()?;
    home::make(&home)?;
    Ok(Spares::at(SpareUse::in_home(&home).home))
}
