//! Clones a new service's data under a hidden name, and renames it when it is complete.

use std::fs::File;
use std::path::{Path, PathBuf};

use calve_core::{CancelToken, RemovalWait, Strategy};
use rustix::fs::FlockOperation;

use super::data::{Donor, Service, ServiceWorktree, TURN, find, read, take_turn, write};
use super::run;
use crate::engine;
use crate::engine::address::Address;
use crate::error::{AtPath as _, Error, Remedy, Result, unless_cancelled};
use crate::files::private::{self, CLOSED};
use crate::files::random;
use crate::files::trash;
use crate::registry::template::{self, DatabaseTemplate};
use crate::registry::{self, DATA, Home, RegistrySlot, lock_all, name, unix_now};
use crate::server::launch::data::{clone_data, clone_followed};
use crate::server::messages::{Answer, Request, Spec};
use crate::server::starter::{self, OwnedServer, Starter};
use crate::server::sweep;
use crate::sys;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceOrigin {
    Template(String),
    /// The service of this server name. A running one goes on, held while its files are cloned.
    Service(String),
}

/// The data of a future service, removed when dropped.
#[derive(Debug)]
pub struct ServiceData {
    staged: StagedData,
    cloned: Service,
}

impl ServiceData {
    /// Clones the data for a new service, which its worktree will call `service`.
    pub fn clone_from(home: &Home, service: &str, origin: &ServiceOrigin, cancel: &CancelToken) -> Result<Self> {
        name::check(service)?;
        home.prepare()?;
        let staged = StagedData::make(home, service)?;
        let cloned = match origin {
            ServiceOrigin::Template(template) => from_template(home, template, &staged.slot, cancel)?,
            ServiceOrigin::Service(source) => from_service(home, source, &staged.slot, cancel)?,
        };
        Ok(Self { staged, cloned: Service { service: service.to_owned(), ..cloned } })
    }
}

/// Makes a worktree's service of the data. If another process was faster, returns that one's service.
pub fn create(home: &Home, worktree: ServiceWorktree, data: ServiceData) -> Result<Service> {
    let ServiceData { staged, cloned } = data;
    let name = format!("{}-{}", cloned.service, worktree.id);
    name::check(&name)?;
    let service =
        Service { name: name.clone(), worktree, made_unix_s: unix_now(), runtime: random::letters(8)?, ..cloned };
    private::open(&staged.slot.join(TURN))?;
    write(&staged.slot, service)?;
    staged.publish(&home.services.join(&name))?;
    find(home, &name)
}

pub(super) fn from_template(home: &Home, template: &str, slot: &Path, cancel: &CancelToken) -> Result<Service> {
    let template = template_with_program(home, template)?;
    let _held = template::lock(&template.slot)?;
    template::check_files(&template.slot)?;
    let data = slot.join(DATA);
    let strategy = clone_data(&template.data_directory(), &data, cancel)?.report.strategy;
    Ok(Service {
        template_identity: template.identity(),
        is_promoted: template.promoted,
        template: template.name,
        program: template.program,
        strategy,
        ..Service::default()
    })
}

/// Clones a service's data into `slot`, whether its server runs or not.
pub(super) fn from_service(home: &Home, source: &str, slot: &Path, cancel: &CancelToken) -> Result<Service> {
    let (_turn, source) = take_turn(home, source, cancel)?;
    let before = Donor::find(home, &source);
    let to = slot.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let copied = source.ask(home, Request::Copy(to), cancel)?.map(Answer::into_result).transpose()?;
    // Held until the donor is read.
    let _held;
    let strategy = match copied {
        Some(Answer::Copied(strategy)) => strategy,
        _ => {
            _held = run::take_data(home, &source, cancel)?;
            clone_data(&source.data_directory(), &slot.join(DATA), cancel)?.report.strategy
        }
    };
    // Writes made while it was copied may be in the copy.
    let donor = Donor::merge(before, Donor::find(home, &source));
    Ok(Service { strategy, donor, ..source })
}

