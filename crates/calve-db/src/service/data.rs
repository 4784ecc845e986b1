//! The record of a service, and the turn of the process that changes it.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use calve_core::internal::sweep_records;
use calve_core::{CancelToken, Strategy};
use serde::{Deserialize, Serialize};

use crate::engine::address::Address;
use crate::engine::{self, Engine, ServerProgram};
use crate::error::{Error, Result};
use crate::files::directory::Directory;
use crate::files::log;
use crate::files::private;
use crate::files::random;
use crate::registry::template::{self, DatabaseTemplate};
use crate::registry::{self, DATA, Home, Record, mark, name};
use crate::server::control;
use crate::server::messages::{Answer, Origin, Request, Spec};
use crate::server::standby;
use crate::server::starter::new_spec;

pub(super) const DOCUMENT: &str = "service.json";
pub(super) const LOCK: &str = "lock";
pub(super) const TURN: &str = "turn";
/// Exists once the clone is on the disk.
pub(super) const ON_DISK: &str = "on-disk";
/// Exists while its worktree is being removed. Present homes have files of this name.
pub(super) const REMOVING: &str = "doomed";

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceWorktree {
    #[serde(rename = "keeper_id")]
    pub id: String,
    /// Git's own directory of it, when its id was last checked.
    #[serde(rename = "keeper")]
    pub entry: OsString,
    /// Its root, which may be gone. Empty in data of older versions of Calve.
    #[serde(rename = "keeper_root", default)]
    pub root: OsString,
}

/// Data that outlives its servers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Service {
    /// The name of its servers.
    pub name: String,
    /// The worktree's name for it.
    pub service: String,
    #[serde(flatten)]
    pub worktree: ServiceWorktree,
    #[serde(flatten)]
    pub program: ServerProgram,
    /// The template that it comes from, maybe through other services.
    pub template: String,
    /// The template's identity. Empty in data of older versions of Calve.
    #[serde(default)]
    pub(super) template_identity: String,
    /// The template has the data of a worktree, which no command can recreate.
    #[serde(default)]
    pub(super) is_promoted: bool,
    pub made_unix_s: u64,
    pub(crate) strategy: Option<Strategy>,
    /// The name of its runtime directory, which never changes, so that its URL does not either.
    pub(super) runtime: String,
    /// The inode number of its slot: another one in a copy of the home. 0 in data of older versions of Calve.
    #[serde(default)]
    pub(super) inode: u64,
    /// The service that it was cloned from, if that had data which its template lacks.
    pub(super) donor: Option<Donor>,
    #[serde(skip)]
    pub(super) slot: PathBuf,
}

