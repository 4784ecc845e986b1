//! A server on a copy of a service's data, to make a template of it.

use calve_core::CancelToken;

use super::create::{StagedData, from_service};
use super::data::{DATA, Service};
use crate::engine::Purpose;
use crate::error::Result;
use crate::files::private;
use crate::registry::{Home, RegistrySlot};
use crate::server::messages::{Origin, Spec};
use crate::server::starter::{self, OwnedServer, Starter, new_spec};
use crate::server::sweep;

/// Clones the data of a service to `slot`, and starts a server on it that ends with the caller.
pub(crate) fn start_copy(home: &Home, source: &str, slot: RegistrySlot, starter: &Starter<'_>) -> Result<OwnedServer> {
    let service = match copy(home, source, &slot, starter.cancel) {
        Ok(service) => service,
        Err(error) => {
            drop(slot);
            let _ = sweep::sweep(home);
            return Err(error);
        }
    };
    let name = slot.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut spec = new_spec(home, &name, &slot.path, &service.engine, &service.program, service.account)?;
    spec.record.server.launch.strategy = Some(service.strategy);
    spec.record.notifies = service.notifies;
    let mut spec = Spec {
        version: service.version.clone(),
        origin: Origin::Present,
        purpose: Purpose::Build,
        whole: true,
        ..spec
    };
    starter::run(home, &mut spec, slot, starter)
}

fn copy(home: &Home, source: &str, slot: &RegistrySlot, cancel: &CancelToken) -> Result<Service> {
    // A supervisor that runs clones to a slot beside its own.
    let staged = StagedData::make(home, source)?;
    let service = from_service(home, source, &staged.slot, cancel)?;
    let (from, to) = (staged.slot.join(DATA), slot.path.join(DATA));
    private::rename(&from, &to)?;
    service.engine()?.scrub(&to)?;
    Ok(service)
}
