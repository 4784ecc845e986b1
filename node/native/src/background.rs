//! Background processes. Node itself would first copy the process's whole memory map, while the event loop waits.

use std::process::Child;
use std::sync::{Mutex, PoisonError};

use napi::bindgen_prelude::BufferSlice;
use napi_derive::napi;

use crate::{invalid, path};

/// Children not yet seen to end. Without a wait, a child keeps its entry in the table of processes.
static STARTED: Mutex<Vec<Child>> = Mutex::new(Vec::new());

fn keep(child: std::io::Result<Child>) -> napi::Result<()> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner).push(child.map_err(invalid)?);
    Ok(())
}

/// Starts a process that deletes the trash of the directory `parent`.
#[napi]
pub fn start_reaper(program: BufferSlice, parent: BufferSlice) -> napi::Result<()> {
    keep(calve_core::internal::start_reaper(&path(&program), &path(&parent)))
}

/// Starts a process that builds the spares that are missing.
#[napi]
pub fn start_refill(program: BufferSlice) -> napi::Result<()> {
    keep(calve_core::internal::start_background(&path(&program), &["__refill"]))
}

/// Takes those that have ended out of the table of processes. Says whether some have not.
#[napi]
pub fn collect() -> bool {
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    started.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    !started.is_empty()
}
