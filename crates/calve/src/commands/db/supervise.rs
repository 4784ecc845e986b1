//! The hidden command that looks after one server.

use calve_core::Cancel;

use crate::failure::Failure;
use crate::sys;

pub(crate) fn run(cancel: &Cancel) -> Result<(), Failure> {
    Ok(sys::supervise(cancel)?)
}
