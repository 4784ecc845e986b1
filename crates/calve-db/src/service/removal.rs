//! Removes a service with its worktree: its server ends and it is marked, then the worktree goes, then the data.

use std::fs::File;

use calve_core::{CancelToken, RemovalWait};
use fs_err as fs;
use rustix::fs::FlockOperation;

use super::data::{REMOVING, Service, TURN, find, services, take_turn};
use super::{LossRule, run};
use crate::error::{AtPath as _, Result};
use crate::files::{private, trash};
use crate::registry::{self, Home};

/// A service without a server, which no other process can start, clone or remove.
#[derive(Debug)]
pub struct PendingRemoval {
    service: Service,
    _turn: File,
}

/// Ends the server of a service that is to be removed with its worktree. `written`: the fate of changed data.
pub fn begin_removal(home: &Home, name: &str, written: LossRule) -> Result<PendingRemoval> {
    let cancel = CancelToken::default();
    let (turn, service) = take_turn(home, name, &cancel)?;
    run::end(home, &service, written, &cancel)?;
    let _held = run::take_data(home, &service, &cancel)?;
    run::check_written(home, &service, written)?;
    private::open(&service.slot.join(REMOVING))?;
    Ok(PendingRemoval { service, _turn: turn })
}

impl PendingRemoval {
    /// Moves the data out of sight. The trash of the next [`crate::sweep`] includes it.
    pub fn commit(self, home: &Home) -> Result<()> {
        registry::forget_ending(home, &self.service.name);
        trash::remove(&self.service.slot, RemovalWait::No)
    }

    pub fn cancel(self) -> Result<()> {
        let path = self.service.slot.join(REMOVING);
        fs::remove_file(&path).at("remove", &path)
    }
}

/// Finishes killed removals. `is_gone`: the worktree is gone. Otherwise the data stays.
pub fn finish_removals(home: &Home, is_gone: &dyn Fn(&Service) -> bool) -> Result<()> {
    for service in services(home)?.into_iter().filter(|service| service.slot.join(REMOVING).exists()) {
        let turn = private::open(&service.slot.join(TURN))?;
        let is_free = rustix::fs::flock(&turn, FlockOperation::NonBlockingLockExclusive).is_ok();
        // Another process is removing it.
        if !is_free || find(home, &service.name).is_err() {
            continue;
        }
        let is_gone = is_gone(&service);
        let removal = PendingRemoval { service, _turn: turn };
        if is_gone { removal.commit(home) } else { removal.cancel() }?;
    }
    Ok(())
}
