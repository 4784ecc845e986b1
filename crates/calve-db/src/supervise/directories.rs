//! The directories of servers, and the servers in those that are prepared for a reset.
//!
//! A supervisor finds its own by the path of its home, which may be moved while it runs. Another home in its place is not its own.

use std::path::{Path, PathBuf};
use std::time::Instant;

use calve_core::RemovalWait;
use calve_core::internal::ShownPath;

use crate::error::{Error, Remedy, Result};
use crate::files::directory::Directory;
use crate::files::trash;
use crate::registry;
use crate::server::launch::RunningServer;
use crate::server::messages::{Origin, Spec};

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

/// The server prepared for the next reset, and the origin to prepare one from.
#[derive(Default)]
pub(super) struct Preparations<'a> {
    pub(super) wanted: Option<Origin>,
    pub(super) next: Option<PreparedServer<'a>>,
    /// How many there were: the names of their directories.
    pub(super) count: u32,
}

/// The directory of a server's files and its runtime directory, which change together: those of the first server hold all others.
pub(super) struct ServerDirectories<'a> {
    own: OwnSlot<'a>,
    /// Their name, if they are those of a server that was prepared.
    prepared: Option<String>,
    pub(super) runtime: PathBuf,
}

impl<'a> ServerDirectories<'a> {
    pub(super) fn first(own: OwnSlot<'a>, runtime: &Path) -> Self {
        Self { own, prepared: None, runtime: runtime.to_path_buf() }
    }

    /// Returns those of a server that is prepared, in the first ones.
    pub(super) fn prepared(own: OwnSlot<'a>, first: &Path, name: &str) -> Self {
        Self { own, prepared: Some(name.to_owned()), runtime: first.join(name) }
    }

    pub(super) fn is_first(&self) -> bool {
        self.prepared.is_none()
    }

    pub(super) fn files(&self) -> Result<PathBuf> {
        let spec = self.own.spec()?;
        Ok(self.prepared.as_ref().map_or_else(|| spec.files().to_path_buf(), |name| spec.slot.join(name)))
    }

    pub(super) fn data(&self) -> Result<PathBuf> {
        Ok(self.files()?.join("data"))
    }

    pub(super) fn remove(&self) -> Result<()> {
        let runtime = trash::remove(&self.runtime, RemovalWait::No);
        self.files().and_then(|files| trash::remove(&files, RemovalWait::No)).and(runtime)
    }
}

/// A server with its directories, which go with it.
pub(super) struct PreparedServer<'a> {
    pub(super) launched: RunningServer,
    pub(super) directories: ServerDirectories<'a>,
    pub(super) origin: Origin,
    /// The template's state when it was cloned.
    pub(super) identity: String,
    pub(super) since: Instant,
}

impl Drop for PreparedServer<'_> {
    fn drop(&mut self) {
        let launched = &mut self.launched;
        launched.server.kill();
        let _ = launched.server.wait();
        launched.seen.hide();
        if let Some(overlay) = launched.overlay.take() {
            let _ = overlay.unmount();
        }
        if !self.directories.is_first() {
            let _ = self.directories.remove();
        } else if let Ok(files) = self.directories.files() {
            for name in ["data", "tmp"] {
                let _ = trash::remove(&files.join(name), RemovalWait::No);
            }
        }
    }
}

impl Preparations<'_> {
    pub(super) fn forget(&mut self) {
        (self.wanted, self.next) = (None, None);
    }
}
