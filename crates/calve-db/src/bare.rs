//! Servers started without Calve's cloning, for `calve bench db` to compare with.
//!
//! A bare server has a place in the registry, locked by this process. If this process is killed, the next command removes the
//! server's container and files.

use std::fs::File;

use calve_core::{CancelToken, RemovalWait};

use crate::address::Address;
use crate::container::{self, ServerProcess};
use crate::engine::{self, Engine, memory};
use crate::error::{Error, Result};
use crate::files::{random, trash};
use crate::launch::data::{Mounts, clone_data};
use crate::launch::{LaunchRequest, Places, as_seen, instance, open_up, places, start_server};
use crate::messages::{Origin, Spec};
use crate::registry::{self, EarlyRecord, Home, RegistryPlace};
use crate::server::spec_of;
use crate::sys::{self, ProcessEnd};
use crate::template::{self, DatabaseTemplate};
use crate::{log, runtime, sweep};

/// Bare servers of a template, one at a time.
pub struct BareServers<'a> {
    home: &'a Home,
    template: DatabaseTemplate,
    /// The name of the server: there is one at a time.
    name: String,
    /// The lock of the template, which stays as it is.
    _lock: File,
}

/// A bare server that only has to be started.
pub struct PreparedBareServer {
    parts: Parts,
    places: Places,
}

/// A bare server, which is killed when this is dropped.
pub struct BareServer {
    process: ServerProcess,
    // Dropped after the process.
    parts: Parts,
}

/// Everything of a server but its process. Removed when dropped.
struct Parts {
    engine: &'static dyn Engine,
    spec: Spec,
    address: Address,
    /// True once its container is known to be gone.
    is_removed: bool,
    _place: RegistryPlace,
}

impl<'a> BareServers<'a> {
    /// Locks the template `name` of `home`.
    pub fn new(home: &'a Home, name: &str) -> Result<Self> {
        let template = template::load(home, name)?;
        home.prepare()?;
        let lock = template::lock(&template.place)?;
        let name = format!("bench-{}", random::letters(8)?);
        Ok(Self { home, template, name, _lock: lock })
    }

    /// Returns the name of the runtime, if the servers are in containers.
    pub fn runtime(&self) -> Option<&'static str> {
        self.template.image.as_ref().map(|image| if image.is_docker() { "docker" } else { "podman" })
    }

    /// Prepares a server on a clone made beforehand by the best strategy other than an overlay. This is not timed.
    pub fn prepare(&self, cancel: &CancelToken) -> Result<PreparedBareServer> {
        let engine = engine::named(&self.template.engine)?;
        let place = registry::reserve(self.home, &self.name)?;
        let spec = spec_of(self.home, &self.name, &place, self.template.clone())?;
        let address = engine.address(&spec.directory, None, None);
        let spec = Spec { origin: Origin::Present, isolate: false, ..spec };
        let mut parts = Parts { engine, spec, address, is_removed: false, _place: place };
        let spec = &mut parts.spec;
        sweep::note_sockets(&spec.place, &spec.directory)?;
        spec.container.as_ref().map_or(Ok(()), |container| container.note(&spec.place))?;
        registry::write_begun(&spec.place, &EarlyRecord::now(&spec.engine, None))?;
        runtime::make(&spec.directory, spec.account)?;
        clone_data(&self.template.data_directory(), &spec.place.join("data"), None, Mounts::None, cancel)?;
        let wanted = parts.request(cancel);
        let places = places(&wanted)?;
        open_up(&wanted, &places.place, &places.settings)?;
        Ok(PreparedBareServer { parts, places })
    }
}

impl PreparedBareServer {
    /// Starts it. Returns before it answers.
    pub fn start(self, cancel: &CancelToken) -> Result<BareServer> {
        let Self { parts, places: Places { settings, output, .. } } = self;
        let wanted = parts.request(cancel);
        let seen = as_seen(&wanted)?;
        let instance = instance(&wanted, seen.path(), settings);
        let process = start_server(&wanted, &instance, None, &output)?;
        registry::write_begun(&parts.spec.place, &EarlyRecord::now(&parts.spec.engine, Some(process.pid())))?;
        Ok(BareServer { process, parts })
    }
}

impl BareServer {
    /// Returns how it is reached.
    pub fn address(&self) -> &Address {
        &self.parts.address
    }

    /// Fails if it has ended, or its runtime could not start it.
    pub fn check(&mut self) -> Result<()> {
        let Some(ended) = self.process.ended() else { return Ok(()) };
        // The exit codes by which runtimes say that.
        if let (Some(container), ProcessEnd::Exit(code @ 125..=127)) = (&self.parts.spec.container, ended) {
            let (runtime, said) = (container.image.runtime.clone(), log::tail(&self.parts.spec.place));
            return Err(Error::Runtime { runtime, code: Some(code), said });
        }
        Err(log::added_to(Error::server_failed(format!("ended ({ended})")), &self.parts.spec.place))
    }

    /// Kills it. Its files are removed when it is dropped.
    pub fn stop(&mut self) -> Result<()> {
        self.kill();
        self.process.check_removed()?;
        self.parts.is_removed = true;
        Ok(())
    }

    fn kill(&mut self) {
        match sys::ProcessHandle::open(self.process.pid(), None) {
            Some(process) if self.parts.spec.container.is_none() => sys::end_tree(&process),
            _ => self.process.kill(),
        }
        let _ = self.process.wait();
    }
}

impl Drop for BareServer {
    fn drop(&mut self) {
        if !self.parts.is_removed && self.process.ended().is_none() {
            self.kill();
        }
        if self.parts.spec.container.is_none() {
            memory::remove(self.parts.engine, &self.parts.spec.place, Some(self.process.pid()));
        }
    }
}

impl Parts {
    fn request<'r>(&'r self, cancel: &'r CancelToken) -> LaunchRequest<'r> {
        LaunchRequest::new(&self.spec, self.engine, &self.address, false, cancel)
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        runtime::remove(&self.spec.directory, RemovalWait::Yes);
        let is_gone = self.is_removed || container::remove_left(&self.spec.place).is_ok();
        // Otherwise the place tells the next sweep which container is left.
        if is_gone {
            let _ = trash::remove(&self.spec.place, RemovalWait::Yes);
        }
    }
}
