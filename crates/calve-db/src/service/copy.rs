//! A server on a copy of a service's data, to make a template of it.

use calve_core::CancelToken;

use super::create::{StagedData, from_service};
use super::{DATA, Service};
use crate::engine::Purpose;
use crate::error::Result;
use crate::files::private;
use crate::messages::{Origin, Spec};
use crate::registry::{Home, RegistryPlace};
use crate::server::{self, OwnedServer, Starter, new_spec};
use crate::sweep;

/// Clones the data of a service to `place`, and starts a server on it that ends with the caller.
pub(crate) fn start_copy(
    home: &Home,
    source: &str,
    place: RegistryPlace,
    starter: &Starter<'_>,
) -> Result<OwnedServer> {
    let service = match copy(home, source, &place, starter.cancel) {
        Ok(service) => service,
        Err(error) => {
            drop(place);
            let _ = sweep::sweep(home);
            return Err(error);
        }
    };
    let name = place.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let spec = new_spec(home, &name, &place.path, &service.engine, &service.program, service.account)?;
    let mut spec = Spec {
        version: service.version.clone(),
        origin: Origin::Present,
        purpose: Purpose::Build,
        strategy: Some(service.strategy),
        whole: true,
        notifies: service.notifies,
        ..spec
    };
    server::run(home, &mut spec, place, starter)
}

fn copy(home: &Home, source: &str, place: &RegistryPlace, cancel: &CancelToken) -> Result<Service> {
    // A supervisor that runs clones to a place beside its own.
    let staged = StagedData::make(home, source)?;
    let service = from_service(home, source, &staged.place, cancel)?;
    let (from, to) = (staged.place.join(DATA), place.path.join(DATA));
    private::rename(&from, &to)?;
    service.engine()?.scrub(&to)?;
    Ok(service)
}
