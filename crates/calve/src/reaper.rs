//! Detached processes that work after `calve` has returned, above all the reaper, which deletes trash.

use std::path::Path;

use calve_core::template::SweptTemplates;

use crate::failure::Failure;
use crate::{output, sys};

/// Starts a reaper for the directory `parent`. Should it not start, the next `calve` in that directory tries again.
pub(crate) fn start(parent: &Path) {
    if let Ok(program) = std::env::current_exe() {
        let _ = calve_core::internal::start_reaper(&program, parent);
    }
}

/// Builds the spares that are missing.
pub(crate) const REFILL: &[&str] = &["__refill"];

/// Watches the sources of spares. Ends at once if another process does.
pub(crate) const WATCH: &[&str] = &["__watch"];

/// Starts a hidden command of this program in the background. Should it not start, the next `calve` tries again.
pub(crate) fn start_background(words: &[&str]) {
    if let Ok(program) = std::env::current_exe() {
        let _ = calve_core::internal::start_background(&program, words);
    }
}

/// Starts to delete what nobody uses any more.
pub(crate) fn clear_away(swept: &SweptTemplates) {
    swept.trash.iter().for_each(|parent| start(parent));
    if let Some(error) = &swept.failure {
        output::warn(&format!("files of a template that is no more could not be removed: {error}"));
    }
}

/// Runs the reaper itself. A signal ends it at any point: the lock is then free, and the next reaper goes on.
pub(crate) fn run() -> Result<(), Failure> {
    sys::reap()?.failure.map_or(Ok(()), |error| Err(error.into()))
}