impl Service {
    pub(super) fn engine(&self) -> Result<&'static dyn Engine> {
        engine::named(&self.program.engine)
    }

    pub(super) fn spec(&self, home: &Home, name: &str, slot: &Path) -> Result<Spec> {
        let mut spec = Spec { origin: Origin::Present, ..new_spec(home, name, slot, self.program.clone())? };
        spec.record.server.launch.strategy = self.strategy;
        Ok(spec)
    }

    /// Returns the address of its server, now or after the next start.
    pub fn address(&self, home: &Home) -> Result<Address> {
        match self.server(home)? {
            Some(record) => Ok(record.server.address),
            None => Ok(self.engine()?.address(&home.runtime.join(&self.runtime), None, None)),
        }
    }

    pub fn server(&self, home: &Home) -> Result<Option<Record>> {
        match registry::find(home, &self.name) {
            Err(Error::UnknownServer(_) | Error::ServerEnded { .. }) => Ok(None),
            found => found.map(Some),
        }
    }

    /// Asks its server's supervisor. `None`: no server runs, or it has just ended.
    pub(super) fn ask(&self, home: &Home, request: Request, cancel: &CancelToken) -> Result<Option<Answer>> {
        // A server that begins or ends has no record.
        let has_none = |slot: &Path| registry::is_held(slot) && matches!(self.server(home), Ok(None));
        control::has_ended(home, &self.name, has_none, cancel)?;
        let Some(record) = self.server(home)? else { return Ok(None) };
        let is_held = |slot: &Path| registry::is_held_by(slot, &record);
        match control::ask(&record, request, cancel) {
            Err(Error::SupervisorGone(_)) if control::has_ended(home, &self.name, is_held, cancel)? => Ok(None),
            answer => answer.map(Some),
        }
    }

    pub fn data_directory(&self) -> PathBuf {
        self.slot.join(DATA)
    }

    /// Returns whether the data comes from this very template, and not from another one of its name.
    pub(super) fn is_of(&self, template: &DatabaseTemplate) -> bool {
        template.identity() == self.template_identity
    }

    pub fn log(&self) -> String {
        log::last_lines(&self.slot)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Donor {
    pub(super) name: String,
    /// When its data was made: a reset makes it anew.
    pub(super) made_unix_s: u64,
    /// Its position just before the clone, if known.
    pub(super) written: Option<String>,
}

pub fn new_worktree_id() -> Result<String> {
    random::letters(8)
}

/// Returns the readable services, by name.
pub fn services(home: &Home) -> Result<Vec<Service>> {
    Ok(registry::directories(&home.services)?.iter().filter_map(|slot| read(slot).ok().flatten()).collect())
}

/// Returns a worktree's services. Fails if the record of one is unreadable: a command that went on would hide its data.
pub fn services_of(home: &Home, worktree_id: &str) -> Result<Vec<Service>> {
    let is_own = |slot: &Path| slot.to_string_lossy().ends_with(&format!("-{worktree_id}"));
    let slots = registry::directories(&home.services)?;
    let read = slots.iter().map(|slot| read(slot).or_else(|error| if is_own(slot) { Err(error) } else { Ok(None) }));
    let found: Vec<Option<Service>> = read.collect::<Result<_>>()?;
    Ok(found.into_iter().flatten().filter(|service| service.worktree.id == worktree_id).collect())
}

pub fn find(home: &Home, name: &str) -> Result<Service> {
    name::check(name)?;
    read(&home.services.join(name))?.ok_or_else(|| Error::UnknownService(name.into()))
}

/// Returns whether the template was rebuilt since the data was cloned from it, maybe through other services.
pub fn has_newer_template(home: &Home, service: &Service) -> bool {
    let template = template::load(home, &service.template);
    !service.template_identity.is_empty() && template.is_ok_and(|template| !service.is_of(&template))
}

pub fn set_worktree(home: &Home, service: &Service, entry: OsString, root: OsString) -> Result<()> {
    let (_turn, service) = take_turn(home, &service.name, &CancelToken::default())?;
    let slot = service.slot.clone();
    let worktree = ServiceWorktree { id: service.worktree.id.clone(), entry, root };
    write(&slot, Service { worktree, ..service })
}

pub(super) fn write(slot: &Path, service: Service) -> Result<()> {
    private::write_json(&slot.join(DOCUMENT), &Service { inode: inode(slot), ..service })
}

fn inode(slot: &Path) -> u64 {
    fs_err::metadata(slot).map_or(0, |found| found.ino())
}

pub(super) fn read(slot: &Path) -> Result<Option<Service>> {
    if slot.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.')) {
        return Ok(None);
    }
    let document = slot.join(DOCUMENT);
    let mut service: Service = match private::read_json(&document)? {
        Some(service) => service,
        // Only complete slots get a name, so this one is damaged.
        None if slot.is_dir() => return Err(Error::RecordDamaged(document)),
        None => return Ok(None),
    };
    let (noted, inode) = (service.inode, inode(slot));
    if ![0, inode].contains(&noted) {
        // The home is a copy: the original's server may use the directory of that name.
        service.runtime =
            random::spelled(&blake3::hash(format!("{} {inode}", service.runtime).as_bytes()).as_bytes()[..8]);
        service.inode = inode;
    }
    if service.worktree.root.is_empty() {
        service.worktree.root.clone_from(&service.worktree.entry);
    }
    Ok(Some(Service { slot: slot.to_path_buf(), ..service }))
}

/// Waits until no other process starts, ends, clones or removes the service. `cancel` ends the wait.
pub(super) fn take_turn(home: &Home, name: &str, cancel: &CancelToken) -> Result<(File, Service)> {
    loop {
        let service = find(home, name)?;
        let path = service.slot.join(TURN);
        let turn = private::open(&path)?;
        registry::wait_unless(&turn, &path, cancel, || Ok(()))?;
        if registry::is_lock_at(&turn, &path) {
            sweep_records(&Directory::open(&service.slot)?);
            // It may have changed while another process had it.
            return Ok((turn, find(home, name)?));
        }
    }
}

/// Returns the paths of unreadable records: of templates, servers and their marks, services, and pools.
pub fn unreadable(home: &Home) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut faults = vec![template::faults(&home.templates)?];
    for slot in registry::slots(home)?.iter().filter(|slot| registry::is_held(slot)) {
        found.extend(registry::read(slot).err());
        faults.push(template::faults(&mark::directory(slot))?);
    }
    for slot in registry::directories(&home.services)? {
        found.extend(read(&slot).err());
    }
    found.extend(standby::faults(home));
    let path = |error| match error {
        Error::RecordDamaged(path) | Error::Io { path, .. } => Some(path),
        _ => None,
    };
    Ok(faults.into_iter().flatten().chain(found).filter_map(path).collect())
}