/// Clones a running server's data, in its supervisor. All its processes are held meanwhile, so the clone is as after a
/// kill: it has every confirmed transaction, and the engine recovers it. `to`: a staged directory beside its own.
pub(crate) fn copy_running(spec: &Spec, server: &Address, to: &str, cancel: &CancelToken) -> Result<Option<Strategy>> {
    let (Some(files), true) = (&spec.durable, to.starts_with(registry::NEW_SERVICE) && !to.contains('/')) else {
        return Err(Error::UnknownService(to.to_owned()));
    };
    let (engine, data, clone) =
        (engine::named(&spec.record.server.engine)?, files.join(DATA), files.with_file_name(to).join(DATA));
    let mut following = std::thread::scope(|scope| {
        // Leaves little to recover on the clone. After a failure, that only takes longer.
        scope.spawn(|| engine.write_back(server));
        clone_followed(&data, &clone, cancel)
    });
    // Cloning a file waits until its writes are on the disk, so most of that happens before the hold.
    match &mut following {
        // A failure shows again in `finish`.
        Some((source, _)) => drop(source.catch_up(&clone, cancel)),
        None => sys::sync_file_system(files).at("sync", files)?,
    }
    unless_cancelled(cancel)?;
    let cloned = {
        let _frozen = sys::freeze().at("hold the server of", files)?;
        if let Some((source, strategy)) = following
            && source.finish(&clone, cancel).unwrap_or(false)
        {
            return Ok(Some(strategy));
        }
        trash::remove(&clone, RemovalWait::No)?;
        clone_data(&data, &clone, cancel)?
    };
    let _ = trash::reap(clone.parent().unwrap_or(&clone));
    Ok(cloned.report.strategy)
}

/// Fails unless a service's data can be cloned from the template.
pub fn usable_template(home: &Home, name: &str) -> Result<DatabaseTemplate> {
    let template = template_with_program(home, name)?;
    let _held = template::lock(&template.slot)?;
    template::check_files(&template.slot)?;
    Ok(template)
}

/// Loads a template that services can use. Does not check its files.
pub fn template_with_program(home: &Home, name: &str) -> Result<DatabaseTemplate> {
    let template = template::load(home, name)?;
    match template.image() {
        // Servers in containers keep no data.
        Some(_) => {
            let text = format!("the template `{}` runs from an image, and a service cannot", template.name);
            Err(Error::failed(text, Remedy::ChooseProgramTemplate))
        }
        None => Ok(template),
    }
}

/// A hidden directory, removed unless it is published.
#[derive(Debug)]
pub(super) struct StagedData {
    pub(super) slot: PathBuf,
    lock: File,
}

impl StagedData {
    pub(super) fn make(home: &Home, name: &str) -> Result<Self> {
        let _guard = lock_all(home)?;
        let slot = home.services.join(format!("{}{name}-{}", registry::NEW_SERVICE, random::letters(6)?));
        private::make_directory(&slot, CLOSED)?;
        let lock = registry::take_lock(&slot.join(registry::LOCK))?;
        Ok(Self { slot, lock })
    }

    /// Renames the staged data to `target`, unless that exists.
    fn publish(self, target: &Path) -> Result<()> {
        // A rename replaces no directory that has contents.
        private::rename(&self.slot, target).or_else(|error| read(target)?.map(drop).ok_or(error))
    }
}

impl Drop for StagedData {
    fn drop(&mut self) {
        // Published data is no longer at this path.
        let _ = trash::remove(&self.slot, RemovalWait::No);
        let _ = rustix::fs::flock(&self.lock, FlockOperation::Unlock);
    }
}

/// Clones a service's data to `slot`, and starts a server on it that ends with the caller.
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
    let mut spec = Spec { whole: true, ..service.spec(home, &name, &slot.path)? };
    starter::run(home, &mut spec, slot, starter)
}

fn copy(home: &Home, source: &str, slot: &RegistrySlot, cancel: &CancelToken) -> Result<Service> {
    // A running supervisor clones to a directory beside its own.
    let staged = StagedData::make(home, source)?;
    let service = from_service(home, source, &staged.slot, cancel)?;
    let (from, to) = (staged.slot.join(DATA), slot.path.join(DATA));
    private::rename(&from, &to)?;
    service.engine()?.scrub(&to)?;
    Ok(service)
}
