//! Detached processes that work on after `calve` has returned, above all the reaper, which deletes trash.

use std::path::Path;

use calve_core::template::SweptTemplates;

use crate::failure::Failure;
use crate::{output, sys};

/// Starts a reaper for the directory `parent`. If it fails to start, the next `calve` in that directory tries again.
pub(crate) fn start(parent: &Path) {
    if let Ok(program) = std::env::current_exe() {
        let _ = calve_core::internal::start_reaper(&program, parent);
    }
}

pub(crate) const REFILL: &[&str] = &["__refill"];

/// Watches the sources of spares. Ends at once if another process already does.
pub(crate) const WATCH: &[&str] = &["__watch"];

/// Starts a hidden command in the background. If it fails to start, the next `calve` tries again.
pub(crate) fn start_background(words: &[&str]) {
    if let Ok(program) = std::env::current_exe() {
        let _ = calve_core::internal::start_background(&program, words);
    }
}

/// Starts deleting trash in the background.
pub(crate) fn clear_away(swept: &SweptTemplates) {
    swept.trash.iter().for_each(|parent| start(parent));
    if let Some(error) = &swept.failure {
        output::warn(&format!("the files of a removed template could not be deleted: {error}"));
    }
}

/// Runs as the reaper. A signal may end it at any point: that frees the lock, and the next reaper continues.
pub(crate) fn run() -> Result<(), Failure> {
    sys::reap()?.failure.map_or(Ok(()), |error| Err(error.into()))
}
