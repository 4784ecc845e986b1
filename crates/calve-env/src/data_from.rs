use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use calve_core::internal::ShownPath;
use calve_db::{Error as DbError, Home, Service};
use calve_git::ServiceConfig;
use calve_git::environment::WorktreeId;
use calve_git::worktree::{self, AddReport, PlanDetails};

use crate::consent::Consent;
use crate::early_clones::{DataRequest, DonorRule, origin_of};
use crate::error::{Error, Result};
use crate::host::{Event, Host, database_home, swept_home};
use crate::origin::DataOrigin;
use crate::ownership::{kept, seen, sweep};
use crate::remedy::Remedy;
use crate::services::Services;
use crate::template;

#[derive(Debug, Clone, Default)]
pub enum DataFrom {
    /// The donor if it has data, else the templates.
    #[default]
    Donor,
    Template,
    /// Nothing yet: starting the services clones the templates.
    Nowhere,
    Worktree(PathBuf),
}

impl DataFrom {
    /// Returns the data to clone early, from `source` or a template. Fails if a source that the user named has none.
    pub(crate) fn requests(
        &self,
        host: &dyn Host,
        wanted: &BTreeMap<String, ServiceConfig>,
        source: Option<&WorktreeId>,
    ) -> Result<Vec<DataRequest>> {
        if !self.is_any(wanted) {
            return Ok(Vec::new());
        }
        let home = swept_home(host)?;
        sweep(&home)?;
        self.chosen(&home, wanted, &source.map_or(Ok(Vec::new()), |owner| kept(&home, owner))?)
    }

    fn is_any(&self, wanted: &BTreeMap<String, ServiceConfig>) -> bool {
        !wanted.is_empty() && !matches!(self, Self::Nowhere)
    }

    fn chosen(
        &self,
        home: &Home,
        wanted: &BTreeMap<String, ServiceConfig>,
        donated: &[Service],
    ) -> Result<Vec<DataRequest>> {
        let mut requests = Vec::new();
        if let Self::Worktree(source) = self
            && !wanted.is_empty()
            && donated.iter().all(|data| !wanted.contains_key(&data.service))
        {
            let names: Vec<&str> = wanted.keys().map(String::as_str).collect();
            let text = format!("`{}` has no data for the service `{}`", ShownPath(source), names.join("` or `"));
            return Err(Error::failed(text, Remedy::StartServicesThereOrNameNoSource));
        }
        for (name, config) in wanted {
            let template = &config.template;
            let donor = self.rule().donor(home, (name, config), template, donated);
            match (donor, self) {
                // The new worktree's own files determine the template.
                _ if config.recipe.is_some() && (donor.is_none() || self.rule() == DonorRule::SameTemplate) => continue,
                (None, Self::Template) => _ = calve_db::service_template(home, template)?,
                // Cloning checks the template's files. Without a template, the worktree is made without data.
                (None, _) if calve_db::template_with_program(home, template).is_err() => continue,
                _ => {}
            }
            requests.push((name.clone(), origin_of(donor, template)));
        }
        Ok(requests)
    }

    /// Finds where the data of a planned worktree would come from. Fails as [`Self::requests`] does.
    pub(crate) fn plan<'h>(
        &self,
        host: &'h dyn Host,
        plan: &AddReport<PlanDetails>,
        source: Option<&WorktreeId>,
        consent: Consent,
    ) -> Result<Services<'h>> {
        let AddReport { worktree, details, .. } = plan;
        let donor = &worktree.donor;
        let files = details.inputs.as_ref().map_or(donor, |inputs| &inputs.files);
        let prefers_donor = matches!(self, Self::Donor) && !worktree.provenance.is_untrusted();
        let wanted = details.services.as_ref().map(Clone::clone).unwrap_or_default();
        let mut planned = Services::none(host, donor);
        if !self.is_any(&wanted) && !self.is_any(&details.intent.services) {
            return Ok(planned);
        }
        let home = database_home(host)?;
        let donated = source.map_or(Ok(None), |owner| seen(&home, owner))?.unwrap_or_default();
        self.chosen(&home, &details.intent.services, &donated)?;
        for (name, mut config) in wanted {
            let template = match template::name_by(donor, files, &name, &config) {
                Ok(template) => template,
                Err(error) => {
                    planned.lacking.push((name.clone(), error));
                    planned.wanted.insert(name, config);
                    continue;
                }
            };
            let data = self.rule().donor(&home, (&name, &config), &template, &donated);
            let obstacle = match data {
                None => template::obstacle(host, &home, donor, &template, &config, consent)?,
                Some(_) => None,
            };
            match obstacle {
                Some(text) => planned.lacking.push((name.clone(), Error::Refused { text, remedy: None })),
                None => {
                    let other = donated.iter().find(|donor| donor.service == name);
                    let origin = DataOrigin::new(&home, data, &template, prefers_donor.then_some((&**donor, other)));
                    planned.origins.insert(name.clone(), origin);
                    config.template = data.map_or(template, |data| data.template.clone());
                }
            }
            planned.wanted.insert(name, config);
        }
        planned.home = Some(home);
        Ok(planned)
    }

    pub(crate) fn rule(&self) -> DonorRule {
        if matches!(self, Self::Worktree(_)) { DonorRule::Any } else { DonorRule::SameTemplate }
    }

    /// Returns the worktree whose data is cloned. Data of a removed worktree is named by its server.
    pub(crate) fn source(&self, host: &dyn Host, donor: &Path) -> Result<Option<WorktreeId>> {
        let Self::Worktree(name) = self else {
            return if matches!(self, Self::Donor) { readable(host, donor) } else { Ok(None) };
        };
        let (_, mut found) = worktree::find_all(donor, std::slice::from_ref(name))?;
        match (found.pop().transpose(), name.to_str()) {
            (Ok(Some(root)), _) => Ok(WorktreeId::read(&root)?),
            (Err(error), Some(name)) => match calve_db::find_service(&database_home(host)?, name) {
                Ok(service) => Ok(Some(WorktreeId { entry: service.worktree.entry.into(), id: service.worktree.id })),
                Err(damaged @ DbError::RecordDamaged(_)) => Err(damaged.into()),
                Err(_) => Err(error.into()),
            },
            (found, _) => found.map(|_| None).map_err(Error::from),
        }
    }
}

/// Returns the donor, unless it has no id or the record of its data is damaged.
fn readable(host: &dyn Host, donor: &Path) -> Result<Option<WorktreeId>> {
    let Some(owner) = WorktreeId::read(donor)? else { return Ok(None) };
    match database_home(host).and_then(|home| seen(&home, &owner)) {
        Err(error) if error.is_damaged_record() => {
            host.report(Event::Failure("no data of the donor is cloned", error));
            Ok(None)
        }
        // Other errors are reported once the data is needed.
        _ => Ok(Some(owner)),
    }
}
