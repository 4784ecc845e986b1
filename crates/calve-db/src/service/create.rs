//! A new service: data cloned under a hidden name, and named when it is complete.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use calve_core::{CancelToken, RemovalWait, Strategy};
use rustix::fs::FlockOperation;

use super::position::Donor;
use super::{DATA, DOCUMENT, Service, TURN, find, read, run, take_turn};
use crate::address::Address;
use crate::engine;
use crate::error::{Error, Result};
use crate::files::private::{self, CLOSED};
use crate::files::random;
use crate::files::trash;
use crate::launch::data::{FollowingClone, Mounts, clone_data};
use crate::messages::{Answer, Request, Spec};
use crate::operation::Operation;
use crate::registry::{self, Home, lock_all, name, unix_now};
use crate::template::{self, DatabaseTemplate};
use crate::{control, sys};

/// A service to be made.
#[derive(Debug)]
pub struct NewService<'a> {
    /// The keeper's name for it.
    pub service: &'a str,
    /// Tells its keeper from others.
    pub keeper_id: &'a str,
    /// Where its keeper is.
    pub keeper: OsString,
}

/// The source of the data of a new service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceOrigin<'a> {
    /// The template of this name.
    Template(&'a str),
    /// The service of which the servers have this name. One that runs goes on, and is held while its files are cloned.
    Service(&'a str),
}

/// Data of a service that is not there yet. Removed when it is dropped.
#[derive(Debug)]
pub struct ServiceData {
    staged: StagedData,
    cloned: Service,
}

impl ServiceData {
    /// Clones the data for a new service, which its keeper is going to call `service`.
    pub fn clone_from(home: &Home, service: &str, origin: ServiceOrigin<'_>, cancel: &CancelToken) -> Result<Self> {
        name::check(service)?;
        home.prepare()?;
        let staged = StagedData::make(home, service)?;
        let cloned = match origin {
            ServiceOrigin::Template(template) => from_template(home, template, &staged.place, cancel)?,
            ServiceOrigin::Service(source) => from_service(home, source, &staged.place, cancel)?,
        };
        Ok(Self { staged, cloned })
    }
}

/// Makes a service of the data, and returns what has the name then: if another process was faster, its data.
pub fn create(home: &Home, wanted: NewService<'_>, data: ServiceData) -> Result<Service> {
    let name = format!("{}-{}", wanted.service, wanted.keeper_id);
    name::check(&name)?;
    let ServiceData { staged, cloned } = data;
    let service = Service {
        name: name.clone(),
        service: wanted.service.to_owned(),
        keeper_id: wanted.keeper_id.to_owned(),
        keeper: wanted.keeper,
        made_unix_s: unix_now(),
        runtime: random::letters(8)?,
        ..cloned
    };
    private::open(&staged.place.join(TURN))?;
    private::write_json(&staged.place.join(DOCUMENT), &service)?;
    staged.publish(&home.services().join(&name))?;
    find(home, &name)
}

/// Clones a template's data into `place`.
pub(super) fn from_template(home: &Home, template: &str, place: &Path, cancel: &CancelToken) -> Result<Service> {
    let template = usable_template(home, template)?;
    let _held = template::lock(&template.place)?;
    template::check_files(&template.place)?;
    let data = place.join(DATA);
    let placed = clone_data(&template.data_directory(), &data, None, Mounts::None, cancel)?;
    Ok(Service {
        name: String::new(),
        service: String::new(),
        keeper_id: String::new(),
        keeper: OsString::new(),
        donor: None,
        engine: template.engine,
        template: template.name,
        made_unix_s: 0,
        program: template.program,
        version: template.version,
        account: template.account,
        notifies: template.notifies,
        strategy: placed.strategy,
        runtime: String::new(),
        place: PathBuf::new(),
    })
}

/// Clones the data of a service into `place`, whether its server runs or not.
pub(super) fn from_service(home: &Home, source: &str, place: &Path, cancel: &CancelToken) -> Result<Service> {
    let (_turn, source) = take_turn(home, source, cancel)?;
    let before = Donor::of(home, &source);
    if let Some(record) = source.server(home) {
        let to = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match control::ask(&record, Request::Copy(to), cancel) {
            Ok(Answer::Copied(strategy)) => {
                // What was written while it was copied may be in the copy.
                let donor = Donor::of_both(before, Donor::of(home, &source));
                return Ok(Service { strategy, donor, ..source });
            }
            Ok(answer) => answer.into_result().map(|_| ())?,
            // It ended in this moment.
            Err(Error::SupervisorGone(_)) => {}
            Err(error) => return Err(error),
        }
    }
    let _held = run::take_data(home, &source, cancel)?;
    let data = place.join(DATA);
    let placed = clone_data(&source.data_directory(), &data, None, Mounts::None, cancel)?;
    let donor = Donor::of_both(before, Donor::of(home, &source));
    Ok(Service { strategy: placed.strategy, donor, ..source })
}

/// Clones the data of a server that runs, in its supervisor. All its processes are held meanwhile, so that the clone is what a kill would
/// have left: every transaction that was confirmed is in it, and the engine recovers it. `to`: a staged directory beside its own.
pub(crate) fn copy_running(spec: &Spec, server: &Address, to: &str, cancel: &CancelToken) -> Result<Strategy> {
    let (Some(files), true) = (&spec.durable, to.starts_with(registry::NEW_SERVICE) && !to.contains('/')) else {
        return Err(Error::UnknownService(to.to_owned()));
    };
    let (engine, data, clone) = (engine::named(&spec.engine)?, files.join(DATA), files.with_file_name(to).join(DATA));
    let mut following = std::thread::scope(|scope| {
        // A server on the clone then has little to recover. Without that, it only takes longer.
        scope.spawn(|| engine.write_back(server));
        FollowingClone::begin(&data, &clone, cancel)
    });
    // Cloning a file waits until what was written to it is on the disk, so most of that comes before.
    match &mut following {
        Some(following) => following.catch_up(),
        None => sys::sync_file_system(files).map_err(|error| Error::io(Operation::Sync, files, error))?,
    }
    if cancel.is_cancelled() {
        return Err(Error::Interrupted);
    }
    let placed = {
        let _frozen = sys::freeze().map_err(|error| Error::io(Operation::HoldServer, files, error))?;
        if let Some(strategy) = following.and_then(FollowingClone::finish) {
            return Ok(strategy);
        }
        trash::remove(&clone, RemovalWait::No)?;
        clone_data(&data, &clone, None, Mounts::None, cancel)?
    };
    let _ = trash::reap(clone.parent().unwrap_or(&clone));
    Ok(placed.strategy)
}

/// Returns the template of this name. Fails unless data for a service can be cloned from it.
pub fn usable_template(home: &Home, name: &str) -> Result<DatabaseTemplate> {
    let template = template::load(home, name)?;
    match template.image() {
        Some(_) => Err(Error::ServiceFromImage(template.name)),
        None => Ok(template),
    }
}

/// A directory under a hidden name, which goes unless it is published.
#[derive(Debug)]
pub(super) struct StagedData {
    pub(super) place: PathBuf,
    lock: File,
}

impl StagedData {
    pub(super) fn make(home: &Home, name: &str) -> Result<Self> {
        let _guard = lock_all(home)?;
        let place = home.services().join(format!("{}{name}-{}", registry::NEW_SERVICE, random::letters(6)?));
        private::make_directory(&place, CLOSED)?;
        let lock = registry::take_lock(&place.join(registry::LOCK))?;
        Ok(Self { place, lock })
    }

    /// Gives the staged data its name, unless something has that name.
    fn publish(self, target: &Path) -> Result<()> {
        // A directory that is not empty is not replaced.
        private::rename(&self.place, target).or_else(|error| read(target).map(drop).ok_or(error))
    }
}

impl Drop for StagedData {
    fn drop(&mut self) {
        // What was published is not there any more.
        let _ = trash::remove(&self.place, RemovalWait::No);
        let _ = rustix::fs::flock(&self.lock, FlockOperation::Unlock);
    }
}
