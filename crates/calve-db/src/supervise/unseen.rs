//! The first start on data that stays.

use crate::engine::address::Address;
use crate::error::Result;
use crate::files::runtime;
use crate::server::launch::{LaunchRequest, RunningServer, launch};
use crate::service;

/// Starts the server. On data in which no client has been yet, it cannot be reached before its position is noted: clients know the path of
/// its sockets beforehand.
pub(super) fn launch_unseen(wanted: LaunchRequest<'_>) -> Result<RunningServer> {
    let spec = wanted.spec;
    if spec.durable.as_deref().is_none_or(service::was_started) {
        return launch(&wanted);
    }
    let name = wanted.address.socket.file_name().unwrap_or_default();
    let socket = runtime::make_unseen(&spec.record.directory, spec.account)?.join(name);
    let address = Address { socket, ..wanted.address.clone() };
    let launched = launch(&LaunchRequest { address: &address, ..wanted })?;
    service::note_first(spec, wanted.engine, &address)?;
    runtime::show(&spec.record.directory)?;
    Ok(launched)
}
