//! The reaper: a detached process that deletes trash after `calve` has returned.

use std::path::Path;

use crate::failure::Failure;
use crate::sys;

/// Starts a reaper for the directory `parent`. Should it not start, the next `calve` in that directory tries again.
pub(crate) fn start(parent: &Path) {
    if let Ok(program) = std::env::current_exe() {
        let _ = calve_core::start_reaper(&program, parent);
    }
}

/// Runs the reaper itself. A signal ends it at any point: the lock is then free, and the next reaper goes on.
pub(crate) fn run() -> Result<(), Failure> {
    sys::reap()?.failure.map_or(Ok(()), |error| Err(error.into()))
}
