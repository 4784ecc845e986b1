//! Completes a worktree whose files exist: adds its ports, its data and its env files.

use std::path::Path;

use calve_core::CancelToken;
use calve_git::Config;
use calve_git::environment::{EnvFile, LeasedPort, Leases, OtherValues, WorktreeId, forget_data_source, other_values};
use calve_git::hooks::{Hook, HookEnvironment};
use calve_git::worktree::CarriedFiles;

use crate::consent::{self, Consent};
use crate::data_from::DataFrom;
use crate::early_clones::EarlyClones;
use crate::env_files;
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::host::{Event, Host};
use crate::ports::ports_of;
use crate::remedy::Remedy;
use crate::services::Services;

pub(crate) struct Incomplete<'a> {
    pub(crate) root: &'a Path,
    pub(crate) donor: &'a Path,
    pub(crate) files: &'a CarriedFiles,
    pub(crate) env_file: Option<&'a Path>,
    pub(crate) maker: Maker,
    pub(crate) data_from: &'a DataFrom,
    /// The worktree to clone from, and the donor's root if its data was preferred.
    pub(crate) data_source: (Option<&'a WorktreeId>, Option<&'a Path>),
    pub(crate) consent: Consent,
}

/// The maker of the worktree, which decides how much remains after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maker {
    /// New, and Calve's: a faulty configuration or create command costs it nothing else. It has no ports yet.
    Calve,
    /// A fault stops the setup, which can be repeated. It may have ports.
    Another,
}

#[derive(Default)]
pub struct OwnParts<'h> {
    /// The fault in its configuration, which left it without parts of its own.
    pub config_error: Option<calve_git::Error>,
    pub ports: Vec<LeasedPort>,
    /// `None` if an earlier step failed.
    pub services: Option<Services<'h>>,
    /// Names and values. `None` if an earlier step failed.
    pub variables: Option<Vec<(String, String)>>,
    pub env_files: Vec<EnvFile>,
    pub other_values: Vec<OtherValues>,
    /// Failures of commands that make templates, then the one that stopped the work.
    pub errors: Vec<Error>,
}

impl<'h> OwnParts<'h> {
    pub(crate) fn fill(
        &mut self,
        host: &'h dyn Host,
        worktree: &Incomplete<'_>,
        early: Option<EarlyClones<'_>>,
        cancel: &CancelToken,
    ) -> Result<()> {
        let Incomplete { root, donor, maker, data_from, .. } = *worktree;
        let config = self.config(worktree)?;
        let lease = if maker == Maker::Calve { Leases::lease_anew } else { Leases::lease };
        self.ports = ports_of(host, root, &config, lease)?;
        let mut services = Services::find(host, root, config.services)?;
        if !matches!(data_from, DataFrom::Nowhere) {
            services.make(worktree.data_source, data_from.rule(), early, worktree.consent, cancel)?;
        }
        self.errors = services.take_failures();
        let services = self.services.insert(services);
        let variables = Environment::variables(&self.ports, services)?;
        if maker == Maker::Another && !self.errors.is_empty() {
            return Ok(());
        }
        forget_data_source(root)?;
        self.env_files =
            env_files::write(root, donor, worktree.env_file, &worktree.files.env_files, config.env_file, &variables)?;
        self.other_values = other_values(root, &worktree.files.carried, &variables);
        self.variables = Some(variables);
        Ok(())
    }

    /// Runs the post-add hook. While a service has no data, it warns instead if `may_lack_data`, and fails otherwise.
    pub(crate) fn run_hook(
        &self,
        host: &dyn Host,
        text: &str,
        surroundings: HookEnvironment,
        may_lack_data: bool,
        cancel: &CancelToken,
    ) -> Result<()> {
        const NOT_RUN: &str = "the post-add hook did not run";
        let Some(services) = &self.services else { return Ok(()) };
        let variables = match Environment::of_command(&self.ports, services) {
            Ok(variables) => variables,
            Err(why) if may_lack_data && !cancel.is_cancelled() => {
                let why = Error::failed(why.to_string(), Remedy::RunCommandsAfterUp);
                host.report(Event::Failure(NOT_RUN, why));
                return Ok(());
            }
            Err(why) => return Err(Error::failed(format!("{NOT_RUN}: {why}"), Remedy::RunCommandsAfterUp)),
        };
        consent::run(host, Hook::PostAdd, text, &HookEnvironment { variables, ..surroundings }, cancel)
    }

    /// Reads the worktree's configuration, which its branch may have for another version of Calve.
    fn config(&mut self, worktree: &Incomplete<'_>) -> Result<Config> {
        match Config::of_worktree(worktree.root) {
            Err(error @ calve_git::Error::Config { .. }) if worktree.maker == Maker::Calve => {
                self.config_error = Some(error);
                Ok(Config::default())
            }
            config => Ok(config?),
        }
    }
}
