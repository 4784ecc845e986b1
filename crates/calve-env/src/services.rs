//! A worktree's services: its own databases, whose data is removed with it. Each is reached by a private socket, without a port.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use calve_core::CancelToken;
use calve_db::{Address, Error as DbError, Home, LossRule, Service, ServiceData, ServiceWorktree};
use calve_git::ServiceConfig;
use calve_git::environment::{WorktreeId, data_source, forget_data_source};

use crate::consent::Consent;
use crate::early_clones::{DonorRule, EarlyClones, origin_of};
use crate::error::{Error, Result};
use crate::host::{Host, database_home};
use crate::origin::DataOrigin;
use crate::ownership::{kept, noted};
use crate::remedy::Remedy;
use crate::template;

/// Services that the configuration names (`wanted`), and those that have data (`made`).
pub struct Services<'h> {
    pub(crate) host: &'h dyn Host,
    root: PathBuf,
    pub(crate) wanted: BTreeMap<String, ServiceConfig>,
    pub(crate) made: BTreeMap<String, Service>,
    /// Origins of the data that was cloned now.
    pub origins: BTreeMap<String, DataOrigin>,
    pub lacking: Vec<(String, Error)>,
    /// Names of the services to start or stop; empty means all.
    only: Vec<String>,
    /// `None` if no service is wanted or made.
    pub(crate) home: Option<Home>,
}

impl<'h> Services<'h> {
    pub(crate) fn none(host: &'h dyn Host, root: &Path) -> Self {
        Self {
            host,
            root: root.to_path_buf(),
            wanted: BTreeMap::new(),
            made: BTreeMap::new(),
            origins: BTreeMap::new(),
            lacking: Vec::new(),
            only: Vec::new(),
            home: None,
        }
    }

    pub(crate) fn find(host: &'h dyn Host, root: &Path, wanted: BTreeMap<String, ServiceConfig>) -> Result<Self> {
        let owner = WorktreeId::read(root)?;
        if wanted.is_empty() && owner.is_none() {
            return Ok(Self::none(host, root));
        }
        let home = database_home(host)?;
        let made = owner.map_or(Ok(Vec::new()), |owner| kept(&home, &owner))?;
        let made = made.into_iter().map(|service| (service.service.clone(), service)).collect();
        Ok(Self { wanted, made, home: Some(home), ..Self::none(host, root) })
    }

    /// Limits starting and stopping to these services, if any are named.
    pub(crate) fn choose(&mut self, names: &[String]) -> Result<()> {
        let is_known = |name: &String| self.wanted.contains_key(name) || self.made.contains_key(name);
        if let Some(name) = names.iter().find(|name| !is_known(name)) {
            let known: BTreeSet<&String> = self.wanted.keys().chain(self.made.keys()).collect();
            let remedy = match known.is_empty() {
                true => Remedy::NameServices,
                false => Remedy::NameOneOf(known.into_iter().cloned().collect()),
            };
            let text = format!("this worktree has no service `{}`", name.escape_default());
            return Err(Error::failed(text, remedy));
        }
        self.only = names.to_vec();
        Ok(())
    }

