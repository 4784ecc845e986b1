//! Resets a server to its template or a mark, by the first way that works: a prepared server, a revert, a full clone.

use std::os::unix::net::UnixStream;
use std::time::Instant;

use calve_core::{Choice, CloneOptions, RemovalWait, Strategy};

use super::directories::ServerDirectories;
use super::{End, PresentData, Supervisor};
use crate::error::{EndReason, Error, Remedy, Result};
use crate::files::trash;
use crate::registry::{DATA, LaunchReport, template};
use crate::server::launch::data::milliseconds_since;
use crate::server::launch::{ResetData, unless_left};
use crate::server::messages::{Answer, Origin, send};

impl Supervisor<'_> {
    pub(super) fn put_back(&mut self, to: Option<&str>, from: &mut UnixStream) -> Result<Option<End>> {
        let origin = self.origin_named(to)?;
        let old = self.swap(&origin);
        if old.is_none() {
            // Gives up nothing of the server for a template that it could not start from.
            let _held = self.hold(&origin)?;
            match self.reset(&origin) {
                Ok(()) => {}
                Err(error) if self.cancel.is_cancelled() => {
                    let _ = send(from, &Answer::failed(error));
                    return Ok(Some(End::Unasked(EndReason::OwnerEnded)));
                }
                Err(error) => return Err(self.go_down(&self.with_log(error), PresentData::Gone)),
            }
        }
        let _ = send(from, &Answer::Ready(Box::new(self.record.clone())));
        drop(old);
        self.prepared.wanted = Some(origin);
        Ok(None)
    }

    /// Locks a template or mark. Fails unless it is undamaged, and of the server's version.
    fn hold(&self, origin: &Origin) -> Result<std::fs::File> {
        match origin {
            Origin::Template(template) => template::hold(template, self.engine, &self.own.spec()?.program.version),
            _ => Err(Error::failed("a server without a template cannot be reset", Remedy::StartNewServer)),
        }
    }

    fn reset(&mut self, origin: &Origin) -> Result<()> {
        let identity = origin.template_identity();
        self.prepared.forget();
        self.kill();
        self.launched.seen.hide();
        let data = match self.revert(origin, &identity) {
            Some(reverted) => reverted,
            None => {
                self.take_files_away()?;
                // Back to the first directories, which a prepared server had left.
                if !self.directories.is_first() {
                    self.directories.remove()?;
                    self.directories = ServerDirectories::first(self.own, &self.record.directory);
                }
                ResetData::ToClone
            }
        };
        self.record.template_identity = identity;
        self.launched = self.launch(origin, &data)?;
        self.origin = origin.clone();
        self.down = None;
        self.record.server.standby = false;
        self.write_record()
    }

    /// Reverts changes to the data since the last reset to `origin`. `None`: unknown or failed, so it is cloned anew.
    fn revert(&mut self, origin: &Origin, identity: &str) -> Option<ResetData> {
        let state = self.launched.state.take()?;
        let Origin::Template(template) = origin else { return None };
        if self.origin != *origin || identity.is_empty() || self.record.template_identity != identity {
            return None;
        }
        let started = Instant::now();
        let strategy = Choice::Only(self.launched.report.strategy?);
        let options = CloneOptions { strategy, cancel: self.cancel.clone(), ..CloneOptions::default() };
        let data = self.directories.data().ok()?;
        let work = || calve_core::internal::revert(&data, &template.join(DATA), &state, &options);
        let reverted = unless_left(&self.owners(), self.cancel, work).ok()??;
        // The template may have been rebuilt meanwhile.
        if origin.template_identity() != identity {
            return None;
        }
        let took = milliseconds_since(started);
        let report = LaunchReport { clone_ms: Some(took), ready_ms: took, ..self.launched.report.clone() };
        Some(ResetData::Reverted(report, reverted))
    }

    /// Removes the present data. Clones are deleted once the server answers again, copies at once, for their room.
    fn take_files_away(&mut self) -> Result<()> {
        if let Some(overlay) = self.launched.overlay.take() {
            return Ok(overlay.unmount()?);
        }
        trash::remove(&self.directories.data()?, RemovalWait::No)?;
        if self.record.server.launch.strategy.is_some_and(Strategy::needs_room) {
            let _ = trash::reap(&self.directories.files()?);
        }
        Ok(())
    }
}
