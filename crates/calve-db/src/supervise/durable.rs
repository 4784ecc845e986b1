//! The first start and the end of a server whose data stays.

use super::Supervisor;
use crate::address::Address;
use crate::error::{Error, Result};
use crate::files::directory::Directory;
use crate::files::private;
use crate::launch::{LaunchRequest, RunningServer, launch};
use crate::log;
use crate::registry;
use crate::runtime;
use crate::service::{self, UnsavedDataRule};

/// Starts the server. On data in which no client has been yet, nobody can reach it before its position is noted: clients know the path of
/// its sockets beforehand.
pub(super) fn launch_unseen(wanted: LaunchRequest<'_>) -> Result<RunningServer> {
    let spec = wanted.spec;
    if spec.durable.as_deref().is_none_or(service::was_started) {
        return launch(&wanted);
    }
    let name = wanted.address.socket.file_name().unwrap_or_default();
    let socket = runtime::make_unseen(&spec.directory, spec.account)?.join(name);
    let address = Address { socket, ..wanted.address.clone() };
    let launched = launch(&LaunchRequest { address: &address, ..wanted })?;
    service::note_first(spec, wanted.engine, &address)?;
    runtime::show(&spec.directory)?;
    Ok(launched)
}

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
