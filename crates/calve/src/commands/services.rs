//! The services of a worktree: databases of its own, whose data goes with it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use calve_core::{CancelToken, ShownPath};
use calve_db::{DoomedService, Error, Home, NewService, Service, UnsavedDataRule, WrittenDataRule};
use calve_git::ServiceConfig;
use calve_git::environment::{Keeper, data_source, forget_data_source};
use calve_git::escape::worktrees_of;
use calve_git::worktree::{self, UnsavedItem, Worktree, WorktreeInfo};
use calve_receipt::{ServiceReceipt, ServiceState, path};

use super::ahead::{DataRequest, DonorRule, EarlyClones, Source};
use super::service_template::{self, Consent};
use super::{db, du};
use crate::cli::worktree::DataFrom;
use crate::failure::{FAILED, Failure};
use crate::output;

/// The source of a service's data, for people.
pub(crate) enum DataOrigin {
    Template(String),
    Worktree {
        /// None of data that was kept, of which the worktree is gone.
        path: Option<PathBuf>,
        server: String,
        runs: bool,
        /// Its data was made before the template that there is now.
        is_older: bool,
    },
}

/// Those that a configuration names, and those that a worktree has data of.
#[derive(Default)]
pub(crate) struct Services {
    wanted: BTreeMap<String, ServiceConfig>,
    made: BTreeMap<String, Service>,
    /// Where the data comes from that was cloned now.
    origins: BTreeMap<String, DataOrigin>,
    /// Those that got no data, and why.
    lacking: Vec<(String, Failure)>,
    /// The names of those to start or stop; all when there are none.
    only: Vec<String>,
    /// `None` where nothing is wanted.
    home: Option<Home>,
}

impl Services {
    /// Finds the services of the worktree with this root.
    pub(crate) fn of(root: &Path, wanted: BTreeMap<String, ServiceConfig>) -> Result<Self, Failure> {
        let keeper = Keeper::of(root)?;
        if wanted.is_empty() && keeper.is_none() {
            return Ok(Self::default());
        }
        let home = db::unswept_home()?;
        let made = keeper.map_or(Ok(Vec::new()), |keeper| kept(&home, &keeper))?;
        let made = made.into_iter().map(|service| (service.service.clone(), service)).collect();
        Ok(Self { wanted, made, home: Some(home), ..Self::default() })
    }

    /// Limits what is started or stopped to these, unless there are none.
    pub(crate) fn choose(&mut self, names: &[String]) -> Result<(), Failure> {
        let is_known = |name: &String| self.wanted.contains_key(name) || self.made.contains_key(name);
        if let Some(name) = names.iter().find(|name| !is_known(name)) {
            let known: BTreeSet<&str> = self.wanted.keys().chain(self.made.keys()).map(String::as_str).collect();
            let hint = match known.is_empty() {
                true => "name services in .calve.toml first".to_owned(),
                false => format!("name one of them: {}", known.into_iter().collect::<Vec<_>>().join(", ")),
            };
            let text = format!("this worktree has no service `{}`", name.escape_default());
            return Err(Failure::stated(FAILED, text, hint));
        }
        self.only = names.to_vec();
        Ok(())
    }

