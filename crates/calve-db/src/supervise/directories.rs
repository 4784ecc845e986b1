//! The directories of servers, and servers prepared for a reset in such directories. A supervisor finds its own by its
//! home's path. The home may be moved while it runs, and another may take its place.

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

pub(super) fn moved(slot: &Path) -> Error {
    let text = format!("the server was started in `{}`, which was moved since", ShownPath(slot));
    Error::failed(text, Remedy::MoveHomeBack)
}

/// A slot and its specification, with every path of the home. The open directory identifies the slot: the path may lead
/// to another one, and the server may replace every file in it.
#[derive(Clone, Copy)]
pub(super) struct OwnSlot<'a> {
    spec: &'a Spec,
    directory: &'a Directory,
}

impl<'a> OwnSlot<'a> {
    pub(super) fn new(spec: &'a Spec, directory: &'a Directory) -> Self {
        Self { spec, directory }
    }

    /// Fails if the home was moved since.
    pub(super) fn spec(self) -> Result<&'a Spec> {
        match self.is_there() {
            Some(true) => Ok(self.spec),
            _ => Err(moved(&self.spec.slot)),
        }
    }

    /// Returns whether the path leads to the slot. `None`: to nothing, or unknown.
    fn is_there(self) -> Option<bool> {
        let (own, there) = (rustix::fs::fstat(self.directory).ok()?, rustix::fs::lstat(&self.spec.slot).ok()?);
        Some((own.st_dev, own.st_ino) == (there.st_dev, there.st_ino))
    }

    /// Returns whether another home's slot took its place. An engine would take those files for its own.
    pub(super) fn is_replaced(self) -> bool {
        self.is_there() == Some(false) && self.spec.slot.join(registry::LOCK).exists()
    }
}

/// The server prepared for the next reset, and the origin to prepare one from.
#[derive(Default)]
pub(super) struct Preparations<'a> {
    pub(super) wanted: Option<Origin>,
    pub(super) next: Option<PreparedServer<'a>>,
    /// The number of servers prepared so far, which names their directories.
    pub(super) count: u32,
}

/// A server's files and runtime directory, which change together. The first server's directories hold all others.
pub(super) struct ServerDirectories<'a> {
    own: OwnSlot<'a>,
    /// Their name, if the server was prepared.
    prepared: Option<String>,
    pub(super) runtime: PathBuf,
}

impl<'a> ServerDirectories<'a> {
    pub(super) fn first(own: OwnSlot<'a>, runtime: &Path) -> Self {
        Self { own, prepared: None, runtime: runtime.to_path_buf() }
    }

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
        Ok(self.files()?.join(registry::DATA))
    }

    pub(super) fn remove(&self) -> Result<()> {
        let runtime = trash::remove(&self.runtime, RemovalWait::No);
        self.files().and_then(|files| trash::remove(&files, RemovalWait::No)).and(runtime)
    }
}

/// A prepared server. Its directories go with it.
pub(super) struct PreparedServer<'a> {
    pub(super) launched: RunningServer,
    pub(super) directories: ServerDirectories<'a>,
    pub(super) origin: Origin,
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
            for name in [registry::DATA, "tmp"] {
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
