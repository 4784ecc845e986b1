//! The server for the next reset, started ahead of time on another clone beside the running one.
//!
//! Its files and runtime directory are inside those of the first server. A reset exchanges the two directories of
//! sockets, so that the path which clients know leads to the prepared server, and ends the old one.

use std::path::PathBuf;
use std::time::Instant;

use calve_core::{CancelToken, RemovalWait};

use super::directories::{PreparedServer, ServerDirectories};
use super::{Supervisor, WARM_IN};
use crate::error::Result;
use crate::files::directory::Directory;
use crate::files::private;
use crate::files::runtime;
use crate::files::trash;
use crate::server::launch::{LaunchRequest, launch};
use crate::server::messages::Origin;
use crate::server::standby;
use crate::sys;

impl<'a> Supervisor<'a> {
    /// Prepares a server for the next reset, if there is a pool and clones take no space. Ends it after long idleness.
    pub(super) fn prepare_next(&mut self) {
        let own = self.own.spec().ok();
        let pool = own.and_then(|spec| standby::settings(spec.pool.as_deref()?).ok().flatten());
        let Some(pool) = pool else { return self.prepared.forget() };
        match (&self.prepared.next, &self.prepared.wanted) {
            (Some(next), _) if pool.idle.is_some_and(|idle| next.since.elapsed() > idle) => self.prepared.forget(),
            (None, Some(origin)) => {
                let origin = origin.clone();
                let has_room = |data: PathBuf| standby::has_room(self.engine, &data);
                if self.record.can_prepare() && self.directories.data().is_ok_and(has_room) {
                    self.prepared.next = self.prepare(origin).ok();
                    let _ = self.write_record();
                }
                // If that fails, the next reset works without it.
                self.prepared.wanted = None;
            }
            _ => {}
        }
    }

    fn prepare(&mut self, origin: Origin) -> Result<PreparedServer<'a>> {
        let spec = self.own.spec()?;
        self.prepared.count += 1;
        let name = self.prepared.count.to_string();
        let directories = ServerDirectories::prepared(self.own, &self.record.directory, &name);
        let files = directories.files()?;
        private::make_in(&Directory::open(&spec.slot)?, &name)?;
        let made = runtime::make(&directories.runtime, spec.program.account).and_then(|()| {
            let identity = origin.template_identity();
            let address = self.engine.address(&directories.runtime, None, None);
            // Its own token: an owner's end cancels only this launch.
            let cancel = CancelToken::default();
            let launched = launch(&LaunchRequest {
                origin: &origin,
                files: &files,
                directory: &directories.runtime,
                is_speculative: true,
                owners: self.owners(),
                ..LaunchRequest::new(spec, self.engine, &address, &cancel)
            })?;
            self.engine.warm(&address, WARM_IN);
            Ok((identity, launched))
        });
        let (identity, launched) = made.inspect_err(|_| {
            let _ = directories.remove();
        })?;
        Ok(PreparedServer { launched, directories, origin, identity, since: Instant::now() })
    }

    /// Swaps in the prepared server, and returns the old one, which ends. `None`: none fits `origin` now.
    pub(super) fn swap(&mut self, origin: &Origin) -> Option<PreparedServer<'a>> {
        let mut next = self.prepared.next.take_if(|next| next.origin == *origin)?;
        let is_current = !next.identity.is_empty() && next.identity == origin.template_identity();
        let known = runtime::sockets(&self.record.directory);
        let other = runtime::sockets(&next.directories.runtime);
        if !is_current || next.launched.server.ended().is_some() || sys::exchange(&known, &other).is_err() {
            return None;
        }
        std::mem::swap(&mut self.launched, &mut next.launched);
        next.launched.server.kill();
        std::mem::swap(&mut self.directories, &mut next.directories);
        // The old server's, since the exchange.
        let _ = trash::remove(&runtime::sockets(&self.directories.runtime), RemovalWait::No);
        self.origin.clone_from(origin);
        self.record.template_identity.clone_from(&next.identity);
        self.record.server.standby = true;
        // Only the record is outdated after a failure: the server is as it should be.
        let _ = self.write_record();
        Some(next)
    }
}
