//! The way from a supervisor to its home, which may be moved while it runs. Another home in its place is not its own.

use std::path::Path;

use calve_core::internal::ShownPath;

use crate::error::{Error, Remedy, Result};
use crate::files::directory::Directory;
use crate::registry;
use crate::server::messages::Spec;

/// Returns the error for a supervisor whose home is elsewhere: it knows its files by their paths.
pub(super) fn moved(slot: &Path) -> Error {
    let text = format!("the server was started in `{}`, which was moved since", ShownPath(slot));
    Error::failed(text, Remedy::MoveHomeBack)
}

/// A slot with its specification, which has every path of the home. The open directory tells which slot it is: the path may lead to another
/// one, and the server may replace every file in it.
#[derive(Clone, Copy)]
pub(super) struct OwnSlot<'a> {
    spec: &'a Spec,
    directory: &'a Directory,
}

impl<'a> OwnSlot<'a> {
    pub(super) fn new(spec: &'a Spec, directory: &'a Directory) -> Self {
        Self { spec, directory }
    }

    /// Returns the specification. Fails if the home was moved since.
    pub(super) fn spec(self) -> Result<&'a Spec> {
        match self.is_there() {
            Some(true) => Ok(self.spec),
            _ => Err(moved(&self.spec.slot)),
        }
    }

    /// Returns whether what is at the path is the slot; `None` if nothing is, or it cannot be told.
    fn is_there(self) -> Option<bool> {
        let (own, there) = (rustix::fs::fstat(self.directory).ok()?, rustix::fs::lstat(&self.spec.slot).ok()?);
        Some((own.st_dev, own.st_ino) == (there.st_dev, there.st_ino))
    }

    /// Returns whether another home has a slot in its place, whose files an engine would take for its own.
    pub(super) fn is_replaced(self) -> bool {
        self.is_there() == Some(false) && self.spec.slot.join(registry::LOCK).exists()
    }
}