    pub(crate) fn is_chosen(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    /// Clones the data of those that have none, from those of a donor that come from the same template; what was cloned ahead is taken.
    /// One without a template gets none, which stops no other.
    pub(crate) fn make(
        &mut self,
        root: &Path,
        donor: Option<&Keeper>,
        rule: DonorRule,
        mut ahead: EarlyClones,
        consent: Consent,
        cancel: &CancelToken,
    ) -> Result<(), Failure> {
        let Some(home) = &self.home else { return Ok(()) };
        let missing: Vec<_> =
            self.wanted.iter().filter(|(name, _)| !self.made.contains_key(*name) && self.is_chosen(name)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let keeper = match Keeper::of(root)? {
            Some(keeper) => keeper,
            None => Keeper::make(root, &calve_db::new_keeper_id()?)?,
        };
        // Without a donor, a command that was killed may have left a note of it.
        let donor = match (donor, data_source(root)?) {
            (Some(donor), _) => Some(donor.clone()),
            (None, Some(source)) => noted(root, &source)?,
            (None, None) => None,
        };
        let donated = donor.as_ref().map_or(Ok(Vec::new()), |donor| kept(home, donor))?;
        for (name, config) in missing {
            let source = service_template::name(root, name, config).and_then(|template| {
                match Source::of(name, &template, &donated, rule) {
                    Source::Template(template) => {
                        let wanted = (name.as_str(), config);
                        service_template::ready(home, root, template, wanted, consent, cancel).map(Source::Template)
                    }
                    data => Ok(data),
                }
            });
            let source = match source {
                Ok(source) => source,
                Err(failure) if cancel.is_cancelled() => return Err(failure),
                Err(failure) => {
                    self.lacking.push((name.clone(), failure));
                    continue;
                }
            };
            let origin = match (&source, donated.iter().find(|donor| source.is(donor))) {
                (Source::Template(template), _) => DataOrigin::Template(template.clone()),
                (Source::Service(_), donor) => DataOrigin::Worktree {
                    path: donor
                        .and_then(|donor| Keeper::root(Path::new(&donor.keeper), &donor.keeper_id).ok().flatten()),
                    server: donor.map(|donor| donor.name.clone()).unwrap_or_default(),
                    runs: donor.is_some_and(|donor| donor.server(home).is_some()),
                    is_older: donor.is_some_and(|donor| {
                        calve_db::service_template(home, &donor.template)
                            .is_ok_and(|template| template.made_unix_s > donor.made_unix_s)
                    }),
                },
            };
            let data = ahead.take(name, &source).unwrap_or_else(|| source.clone_data(home, name, cancel))?;
            let wanted = NewService { service: name, keeper_id: &keeper.id, keeper: keeper.entry.clone().into() };
            self.made.insert(name.clone(), calve_db::create_service(home, wanted, data)?);
            self.origins.insert(name.clone(), origin);
        }
        Ok(())
    }

    /// Starts the servers of those that are wanted. Returns the names of those that did not run before.
    pub(crate) fn start(&mut self, root: &Path, cancel: &CancelToken) -> Result<Vec<String>, Failure> {
        self.make(root, None, DonorRule::SameTemplate, EarlyClones::default(), Consent::Approved, cancel)?;
        if self.wanted.keys().all(|name| self.made.contains_key(name)) {
            forget_data_source(root)?;
        }
        let Some(home) = &self.home else { return Ok(Vec::new()) };
        let mut started = Vec::new();
        for (name, service) in &self.made {
            if !self.wanted.contains_key(name) || !self.is_chosen(name) {
                continue;
            }
            let was_running = service.server(home).is_some();
            match calve_db::start_service(home, &service.name, &db::supervisor()?, cancel) {
                Ok(_) if was_running => {}
                Ok(_) => started.push(name.clone()),
                Err(error @ Error::ServerFailed { .. }) => {
                    let text = format!("the service `{name}` was not started: {error}");
                    return Err(Failure::stated(FAILED, text, format!("read its log: calve logs {name}")));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(started)
    }

    /// Ends the servers of all. Returns the names of those that ran.
    pub(crate) fn stop(&self, unsaved: UnsavedDataRule, cancel: &CancelToken) -> Result<Vec<String>, Failure> {
        let Some(home) = &self.home else { return Ok(Vec::new()) };
        let mut stopped = Vec::new();
        for (name, service) in self.made.iter().filter(|(name, _)| self.is_chosen(name)) {
            if calve_db::stop_service(home, &service.name, unsaved, cancel)? {
                stopped.push(name.clone());
            }
        }
        Ok(stopped)
    }

    /// Returns the variables of the wanted services that have data.
    pub(crate) fn variables(&self) -> Result<Vec<(String, String)>, Failure> {
        let Some(home) = &self.home else { return Ok(Vec::new()) };
        let has_data = self.wanted.iter().filter_map(|(name, config)| Some((config, self.made.get(name)?)));
        let variable =
            |(config, service): (&ServiceConfig, &Service)| Ok((config.variable.clone(), service.address(home)?.url));
        has_data.map(variable).collect()
    }

    /// Returns where the data of each service comes from that was cloned now.
    pub(crate) fn origins(&self) -> impl Iterator<Item = (&String, &DataOrigin)> {
        self.origins.iter()
    }

    /// Says which got no data, and why.
    pub(crate) fn say_lacking(&self) {
        for (name, failure) in &self.lacking {
            let Some(receipt) = failure.receipt() else { continue };
            let hint = receipt.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            output::say(&format!("the service `{name}` has no data: {}{hint}", receipt.message));
        }
    }

    /// Takes out the first failure of a command that was to make a template, which is like that of a hook.
    pub(crate) fn failed(&mut self) -> Option<Failure> {
        let is_failure = |(_, failure): &(String, Failure)| matches!(failure, Failure::Stated { code: FAILED, .. });
        self.lacking.iter().position(is_failure).map(|at| self.lacking.remove(at).1)
    }

    /// Fails if one of them got no data.
    pub(crate) fn complete(&mut self) -> Result<(), Failure> {
        let last = self.lacking.pop();
        self.lacking.drain(..).for_each(|(_, failure)| _ = output::failure(&failure));
        last.map_or(Ok(()), |(_, failure)| Err(failure))
    }

    /// Says which of the wanted services of the worktree with this root have no data, and how they get it.
    pub(crate) fn say_without_data(&self, root: &Path) -> Result<(), Failure> {
        let Some(home) = &self.home else { return Ok(()) };
        for (name, config) in self.wanted.iter().filter(|(name, _)| !self.made.contains_key(*name)) {
            let how = service_template::obstacle(home, root, name, config)?;
            let how = how.unwrap_or_else(|| "`calve up` clones it".into());
            output::say(&format!("the service `{name}` has no data yet; {how}"));
        }
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.wanted.is_empty() && self.made.is_empty()
    }

    /// Returns the last lines of the log of the named service, or of the only one.
    pub(crate) fn log(&self, name: Option<&str>) -> Result<String, Failure> {
        self.chosen(name).map(Service::log)
    }

    /// Puts the data of one, or of the only one, back to its template, or to that of its present inputs. A server that ran is started again.
    /// Returns its name.
    pub(crate) fn reset(
        &mut self,
        root: &Path,
        name: Option<&str>,
        consent: impl FnOnce(&str) -> Result<(), Failure>,
        cancel: &CancelToken,
    ) -> Result<String, Failure> {
        let service = self.chosen(name)?.clone();
        let home = db::home()?;
        let was_running = service.server(&home).is_some();
        let template = match self.wanted.get(&service.service).filter(|wanted| wanted.recipe.is_some()) {
            // The one for what its inputs are now.
            Some(wanted) => {
                let (service, consent) = (service.service.as_str(), Consent::Approved);
                let name = service_template::name(root, service, wanted)?;
                Some(service_template::ready(&home, root, name, (service, wanted), consent, cancel)?)
            }
            None => None,
        };
        // Only now: a command that makes the template may take its time, while clients go on.
        if calve_db::is_written(&home, &service)? {
            consent(&service.service)?;
        }
        let reset = calve_db::reset_service(&home, &service.name, template.as_deref(), cancel)?;
        if was_running {
            calve_db::start_service(&home, &service.name, &db::supervisor()?, cancel)?;
        }
        db::reap_trash(&home)?;
        self.made.insert(service.service.clone(), reset);
        Ok(service.service)
    }

    fn chosen(&self, name: Option<&str>) -> Result<&Service, Failure> {
        let found = match name {
            Some(name) => self.made.get(name),
            None if self.made.len() == 1 => self.made.values().next(),
            None => None,
        };
        found.ok_or_else(|| {
            let names: Vec<&str> = self.made.keys().map(String::as_str).collect();
            let text = match name {
                Some(name) => format!("this worktree has no data of a service `{}`", name.escape_default()),
                None if names.is_empty() => "this worktree has no data of any service".into(),
                None => "this worktree has several services".into(),
            };
            let hint = match names.is_empty() {
                true => "name services in .calve.toml, then run `calve up`".into(),
                false => format!("name one of them: {}", names.join(", ")),
            };
            Failure::stated(FAILED, text, hint)
        })
    }

    /// Returns [`Services::receipts`] with the memory and the disk space that each service takes up.
    pub(crate) fn measured(&self) -> Result<Vec<ServiceReceipt>, Failure> {
        let Some(home) = &self.home else { return Ok(Vec::new()) };
        let measure = |receipt: ServiceReceipt| {
            let made = self.made.get(&receipt.name);
            measured(receipt, home, made)
        };
        Ok(self.receipts()?.into_iter().map(measure).collect())
    }

    pub(crate) fn receipts(&self) -> Result<Vec<ServiceReceipt>, Failure> {
        let Some(home) = &self.home else { return Ok(Vec::new()) };
        let mut names: Vec<&String> = self.wanted.keys().chain(self.made.keys()).collect();
        names.sort_unstable();
        names.dedup();
        let one = |name: &String| {
            let data_from = self.origins.get(name).and_then(|origin| match origin {
                DataOrigin::Worktree { path: Some(from), .. } => Some(path(from)),
                _ => None,
            });
            let lacking = self.lacking.iter().find(|(lacking, _)| lacking == name);
            let no_data_because = lacking.and_then(|(_, failure)| failure.receipt()).map(|receipt| receipt.message);
            let receipt = receipt(home, name, self.wanted.get(name), self.made.get(name))?;
            Ok(ServiceReceipt { data_from, no_data_because, ..receipt })
        };
        names.into_iter().map(one).collect()
    }
}

fn receipt(
    home: &Home,
    name: &str,
    wanted: Option<&ServiceConfig>,
    made: Option<&Service>,
) -> Result<ServiceReceipt, Failure> {
    let state = match made {
        None => ServiceState::Absent,
        Some(service) if service.server(home).is_some() => ServiceState::Running,
        Some(_) => ServiceState::Stopped,
    };
    Ok(ServiceReceipt {
        name: name.to_owned(),
        variable: wanted.map(|wanted| wanted.variable.clone()),
        // Data that were made may be of another one than is wanted now, and are put back to that.
        template: match (made, wanted) {
            (Some(made), _) => made.template.clone(),
            (None, wanted) => wanted.map(|wanted| wanted.template.clone()).unwrap_or_default(),
        },
        state,
        url: made.map(|made| made.address(home)).transpose()?.map(|address| address.url),
        server: made.map(|made| made.name.clone()),
        data_directory: made.map(|made| path(made.data_directory())),
        data_from: None,
        no_data_because: None,
        memory_bytes: None,
        disk_bytes: None,
    })
}

/// Adds to a receipt the memory and the disk space that the service takes up.
fn measured(receipt: ServiceReceipt, home: &Home, made: Option<&Service>) -> ServiceReceipt {
    let Some(made) = made else { return receipt };
    ServiceReceipt {
        memory_bytes: made.server(home).and_then(|server| calve_db::memory_bytes(server.pid)),
        // Files come and go while it is looked at.
        disk_bytes: du::taken(&[made.data_directory()], &CancelToken::default()).ok(),
        ..receipt
    }
}

impl DataFrom {
    /// Returns what may be cloned ahead for the services, from the data of `source` or a template. Fails if the user has named a source that
    /// has none.
    pub(crate) fn check(
        &self,
        wanted: &BTreeMap<String, ServiceConfig>,
        source: Option<&Keeper>,
    ) -> Result<Vec<DataRequest>, Failure> {
        if wanted.is_empty() || matches!(self, Self::Nowhere) {
            return Ok(Vec::new());
        }
        let home = db::home()?;
        sweep(&home)?;
        let donated = source.map_or(Ok(Vec::new()), |keeper| kept(&home, keeper))?;
        let mut requests = Vec::new();
        for (name, config) in wanted {
            let source = Source::of(name, &config.template, &donated, self.rule());
            match (&source, self) {
                (Source::Template(_), Self::Worktree(worktree)) => {
                    let text = format!("`{}` has no data of the service `{name}`", ShownPath(worktree));
                    return Err(Failure::stated(FAILED, text, "run `calve up` there, or leave --data-from out"));
                }
                // The files that say which template it is are those of the new worktree.
                _ if config.recipe.is_some() && self.rule() == DonorRule::SameTemplate => continue,
                (Source::Template(template), Self::Template) => _ = calve_db::service_template(&home, template)?,
                (Source::Template(template), _) => match calve_db::service_template(&home, template) {
                    Err(error @ Error::BadName { .. }) => return Err(error.into()),
                    // The worktree is made without its data then.
                    Err(_) => continue,
                    Ok(_) => {}
                },
                (Source::Service(_), _) => {}
            }
            requests.push((name.clone(), source));
        }
        Ok(requests)
    }

    /// Returns which data of another worktree counts.
    pub(crate) fn rule(&self) -> DonorRule {
        if matches!(self, Self::Worktree(_)) { DonorRule::Any } else { DonorRule::SameTemplate }
    }

    /// Returns the worktree that data is cloned from. Data of one that is gone is named like its server.
    pub(crate) fn source(&self, donor: &Path) -> Result<Option<Keeper>, Failure> {
        let Self::Worktree(name) = self else {
            return Ok(if matches!(self, Self::Donor) { Keeper::of(donor)? } else { None });
        };
        let (_, mut found) = worktree::find_all(donor, std::slice::from_ref(name))?;
        match (found.pop().transpose(), name.to_str()) {
            (Ok(Some(root)), _) => Ok(Keeper::of(&root)?),
            (Err(error), Some(name)) => match calve_db::find_service(&db::unswept_home()?, name) {
                Ok(service) => Ok(Some(Keeper::named(service.keeper, service.keeper_id))),
                Err(_) => Err(error.into()),
            },
            (found, _) => found.map(|_| None).map_err(Failure::from),
        }
    }
}

/// Returns the data of a worktree, which is named by its branch, path or name: all of it, or that of one service. Fails if there is none.
pub(crate) fn of_named(home: &Home, name: &Path, service: Option<&str>) -> Result<Vec<Service>, Failure> {
    let (_, mut found) = worktree::find_all(&std::env::current_dir()?, &[name.to_path_buf()])?;
    let keeper = found.pop().transpose()?.map_or(Ok(None), |root| Keeper::of(&root))?;
    let mut services = keeper.map_or(Ok(Vec::new()), |keeper| kept(home, &keeper))?;
    services.retain(|found| service.is_none_or(|service| found.service == service));
    if services.is_empty() {
        let of = service.map_or("any service".into(), |service| format!("a service `{}`", service.escape_default()));
        let text = format!("`{}` has no data of {of}", ShownPath(name));
        return Err(Failure::stated(FAILED, text, "`calve up` in that worktree clones the data of its services"));
    }
    Ok(services)
}

/// Returns the worktree of this repository with that word, from whose data the one with this root was to get its own.
fn noted(root: &Path, word: &str) -> Result<Option<Keeper>, Failure> {
    let others = worktrees_of(root)?.others;
    let found = others.iter().filter_map(|other| Keeper::of(other).ok()?).find(|keeper| keeper.id == word);
    if found.is_none() {
        output::say("the worktree whose data this one was to get is gone, so it gets that of the template");
    }
    Ok(found)
}

/// Returns the services of a worktree, and records its new place if it was moved. A worktree of a copied repository has none: they belong
/// to the original.
fn kept(home: &Home, keeper: &Keeper) -> Result<Vec<Service>, Failure> {
    let Some(own) = seen(home, keeper)? else {
        keeper.forget()?;
        return Ok(Vec::new());
    };
    let entry = keeper.entry.as_os_str();
    if own.iter().any(|service| service.keeper != entry) {
        own.iter().try_for_each(|service| calve_db::set_keeper(home, service, entry.to_owned()))?;
    }
    Ok(own)
}

/// Returns the services of a worktree, and writes nothing. `None`: its repository is a copy.
fn seen(home: &Home, keeper: &Keeper) -> Result<Option<Vec<Service>>, Failure> {
    let mut own = calve_db::services(home)?;
    own.retain(|service| service.keeper_id == keeper.id);
    let other = own.iter().map(|service| Path::new(&service.keeper)).find(|other| *other != keeper.entry);
    let is_copy = match other {
        Some(other) => Keeper::is_at(other, &keeper.id)? && !keeper.is(other),
        None => false,
    };
    Ok((!is_copy).then_some(own))
}

/// Finishes what killed removals have begun.
fn sweep(home: &Home) -> Result<(), Failure> {
    Ok(calve_db::sweep_doomed(home, &has_no_keeper)?)
}

/// Returns whether the worktree of this data is known to be gone.
pub(crate) fn has_no_keeper(service: &Service) -> bool {
    // An error does not tell that it is gone.
    matches!(Keeper::is_at(Path::new(&service.keeper), &service.keeper_id), Ok(false))
}

/// Tells data that another process removes with its worktree from what failed.
fn unless_going(service: &Service, error: Error) -> Failure {
    match error {
        Error::UnknownService(_) => {
            let name = Path::new(&service.keeper).file_name().unwrap_or_default();
            let text = format!("the worktree `{}` is being removed by another calve", ShownPath(name));
            Failure::stated(FAILED, text, "`calve worktree list` shows what there is")
        }
        other => other.into(),
    }
}

/// Returns the services of each of these worktrees. The caller wants to know more, so errors are only said.
pub(crate) fn of_worktrees(all: &[WorktreeInfo]) -> Vec<Vec<ServiceReceipt>> {
    let none = || all.iter().map(|_| Vec::new()).collect();
    let Ok(home) = db::unswept_home() else { return none() };
    let found = sweep(&home).and_then(|()| {
        let one = |listed: &WorktreeInfo| {
            let Some(keeper) = Keeper::of_worktree(&listed.worktree)? else { return Ok(Vec::new()) };
            let one = |made: &Service| {
                receipt(&home, &made.service, None, Some(made)).map(|receipt| measured(receipt, &home, Some(made)))
            };
            seen(&home, &keeper)?.iter().flatten().map(one).collect()
        };
        all.iter().map(one).collect::<Result<Vec<_>, Failure>>()
    });
    found.unwrap_or_else(|failure| {
        output::failure(&failure);
        none()
    })
}

/// The services of a worktree that is going to be removed.
pub(crate) struct LeavingServices {
    home: Home,
    services: Vec<Service>,
    doomed: Vec<DoomedService>,
}

impl LeavingServices {
    /// Returns the services of a worktree, or `None` if it has none.
    pub(crate) fn of(worktree: &Worktree) -> Result<Option<Self>, Failure> {
        Self::kept_by(Keeper::of_worktree(worktree)?)
    }

    /// Returns the services of the worktree with this root, or `None` if it has none.
    pub(crate) fn at(root: &Path) -> Result<Option<Self>, Failure> {
        Self::kept_by(Keeper::of(root)?)
    }

    fn kept_by(keeper: Option<Keeper>) -> Result<Option<Self>, Failure> {
        let Some(keeper) = keeper else { return Ok(None) };
        let home = db::home()?;
        sweep(&home)?;
        let services = kept(&home, &keeper)?;
        Ok((!services.is_empty()).then_some(Self { home, services, doomed: Vec::new() }))
    }

    /// Lists the data that may differ from what it was cloned from. Servers go on.
    pub(crate) fn unsaved(&self) -> Result<Vec<UnsavedItem>, Failure> {
        let mut items = Vec::new();
        for service in &self.services {
            if calve_db::is_written(&self.home, service).map_err(|error| unless_going(service, error))? {
                items.push(UnsavedItem::Service(service.service.clone()));
            }
        }
        Ok(items)
    }

    /// Ends the servers. Fails if data was written to, and that is not accepted.
    pub(crate) fn end(&mut self, written: WrittenDataRule) -> Result<(), Failure> {
        for service in &self.services {
            match calve_db::doom(&self.home, &service.name, written) {
                Ok(doomed) => self.doomed.push(doomed),
                Err(error) => {
                    let failure = unless_going(service, error);
                    self.spare();
                    return Err(failure);
                }
            }
        }
        Ok(())
    }

    /// Leaves the data after all.
    pub(crate) fn spare(&mut self) {
        for error in self.doomed.drain(..).filter_map(|doomed| doomed.spare().err()) {
            output::say(&format!("warning: {error}"));
        }
    }

    /// Removes the data. The servers have ended.
    pub(crate) fn remove(self) -> Result<(), Failure> {
        self.doomed.into_iter().try_for_each(|doomed| doomed.remove(&self.home))?;
        db::reap_trash(&self.home)
    }
}
