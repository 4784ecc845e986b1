//! Ends servers whose data stays.

use super::Supervisor;
use crate::error::{Error, Remedy, Result, tail};
use crate::files::directory::Directory;
use crate::files::private;
use crate::registry::{HIDDEN, RECORD};
use crate::service::LossRule;

impl Supervisor<'_> {
    /// Ends the server, cleanly if its data stays and that is possible.
    pub(super) fn shut_down(&mut self) {
        if !self.record.durable {
            return self.kill();
        }
        if self.launched.server.ended().is_none() && self.end_in_order(LossRule::Accept).is_err() {
            self.kill();
        }
        self.end_children();
        // Locks the account out again.
        let _ = self.own.spec().and_then(|spec| private::close(&Directory::open(spec.files())?));
    }

    /// Shuts the server down cleanly. Fails if it could not write its data. It goes on then, unless it ended anyway.
    pub(super) fn end_in_order(&mut self, unsaved: LossRule) -> Result<()> {
        // Fails if the home was moved: PostgreSQL would write to another home in its place.
        let slot = &self.own.spec()?.slot;
        // Renamed, the record hides a server that takes long to end. Even a full disk permits renaming it back.
        let [record, hidden] = [RECORD, HIDDEN].map(|name| slot.join(name));
        let _ = fs_err::rename(&record, &hidden);
        let Err(error) = self.ask_to_end(unsaved).and_then(|()| self.await_end(|_| None)) else { return Ok(()) };
        if unsaved == LossRule::Accept {
            self.kill();
            return Ok(());
        }
        let error = self.with_log(error);
        if self.launched.server.ended().is_some() {
            return Err(error);
        }
        let _ = self.own.spec().map(|_| fs_err::rename(&hidden, &record));
        Err(match error {
            Error::ServerFailed { how, log, .. } => {
                let name = &self.record.server.name;
                let text = format!("the server `{name}` {how}, so it was not stopped{}", tail(&log));
                Error::failed(text, Remedy::ForceStop)
            }
            other => other,
        })
    }
}
