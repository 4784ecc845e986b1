//! The way from a supervisor to its home, which may be moved while it runs. Another home in its place is not its own.

use std::fs::File;

use crate::error::{Error, Result};
use crate::registry;
use crate::server::messages::Spec;

/// A slot with its specification, which has every path of the home. The lock, and not the path, tells which slot it is.
#[derive(Clone, Copy)]
pub(super) struct OwnSlot<'a> {
    spec: &'a Spec,
    lock: &'a File,
}

impl<'a> OwnSlot<'a> {
    pub(super) fn new(spec: &'a Spec, lock: &'a File) -> Self {
        Self { spec, lock }
    }

    /// Returns the specification. Fails if the home was moved since.
    pub(super) fn spec(self) -> Result<&'a Spec> {
        match registry::is_lock_of(self.lock, &self.spec.slot) {
            true => Ok(self.spec),
            false => Err(Error::HomeMoved(self.spec.slot.clone())),
        }
    }

    /// Returns whether another home has a slot in its place, whose files an engine would take for its own.
    pub(super) fn is_replaced(self) -> bool {
        self.spec().is_err() && self.spec.slot.join(registry::LOCK).exists()
    }
}
