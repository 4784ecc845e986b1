//! The reaper: a detached process that deletes trash after `calve` has returned.

use std::path::Path;

use crate::cli::ReapArguments;
use crate::failure::Failure;
use crate::sys;

/// Starts a reaper for the directory `parent`.
pub(crate) fn start(parent: &Path) {
    let Ok(program) = std::env::current_exe() else { return };
    sys::start_reaper(&program, parent);
}

/// Runs the reaper itself. A signal ends it at any point: the lock is then free, and the next reaper goes on.
pub(crate) fn run(arguments: &ReapArguments) -> Result<(), Failure> {
    match sys::reap(&arguments.parent)?.failure {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}