    pub fn is_chosen(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    /// Clones missing data: an early clone, the donor's data if `rule` admits it, or the template's. Without one, none.
    pub(crate) fn make(
        &mut self,
        (donor, preferred): (Option<&WorktreeId>, Option<&Path>),
        rule: DonorRule,
        mut early: Option<EarlyClones<'_>>,
        consent: Consent,
        cancel: &CancelToken,
    ) -> Result<()> {
        let (host, root) = (self.host, &self.root);
        let Some(home) = &self.home else { return Ok(()) };
        let missing: Vec<_> =
            self.wanted.iter().filter(|(name, _)| !self.made.contains_key(*name) && self.is_chosen(name)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let owner = match WorktreeId::read(root)? {
            Some(owner) => owner,
            None => WorktreeId::make(root, &calve_db::new_worktree_id()?)?,
        };
        // A killed command may have left a note of its donor.
        let donor = match (donor, data_source(root)?) {
            (Some(donor), _) => Some(donor.clone()),
            (None, Some(source)) => noted(host, root, &source)?,
            (None, None) => None,
        };
        let donated = donor.as_ref().map_or(Ok(Vec::new()), |donor| kept(home, donor))?;
        for (name, config) in missing {
            let found = template::name(root, name, config).and_then(|template| {
                Ok(match rule.donor(home, (name, config), &template, &donated) {
                    None => {
                        let wanted = (name.as_str(), config);
                        (None, template::ready(host, home, root, template, wanted, consent, cancel)?)
                    }
                    given => (given, template),
                })
            });
            let (given, template) = match found {
                Ok(found) => found,
                Err(error) if cancel.is_cancelled() => return Err(error),
                Err(error) => {
                    self.lacking.push((name.clone(), error));
                    continue;
                }
            };
            let other = donated.iter().find(|donor| donor.service == *name);
            let origin = DataOrigin::new(home, given, &template, preferred.map(|root| (root, other)));
            let source = origin_of(given, &template);
            let cloned = early.as_mut().and_then(|early| early.take(name, &source));
            let data = cloned.unwrap_or_else(|| ServiceData::clone_from(home, name, &source, cancel))?;
            let last_root = WorktreeId::last_root(&owner.entry).into();
            let worktree = ServiceWorktree { id: owner.id.clone(), entry: owner.entry.clone().into(), root: last_root };
            self.made.insert(name.clone(), calve_db::create_service(home, worktree, data)?);
            self.origins.insert(name.clone(), origin);
        }
        Ok(())
    }

    /// Starts the servers of the wanted services. Returns the names of those that did not run before.
    pub(crate) fn start(&mut self, cancel: &CancelToken) -> Result<Vec<String>> {
        if let Some(home) = &self.home {
            let mut chosen = self.made.values().filter(|made| self.is_chosen(&made.service));
            chosen.try_for_each(|made| self.check_engine(home, made))?;
        }
        self.make((None, None), DonorRule::SameTemplate, None, Consent::Approved, cancel)?;
        // Chosen services that still lack data are reported, as when the worktree was made.
        if self.wanted.keys().all(|name| self.made.contains_key(name) || self.is_chosen(name)) {
            forget_data_source(&self.root)?;
        }
        let Some(home) = &self.home else { return Ok(Vec::new()) };
        let mut started = Vec::new();
        for (name, service) in &self.made {
            if !self.wanted.contains_key(name) || !self.is_chosen(name) {
                continue;
            }
            match calve_db::start_service(home, &service.name, &self.host.supervisor()?, cancel) {
                Ok(false) => {}
                Ok(true) => started.push(name.clone()),
                Err(error) => return Err(self.not_started(service, error)),
            }
        }
        Ok(started)
    }

    /// Stops the servers of the chosen services. Returns the names of those that ran.
    pub fn stop(&self, unsaved: LossRule, cancel: &CancelToken) -> Result<Vec<String>> {
        let Some(home) = &self.home else { return Ok(Vec::new()) };
        let mut stopped = Vec::new();
        for (name, service) in self.made.iter().filter(|(name, _)| self.is_chosen(name)) {
            if calve_db::stop_service(home, &service.name, unsaved, cancel)? {
                stopped.push(name.clone());
            }
        }
        Ok(stopped)
    }

    pub fn variables(&self) -> Result<Vec<(String, String)>> {
        let Some(home) = &self.home else { return Ok(Vec::new()) };
        let has_data = self.wanted.iter().filter_map(|(name, config)| Some((config, self.made.get(name)?)));
        let variable =
            |(config, service): (&ServiceConfig, &Service)| Ok((config.variable.clone(), service.address(home)?.url));
        has_data.map(variable).collect()
    }

    pub(crate) fn addresses(&self) -> Result<Vec<Address>> {
        let Some(home) = &self.home else { return Ok(Vec::new()) };
        let made = self.wanted.keys().filter_map(|name| self.made.get(name));
        made.map(|service| Ok(service.address(home)?)).collect()
    }

    /// Takes out the failures of commands that make templates, which count like a failed hook.
    pub(crate) fn take_failures(&mut self) -> Vec<Error> {
        let failed = self.lacking.extract_if(.., |(_, error)| matches!(error, Error::Failed { .. }));
        failed.map(|(_, error)| error).collect()
    }

    /// Returns the wanted services without data, each with the reason why it would get none.
    pub fn without_data(&self) -> Result<Vec<(&str, Option<String>)>> {
        let Some(home) = &self.home else { return Ok(Vec::new()) };
        let missing = self.wanted.iter().filter(|(name, _)| !self.made.contains_key(*name));
        let obstacle = |(name, config): (&'_ String, &'_ ServiceConfig)| match template::name(&self.root, name, config)
        {
            Ok(template) => template::obstacle(self.host, home, &self.root, &template, config, Consent::Approved),
            Err(Error::Refused { text, remedy: Some(remedy) }) => Ok(Some(format!("{text}; {remedy}"))),
            Err(error) => Ok(Some(error.to_string())),
        };
        missing.map(|(name, config)| Ok((name.as_str(), obstacle((name, config))?))).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty() && self.made.is_empty()
    }

    /// Returns the last lines of the log of the named service, or of the only one.
    pub fn log(&self, name: Option<&str>) -> Result<String> {
        self.named(name).map(Service::log)
    }

    fn check_engine(&self, home: &Home, made: &Service) -> Result<()> {
        let wanted = self.wanted.get(&made.service).and_then(|config| template::other_engine(home, config, made));
        let Some(wanted) = wanted else { return Ok(()) };
        let (name, engine) = (&made.service, &made.program.engine);
        let text = format!("the service `{name}` was made with {engine}, but .calve.toml now asks for {wanted}");
        Err(Error::refused(text, Remedy::GiveUpForEngine(name.clone())))
    }

    pub(crate) fn wanted_template(&self, service: &Service) -> Result<String> {
        let wanted = self.wanted.get(&service.service);
        wanted.map_or(Ok(service.template.clone()), |config| template::name(&self.root, &service.service, config))
    }

    pub(crate) fn template_now(&self, home: &Home, service: &Service, cancel: &CancelToken) -> Result<String> {
        let name = self.wanted_template(service)?;
        let Some(wanted) = self.wanted.get(&service.service) else { return Ok(name) };
        let wanted = (service.service.as_str(), wanted);
        let ready = template::ready(self.host, home, &self.root, name, wanted, Consent::Approved, cancel);
        ready.map_err(|error| match error {
            // As there is data, `calve up` would make no template.
            Error::Failed { text, remedy: Remedy::CorrectCommand } => {
                Error::failed(text, Remedy::CorrectCommandOfReset(service.service.clone()))
            }
            other => other,
        })
    }

    fn not_started(&self, made: &Service, error: DbError) -> Error {
        let name = made.service.clone();
        let text = format!("the service `{name}` was not started: {error}");
        let remedy = match &error {
            DbError::ServerFailed { full: None, .. } => Remedy::ReadLog(name),
            DbError::ProgramGone { .. } | DbError::ServiceNotUsable { .. } => {
                let template = self.wanted_template(made).unwrap_or_else(|_| made.template.clone());
                Remedy::RestoreVersion { service: name, template }
            }
            _ => return error.into(),
        };
        Error::failed(text, remedy)
    }

    pub(crate) fn named(&self, name: Option<&str>) -> Result<&Service> {
        let found = match name {
            Some(name) => self.made.get(name),
            None if self.made.len() == 1 => self.made.values().next(),
            None => None,
        };
        found.ok_or_else(|| {
            let names: Vec<String> = self.made.keys().cloned().collect();
            let text = match name {
                Some(name) => format!("this worktree has no data of a service `{}`", name.escape_default()),
                None if names.is_empty() => "this worktree has no data of any service".into(),
                None => "this worktree has several services".into(),
            };
            let remedy = match (names.is_empty(), self.wanted.is_empty()) {
                (false, _) => Remedy::NameOneOf(names),
                (true, false) => Remedy::CloneData,
                (true, true) => Remedy::NameServices,
            };
            Error::failed(text, remedy)
        })
    }
}
