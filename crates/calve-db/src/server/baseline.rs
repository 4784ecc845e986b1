//! Servers without Calve's cloning, for `calve bench db` to compare with. This process locks a baseline server's slot.
//! After a kill, the next command removes its container and files.

use std::fs::File;

use calve_core::{CancelToken, RemovalWait};

use crate::engine::address::Address;
use crate::engine::container::process::ServerProcess;
use crate::engine::{self, Engine, memory};
use crate::error::{Error, Result};
use crate::files::{log, random, runtime, trash};
use crate::registry::template::{self, DatabaseTemplate};
use crate::registry::{self, Home, RegistrySlot};
use crate::server::launch::data::clone_data;
use crate::server::launch::{LaunchRequest, as_seen, instance, make_files, open_up, start_server};
use crate::server::messages::{Origin, Spec};
use crate::server::starter::spec_of;
use crate::server::sweep;
use crate::sys::{self, ProcessEnd};

pub struct BaselineServers<'a> {
    home: &'a Home,
    template: DatabaseTemplate,
    name: String,
    /// Keeps the template's files.
    _lock: File,
}

/// A baseline server, killed when dropped.
pub struct BaselineServer {
    /// `None` before the start.
    process: Option<ServerProcess>,
    engine: &'static dyn Engine,
    spec: Spec,
    pub address: Address,
    /// Its container is known to be gone.
    is_removed: bool,
    _slot: RegistrySlot,
}

impl<'a> BaselineServers<'a> {
    pub fn new(home: &'a Home, name: &str) -> Result<Self> {
        let template = template::load(home, name)?;
        home.prepare()?;
        let lock = template::lock(&template.slot)?;
        let name = format!("bench-{}", random::letters(8)?);
        Ok(Self { home, template, name, _lock: lock })
    }

    pub fn runtime(&self) -> Option<&'static str> {
        self.template.image.as_ref().map(|image| if image.is_docker() { "docker" } else { "podman" })
    }

    /// Prepares, untimed, a clone by the best strategy but an overlay. Returns the start, which waits for no answer.
    pub fn prepare<'c>(&self, cancel: &'c CancelToken) -> Result<impl FnOnce() -> Result<BaselineServer> + use<'c>> {
        let engine = engine::named(&self.template.program.engine)?;
        let slot = registry::reserve(self.home, &self.name)?;
        let spec = spec_of(self.home, &self.name, &slot, self.template.clone())?;
        let address = engine.address(&spec.record.directory, None, None);
        let spec = Spec { origin: Origin::Present, ..spec };
        let mut server = BaselineServer { process: None, engine, spec, address, is_removed: false, _slot: slot };
        let spec = &server.spec;
        registry::SocketsNote::write(&spec.slot, &spec.record.directory)?;
        spec.container.as_ref().map_or(Ok(()), |container| container.note(&spec.slot))?;
        registry::write_begun(&spec.slot, &spec.record.server.engine, None)?;
        runtime::make(&spec.record.directory, spec.program.account)?;
        clone_data(&self.template.data_directory(), &spec.slot.join(registry::DATA), cancel)?;
        let wanted = LaunchRequest::new(spec, engine, &server.address, cancel);
        let (slot, settings, output) = make_files(&wanted)?;
        open_up(&wanted, &slot, &settings)?;
        Ok(move || {
            let wanted = LaunchRequest::new(&server.spec, engine, &server.address, cancel);
            let seen = as_seen(&wanted)?;
            let process = start_server(&wanted, &instance(&wanted, &seen.path, settings), None, &output)?;
            let pid = Some(process.pid());
            server.process = Some(process);
            registry::write_begun(&server.spec.slot, &server.spec.record.server.engine, pid)?;
            Ok(server)
        })
    }
}

impl BaselineServer {
    /// Fails if it has ended, or its runtime could not start it.
    pub fn check(&mut self) -> Result<()> {
        let Some(ended) = self.process.as_mut().and_then(ServerProcess::ended) else { return Ok(()) };
        // The exit codes of runtimes that could not start a container.
        if let (Some(container), ProcessEnd::Exit(code @ 125..=127)) = (&self.spec.container, ended) {
            let (runtime, said) = (container.image.runtime.clone(), log::tail(&self.spec.slot));
            return Err(Error::Runtime { runtime, code: Some(code), said });
        }
        Err(log::added_to(Error::server_failed(format!("ended ({ended})")), &self.spec.slot))
    }

    /// Kills the server. Its files go when this is dropped.
    pub fn stop(&mut self) -> Result<()> {
        self.kill();
        self.process.as_mut().map_or(Ok(()), ServerProcess::check_removed)?;
        self.is_removed = true;
        Ok(())
    }

    fn kill(&mut self) {
        let Some(server) = &mut self.process else { return };
        match sys::ProcessHandle::open(server.pid(), None) {
            Some(process) if self.spec.container.is_none() => sys::end_tree(&process),
            _ => server.kill(),
        }
        let _ = server.wait();
    }
}

impl Drop for BaselineServer {
    fn drop(&mut self) {
        if !self.is_removed && self.process.as_mut().is_some_and(|process| process.ended().is_none()) {
            self.kill();
        }
        if let Some(process) = self.process.take().filter(|_| self.spec.container.is_none()) {
            memory::remove(self.engine, &self.spec.slot, Some(process.pid()));
        }
        let _ = trash::remove(&self.spec.record.directory, RemovalWait::Yes);
        let is_gone = self.is_removed || sweep::remove_container(&self.spec.slot).is_ok();
        // Otherwise the slot tells the next sweep which container is left.
        if is_gone {
            let _ = trash::remove(&self.spec.slot, RemovalWait::Yes);
        }
    }
}
