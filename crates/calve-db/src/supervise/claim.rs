//! Hands over standbys, and ends idle ones.

use std::io::BufReader;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use super::{End, Supervisor, failed};
use crate::error::{EndReason, Error, Result};
use crate::registry::unix_now;
use crate::server::messages::{Answer, Claim, send};
use crate::server::standby;

impl Supervisor<'_> {
    pub(super) fn is_idle(&self) -> bool {
        let pool = self.own.spec().ok().and_then(|spec| spec.pool.as_deref());
        self.record.waits && pool.is_none_or(standby::is_idle)
    }

    /// Hands the standby over. A second caller gets `Taken`. If the first one is gone by then, the server ends.
    pub(super) fn claim(&mut self, claim: Claim, mut from: UnixStream) -> Option<End> {
        if !self.record.waits || self.own.spec().is_err() {
            let _ = send(&mut from, &Answer::Taken);
            return None;
        }
        if let Err(error) = self.hand_over(&claim) {
            return failed(&mut from, error);
        }
        if send(&mut from, &Answer::Ready(Box::new(self.record.clone()))).is_err() {
            return Some(End::Unasked(EndReason::OwnerEnded));
        }
        self.talk = Some(BufReader::new(from));
        None
    }

    /// Makes the standby the claimed server. After a failure it waits on.
    fn hand_over(&mut self, claim: &Claim) -> Result<()> {
        let spec = self.own.spec()?;
        let watched = claim.owner.processes()?;
        let mut record = self.record.clone();
        let now = unix_now();
        record.server.started_unix_s = now;
        record.server.expires_unix_s = claim.ttl.map(|ttl| now + ttl.as_secs());
        record.server.owner_pid = claim.owner.first_pid();
        (record.waits, record.server.standby) = (false, true);
        let mut link = None;
        if let Some(name) = claim.name.as_ref().filter(|name| **name != spec.record.server.name) {
            let at = spec.slot.with_file_name(name);
            symlink(&spec.record.server.name, &at).map_err(|error| match error.kind() {
                std::io::ErrorKind::AlreadyExists => Error::ServerExists(name.clone()),
                _ => Error::io("link", &at, error),
            })?;
            record.server.name.clone_from(name);
            link = Some(at);
        }
        let before = std::mem::replace(&mut self.record, record);
        if let Err(error) = self.write_record() {
            self.record = before;
            let _ = link.map(fs_err::remove_file);
            return Err(error);
        }
        self.link = link;
        self.owner = claim.owner.clone();
        self.watched = watched;
        self.deadline = claim.ttl.and_then(|ttl| Instant::now().checked_add(ttl));
        Ok(())
    }
}
