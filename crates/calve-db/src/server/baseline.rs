//! Servers started without Calve's cloning, for `calve bench db` to compare with.
//!
//! A baseline server has a slot in the registry, locked by this process. If this process is killed, the next command removes the
//! server's container and files.

use std::fs::File;

use calve_core::{CancelToken, RemovalWait};

use crate::engine::address::Address;
use crate::engine::container::ServerProcess;
use crate::engine::{self, Engine, memory};
use crate::error::{Error, Result};
use crate::files::log;
use crate::files::runtime;
use crate::files::{random, trash};
use crate::registry::template::{self, DatabaseTemplate};
use crate::registry::{self, EarlyRecord, Home, RegistrySlot};
use crate::server::launch::data::{Mounts, clone_data};
use crate::server::launch::{LaunchRequest, ServerFiles, as_seen, instance, make_files, open_up, start_server};
use crate::server::messages::{Origin, Spec};
use crate::server::starter::spec_of;
use crate::server::sweep;
use crate::sys::{self, ProcessEnd};

/// Baseline servers of a template, one at a time.
pub struct BaselineServers<'a> {
    home: &'a Home,
    template: DatabaseTemplate,
    /// The name of the server: there is one at a time.
    name: String,
    /// The lock of the template, which stays as it is.
    _lock: File,
}

/// A baseline server that only has to be started.
pub struct PreparedBaselineServer {
    parts: ServerParts,
    files: ServerFiles,
}

/// A baseline server, which is killed when this is dropped.
pub struct BaselineServer {
    process: ServerProcess,
    // Dropped after the process.
    parts: ServerParts,
}

/// Everything of a server but its process. Removed when dropped.
struct ServerParts {
    engine: &'static dyn Engine,
    spec: Spec,
    address: Address,
    /// True once its container is known to be gone.
    is_removed: bool,
    _slot: RegistrySlot,
}

impl<'a> BaselineServers<'a> {
    /// Locks the template `name` of `home`.
    pub fn new(home: &'a Home, name: &str) -> Result<Self> {
        let template = template::load(home, name)?;
        home.prepare()?;
        let lock = template::lock(&template.slot)?;
        let name = format!("bench-{}", random::letters(8)?);
        Ok(Self { home, template, name, _lock: lock })
    }

    /// Returns the name of the runtime, if the servers are in containers.
    pub fn runtime(&self) -> Option<&'static str> {
        self.template.image.as_ref().map(|image| if image.is_docker() { "docker" } else { "podman" })
    }

    /// Prepares a server on a clone made beforehand by the best strategy other than an overlay. This is not timed.
    pub fn prepare(&self, cancel: &CancelToken) -> Result<PreparedBaselineServer> {
        let engine = engine::named(&self.template.engine)?;
        let slot = registry::reserve(self.home, &self.name)?;
        let spec = spec_of(self.home, &self.name, &slot, self.template.clone())?;
        let address = engine.address(&spec.record.directory, None, None);
        let spec = Spec { origin: Origin::Present, ..spec };
        let mut parts = ServerParts { engine, spec, address, is_removed: false, _slot: slot };
        let spec = &mut parts.spec;
        registry::SocketsNote::write(&spec.slot, &spec.record.directory)?;
        spec.container.as_ref().map_or(Ok(()), |container| container.note(&spec.slot))?;
        registry::write_begun(&spec.slot, &EarlyRecord::now(&spec.record.server.engine, None))?;
        runtime::make(&spec.record.directory, spec.account)?;
        clone_data(&self.template.data_directory(), &spec.slot.join("data"), None, Mounts::None, cancel)?;
        let wanted = parts.request(cancel);
        let files = make_files(&wanted)?;
        open_up(&wanted, &files.slot, &files.settings)?;
        Ok(PreparedBaselineServer { parts, files })
    }
}

impl PreparedBaselineServer {
    /// Starts it. Returns before it answers.
    pub fn start(self, cancel: &CancelToken) -> Result<BaselineServer> {
        let Self { parts, files: ServerFiles { settings, output, .. } } = self;
        let wanted = parts.request(cancel);
        let seen = as_seen(&wanted)?;
        let instance = instance(&wanted, seen.path(), settings);
        let process = start_server(&wanted, &instance, None, &output)?;
        registry::write_begun(
            &parts.spec.slot,
            &EarlyRecord::now(&parts.spec.record.server.engine, Some(process.pid())),
        )?;
        Ok(BaselineServer { process, parts })
    }
}

impl BaselineServer {
    /// Returns how it is reached.
    pub fn address(&self) -> &Address {
        &self.parts.address
    }

    /// Fails if it has ended, or its runtime could not start it.
    pub fn check(&mut self) -> Result<()> {
        let Some(ended) = self.process.ended() else { return Ok(()) };
        // The exit codes by which runtimes say that.
        if let (Some(container), ProcessEnd::Exit(code @ 125..=127)) = (&self.parts.spec.container, ended) {
            let (runtime, said) = (container.image.runtime.clone(), log::tail(&self.parts.spec.slot));
            return Err(Error::Runtime { runtime, code: Some(code), said });
        }
        Err(log::added_to(Error::server_failed(format!("ended ({ended})")), &self.parts.spec.slot))
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

impl Drop for BaselineServer {
    fn drop(&mut self) {
        if !self.parts.is_removed && self.process.ended().is_none() {
            self.kill();
        }
        if self.parts.spec.container.is_none() {
            memory::remove(self.parts.engine, &self.parts.spec.slot, Some(self.process.pid()));
        }
    }
}

impl ServerParts {
    fn request<'r>(&'r self, cancel: &'r CancelToken) -> LaunchRequest<'r> {
        LaunchRequest::new(&self.spec, self.engine, &self.address, cancel)
    }
}

impl Drop for ServerParts {
    fn drop(&mut self) {
        runtime::remove(&self.spec.record.directory, RemovalWait::Yes);
        let is_gone = self.is_removed || sweep::remove_container(&self.spec.slot).is_ok();
        // Otherwise the slot tells the next sweep which container is left.
        if is_gone {
            let _ = trash::remove(&self.spec.slot, RemovalWait::Yes);
        }
    }
}
