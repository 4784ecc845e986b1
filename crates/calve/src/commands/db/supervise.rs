//! The hidden command that looks after one server.

use calve_core::CancelToken;

use crate::failure::Failure;
use crate::sys;

pub(crate) fn run(cancel: &CancelToken) -> Result<(), Failure> {
    Ok(sys::supervise(cancel)?)
}
