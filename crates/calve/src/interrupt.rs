//! Ctrl-C and its kin: the first asks to stop and clean up, the second ends the process where it is.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use calve_core::Cancel;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::INTERRUPTED;

/// The switch that those signals throw.
pub(crate) fn listen() -> io::Result<Cancel> {
    let thrown = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order: the first signal finds the switch off, and only throws it.
        flag::register_conditional_shutdown(signal, i32::from(INTERRUPTED), Arc::clone(&thrown))?;
        flag::register(signal, Arc::clone(&thrown))?;
    }
    Ok(Cancel::from_flag(thrown))
}
