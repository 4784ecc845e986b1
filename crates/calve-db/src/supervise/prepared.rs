//! The server that the next reset takes: started ahead of time, on another clone, beside the one that runs.
//!
//! Its files and its runtime directory are directories of their own in those of the first server. A reset exchanges the two directories of
//! sockets, so that the path which clients know leads to the prepared server, and ends the old one.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Instant;

use calve_core::{CancelToken, RemovalWait};

use super::{Supervisor, WARM_IN};
use crate::error::{Error, Result};
use crate::files::directory::Directory;
use crate::files::private::{self, CLOSED};
use crate::files::trash;
use crate::launch::{LaunchRequest, RunningServer, launch};
use crate::messages::Origin;
use crate::operation::Operation;
use crate::runtime;
use crate::standby;

/// The server prepared for the next reset, and the origin to prepare one from.
#[derive(Default)]
pub(super) struct Preparations {
    wanted: Option<Origin>,
    next: Option<NextServer>,
    /// How many there were: the names of their directories.
    count: u32,
}

struct NextServer {
    server: PreparedServer,
    origin: Origin,
    /// The template's state when it was cloned.
    identity: String,
    since: Instant,
}

/// A server with its directories, which go with it.
pub(super) struct PreparedServer {
    /// `None` once another one has its place.
    launched: Option<RunningServer>,
    files: PathBuf,
    directory: PathBuf,
    /// Whether the directories are those of the first server, which hold all others.
    is_first: bool,
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
        let gone = match self.is_first {
            true => [self.files.join("data"), self.files.join("tmp")],
            false => [self.files.clone(), self.directory.clone()],
        };
        for path in gone {
            let _ = trash::remove(&path, RemovalWait::No);
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

    /// Ends what is prepared for a reset to `origin`.
    pub(super) fn forget_for(&mut self, origin: &Origin) {
        self.wanted.take_if(|wanted| wanted == origin);
        self.next.take_if(|next| next.origin == *origin);
    }

    /// Ends what is prepared.
    pub(super) fn forget(&mut self) {
        (self.wanted, self.next) = (None, None);
    }

    fn new_name(&mut self) -> String {
        self.count += 1;
        self.count.to_string()
    }
}

impl Supervisor<'_> {
    /// Prepares a server for the next reset if there is a pool and a clone takes up no space. Ends it when it was idle too long.
    pub(super) fn prepare_next(&mut self, talk: &UnixStream) {
        let Some(pool) = self.spec.pool.as_deref().and_then(standby::settings) else {
            return self.prepared.forget();
        };
        match (&self.prepared.next, &self.prepared.wanted) {
            (Some(next), _) if pool.idle.is_some_and(|idle| next.since.elapsed() > idle) => self.prepared.forget(),
            (None, Some(origin)) => {
                let origin = origin.clone();
                let is_possible = self.record.can_prepare() && standby::has_room(self.engine, &self.files.join("data"));
                if is_possible {
                    self.prepared.next = self.prepare(origin, talk).ok();
                    let _ = self.write_record();
                }
                // If that fails, the next reset works without it.
                self.prepared.wanted = None;
            }
            _ => {}
        }
    }

    fn prepare(&mut self, origin: Origin, talk: &UnixStream) -> Result<NextServer> {
        let name = self.prepared.new_name();
        let (files, directory) = (self.spec.place.join(&name), self.spec.directory.join(&name));
        private::make_in(&Directory::open(&self.spec.place)?, &name, CLOSED)?;
        let made = runtime::make(&directory, self.spec.account).and_then(|()| {
            let identity = origin.template_identity();
            let address = self.engine.address(&directory, None, None);
            // The token is its own: that the owner has gone is no failure of this.
            let cancel = CancelToken::default();
            let launched = launch(&LaunchRequest {
                origin: &origin,
                files: &files,
                directory: &directory,
                is_ahead: true,
                owners: self.owners(talk),
                ..LaunchRequest::new(self.spec, self.engine, &address, true, &cancel)
            })?;
            self.engine.warm(&address, WARM_IN);
            Ok((identity, launched))
        });
        match made {
            Ok((identity, launched)) => {
                let server = PreparedServer { launched: Some(launched), files, directory, is_first: false };
                Ok(NextServer { server, origin, identity, since: Instant::now() })
            }
            Err(error) => {
                for path in [&files, &directory] {
                    let _ = trash::remove(path, RemovalWait::No);
                }
                Err(error)
            }
        }
    }

    /// Puts the prepared server in the place of the one that runs, which is returned and ends. `None` if none is prepared from `origin` as
    /// it is now.
    pub(super) fn swap(&mut self, origin: &Origin) -> Option<PreparedServer> {
        let mut next = self.prepared.next.take_if(|next| next.origin == *origin)?;
        let mut launched = next.server.launched.take()?;
        let is_current = !next.identity.is_empty() && next.identity == origin.template_identity();
        if !is_current
            || launched.server.ended().is_some()
            || exchange(&self.spec.directory, &next.server.directory).is_err()
        {
            next.server.launched = Some(launched);
            return None;
        }
        std::mem::swap(&mut self.launched, &mut launched);
        launched.server.kill();
        let mut old = next.server;
        std::mem::swap(&mut self.files, &mut old.files);
        std::mem::swap(&mut self.directory, &mut old.directory);
        old.launched = Some(launched);
        old.is_first = old.files == self.spec.place;
        // The old server's, since the exchange.
        let _ = trash::remove(&runtime::sockets(&self.directory), RemovalWait::No);
        self.origin = next.origin;
        self.record.template_identity = next.identity;
        self.record.standby = true;
        // The record is for others; the server is as it should be in any case.
        let _ = self.write_record();
        Some(old)
    }

    /// Goes back to the first directories, which a server prepared ahead had left.
    pub(super) fn move_back(&mut self) -> Result<()> {
        if self.directory != self.spec.directory {
            trash::remove(&self.directory, RemovalWait::No)?;
            trash::remove(&self.files, RemovalWait::No)?;
            self.directory.clone_from(&self.spec.directory);
            self.files.clone_from(&self.spec.place);
        }
        Ok(())
    }
}

/// Exchanges the directories of sockets of two runtime directories.
fn exchange(directory: &Path, other: &Path) -> Result<()> {
    let (ours, theirs) = (runtime::sockets(directory), runtime::sockets(other));
    crate::sys::exchange(&ours, &theirs).map_err(|errno| Error::io(Operation::Rename, &theirs, errno))
}
