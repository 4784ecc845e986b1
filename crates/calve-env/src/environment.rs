use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use calve_core::CancelToken;
use calve_db::{Address, DatabaseTemplate, LossRule, Service};
use calve_git::Config;
use calve_git::environment::{LeasedPort, Leases, check_original, root_of};

use crate::env_files::{self, RewrittenFiles};
use crate::error::{Error, Result};
use crate::host::{Event, Host, reap_trash, swept_home};
use crate::ports::ports_of;
use crate::remedy::Remedy;
use crate::services::Services;

pub struct Environment<'h> {
    host: &'h dyn Host,
    pub root: PathBuf,
    pub config: Config,
}

pub struct StartedServices<'h> {
    pub ports: Vec<LeasedPort>,
    pub services: Services<'h>,
    /// Names of the services that did not run before.
    pub started: Vec<String>,
    pub env_files: RewrittenFiles,
}

/// Data that was put back.
pub struct ServiceReset<'h> {
    pub services: Services<'h>,
    pub service: String,
    /// The files that got its URL, if that is new.
    pub env_files: Result<RewrittenFiles>,
    /// The start of its server, if that ran before.
    pub started: Result<()>,
}

impl<'h> Environment<'h> {
    pub fn find(host: &'h dyn Host, start: &Path) -> Result<Self> {
        Self::of_root(host, &root_of(start)?)
    }

    /// Fails for a copy of a worktree, which would act on the original's environment.
    pub fn of_root(host: &'h dyn Host, root: &Path) -> Result<Self> {
        check_original(root)?;
        Ok(Self { host, root: root.to_path_buf(), config: Config::of_worktree(root)? })
    }

    /// Returns the worktree's ports, leasing them if needed.
    pub fn ports(&self) -> Result<Vec<LeasedPort>> {
        ports_of(self.host, &self.root, &self.config, Leases::lease)
    }

    pub fn held_ports(&self) -> Result<Vec<LeasedPort>> {
        ports_of(self.host, &self.root, &self.config, Leases::held)
    }

    /// Gives the worktree other ports. Returns the former ports and the new ones.
    pub fn renew_ports(&self) -> Result<(Vec<LeasedPort>, Vec<LeasedPort>)> {
        ports_of(self.host, &self.root, &self.config, Leases::renew)
    }

    pub fn rewrite_files(&self, variables: &[(String, String)]) -> Result<RewrittenFiles> {
        env_files::rewrite(&self.root, self.config.env_file.clone(), variables)
    }

    pub fn services(&self) -> Result<Services<'h>> {
        Services::find(self.host, &self.root, self.config.services.clone())
    }

    /// Returns the services, or reports a damaged record and returns none: the ports are useful without them.
    pub fn readable_services(&self) -> Result<Services<'h>> {
        match self.services() {
            Err(error) if error.is_damaged_record() => {
                self.host.report(Event::Failure("the services are left out", error));
                Ok(Services::none(self.host, &self.root))
            }
            services => services,
        }
    }

    /// Returns the services with these names, or all without names.
    pub fn chosen(&self, names: &[String]) -> Result<Services<'h>> {
        let mut services = self.services()?;
        services.choose(names)?;
        Ok(services)
    }

    /// Leases the ports and starts the named services, or all. Missing data is cloned, and env files get its URL.
    pub fn up(&self, names: &[String], cancel: &CancelToken) -> Result<StartedServices<'h>> {
        let mut services = self.chosen(names)?;
        let ports = self.ports()?;
        let started = services.start(cancel)?;
        let variables = Self::variables(&ports, &services)?;
        let configured = self.config.env_file.clone();
        let env_files = env_files::refresh(&self.root, configured, !services.origins.is_empty(), &variables);
        Ok(StartedServices { ports, services, started, env_files })
    }

    /// Puts the data of a service (the only one, without a name) back to the template wanted now. Asks `may_lose` about
    /// written data, and about a template of another engine.
    pub fn reset<E: From<Error>>(
        &self,
        name: Option<&str>,
        may_lose: impl Fn(&Service, &DatabaseTemplate) -> std::result::Result<(), E>,
        cancel: &CancelToken,
    ) -> std::result::Result<ServiceReset<'h>, E> {
        let mut services = self.services()?;
        let former = services.named(name)?.clone();
        let home = swept_home(self.host)?;
        let was_running = former.server(&home).map_err(Error::from)?.is_some();
        let template = services.template_now(&home, &former, cancel)?;
        let wanted = calve_db::template_with_program(&home, &template).map_err(Error::from)?;
        // A template that was replaced under its own name is refused, whatever the answer: the file names no other.
        let has_new_url = template != former.template && wanted.program.engine != former.program.engine;
        // Checked only now: clients may write while a command makes the template, which can take long.
        let is_asked = has_new_url || calve_db::is_written(&home, &former).map_err(Error::from)?;
        if is_asked {
            may_lose(&former, &wanted)?;
        }
        let engine = has_new_url.then_some(&*wanted.program.engine);
        let put_back = |rule| calve_db::reset_service(&home, &former.name, &template, engine, rule, cancel);
        let start_again = || -> Result<()> {
            if was_running {
                calve_db::start_service(&home, &former.name, &self.host.supervisor()?, cancel)?;
            }
            Ok(())
        };
        let mut reset = put_back(LossRule::from_consent(is_asked));
        // Its server had not written everything yet, or a client wrote until its end.
        if matches!(reset, Err(calve_db::Error::ServiceWritten { .. })) {
            start_again()?;
            may_lose(&former, &wanted)?;
            reset = put_back(LossRule::Accept);
        }
        let reset = reset.map_err(Error::from)?;
        services.made.insert(former.service.clone(), reset);
        let rewrite = || self.rewrite_files(&Self::variables(&self.ports()?, &services)?);
        let env_files = if has_new_url { rewrite() } else { Ok(RewrittenFiles::default()) };
        // Even if the files could not be written.
        let started = start_again().and_then(|()| reap_trash(self.host, &home));
        Ok(ServiceReset { services, service: former.service, env_files, started })
    }

    pub fn variables(ports: &[LeasedPort], services: &Services<'_>) -> Result<Vec<(String, String)>> {
        let mut all: Vec<_> = ports.iter().map(|port| (port.variable.clone(), port.number.to_string())).collect();
        all.extend(services.variables()?);
        Ok(all)
    }

    /// Returns the variables for a command of the user's. Programs of the services' engines find no other server, so
    /// this fails while a service has no data.
    pub fn of_command(ports: &[LeasedPort], services: &Services<'_>) -> Result<BTreeMap<String, Option<String>>> {
        if let Some(name) = services.wanted.keys().find(|name| !services.made.contains_key(*name)) {
            return Err(Error::failed(format!("the service `{name}` has no data"), Remedy::CloneData));
        }
        let mut all = Address::environment_of_all(services.addresses()?);
        all.extend(Self::variables(ports, services)?.into_iter().map(|(name, value)| (name, Some(value))));
        Ok(all)
    }
}
