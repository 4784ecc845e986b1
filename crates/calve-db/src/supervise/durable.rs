//! The end of a server whose data stays.

use super::Supervisor;
use crate::error::{Error, Result};
use crate::files::directory::Directory;
use crate::files::private;
use crate::log;
use crate::registry;
use crate::service::UnsavedDataRule;

impl Supervisor<'_> {
    /// Ends the server; in order, if its data stays, as far as it can.
    pub(super) fn shut_down(&mut self) {
        if self.spec.durable.is_none() {
            return self.kill();
        }
        if self.launched.server.ended().is_none() && self.end_in_order(UnsavedDataRule::Lose).is_err() {
            self.kill();
        }
        self.end_children();
        // Not the account's any more.
        let _ = Directory::open(self.spec.files()).and_then(|files| private::close(&files));
    }

    /// Ends the server in order. An error: it could not write its data, and goes on.
    pub(super) fn end_in_order(&mut self, unsaved: UnsavedDataRule) -> Result<()> {
        // It can take a while, in which nobody is to take it for one that runs.
        registry::forget(&self.spec.place);
        if let Err(error) = self.ask_to_end()
            && self.launched.server.ended().is_none()
        {
            if unsaved == UnsavedDataRule::Lose {
                self.kill();
                return Ok(());
            }
            self.write_record()?;
            return Err(match log::added_to(error, self.spec.files()) {
                Error::ServerFailed { how, log, .. } => {
                    Error::ServiceUnsaved { name: self.spec.name.clone(), how, log }
                }
                other => other,
            });
        }
        if self.await_end(|_| None).is_err() {
            self.kill();
        }
        Ok(())
    }
}
