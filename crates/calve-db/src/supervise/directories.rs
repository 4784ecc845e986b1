//! The directories of servers, and the servers in those that are prepared for a reset.

use std::path::PathBuf;
use std::time::Instant;

use calve_core::RemovalWait;

use crate::error::Result;
use crate::files::trash;
use crate::server::launch::RunningServer;
use crate::server::messages::{Origin, Spec};

/// The server prepared for the next reset, and the origin to prepare one from.
#[derive(Default)]
pub(super) struct Preparations {
    pub(super) wanted: Option<Origin>,
    pub(super) next: Option<NextServer>,
    /// How many there were: the names of their directories.
    count: u32,
}

pub(super) struct NextServer {
    pub(super) server: PreparedServer,
    pub(super) origin: Origin,
    /// The template's state when it was cloned.
    pub(super) identity: String,
    pub(super) since: Instant,
}

/// The directory of a server's files and its runtime directory, which change together: those of the first server hold all others.
#[derive(PartialEq, Eq)]
pub(super) struct ServerDirectories {
    pub(super) files: PathBuf,
    pub(super) runtime: PathBuf,
}

impl ServerDirectories {
    pub(super) fn first(spec: &Spec) -> Self {
        Self { files: spec.files().to_path_buf(), runtime: spec.record.directory.clone() }
    }

    /// Returns those of a server that is prepared, which have this name.
    pub(super) fn prepared(spec: &Spec, name: &str) -> Self {
        Self { files: spec.slot.join(name), runtime: spec.record.directory.join(name) }
    }

    pub(super) fn data(&self) -> PathBuf {
        self.files.join("data")
    }

    pub(super) fn remove(&self) -> Result<()> {
        let removed = [&self.runtime, &self.files].map(|path| trash::remove(path, RemovalWait::No));
        removed.into_iter().collect()
    }
}

/// A server with its directories, which go with it.
pub(super) struct PreparedServer {
    /// `None` once another one has its place.
    pub(super) launched: Option<RunningServer>,
    pub(super) directories: ServerDirectories,
    /// The directories are those of the first server.
    pub(super) is_first: bool,
}

impl Drop for PreparedServer {
    fn drop(&mut self) {
        let Some(mut launched) = self.launched.take() else { return };
        launched.server.kill();
        let _ = launched.server.wait();
        launched.seen.hide();
        if let Some(overlay) = launched.placed.as_mut().and_then(|placed| placed.overlay.take()) {
            let _ = overlay.unmount();
        }
        drop(launched);
        if !self.is_first {
            let _ = self.directories.remove();
            return;
        }
        for name in ["data", "tmp"] {
            let _ = trash::remove(&self.directories.files.join(name), RemovalWait::No);
        }
    }
}

impl Preparations {
    /// Expects the next reset to go to `origin` from now on.
    pub(super) fn want(&mut self, origin: Origin) {
        self.wanted = Some(origin);
    }

    pub(super) fn is_ready(&self) -> bool {
        self.next.is_some()
    }

    /// Ends the server that is prepared for a reset to `origin`.
    pub(super) fn forget_for(&mut self, origin: &Origin) {
        self.wanted.take_if(|wanted| wanted == origin);
        self.next.take_if(|next| next.origin == *origin);
    }

    pub(super) fn forget(&mut self) {
        (self.wanted, self.next) = (None, None);
    }

    pub(super) fn new_name(&mut self) -> String {
        self.count += 1;
        self.count.to_string()
    }
}
