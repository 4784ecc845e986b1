//! Windows.

use std::ffi::c_int;
use std::path::Path;

use calve_core::{Background, CancelToken, Error, Offer, ReapReport, SpareUse, Strategy};
use signal_hook::consts::{SIGINT, SIGTERM};

/// The signals that ask to stop: Ctrl-C, and what the C library calls termination.
pub(crate) const STOPPING: [c_int; 2] = [SIGINT, SIGTERM];

/// Strategies of other systems only, which nobody here needs to hear about.
pub(crate) const FOREIGN: &[Strategy] = &[Strategy::Snapshot, Strategy::Clonefile];

/// Starts a reaper for the directory `parent`. Should it not start, the next `calve` in that directory tries again.
pub(crate) fn start_reaper(program: &Path, parent: &Path) {
    let _ = calve_core::start_reaper(program, parent);
}

/// Returns `None`: there are no spares on Windows.
pub(crate) fn spares() -> Option<SpareUse> {
    None
}

/// Returns `None`: there are no spares on Windows.
pub(crate) fn spare_offer(_src: &Path, _dst: &Path) -> Option<Offer> {
    None
}

/// Returns `false`: there are no volumes on Windows.
pub(crate) fn can_have_volumes() -> bool {
    false
}

/// Does nothing: there are no spares on Windows.
pub(crate) fn start_refill() {}

/// Runs the reaper itself.
pub(crate) fn reap(parent: &Path) -> Result<ReapReport, Error> {
    calve_core::reap(parent, Background::Yes, &CancelToken::default())
}
