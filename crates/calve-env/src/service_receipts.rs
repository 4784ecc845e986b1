use calve_core::space::{DiskUsageOptions, disk_usage};
use calve_db::{Home, Service};
use calve_git::ServiceConfig;
use calve_git::environment::WorktreeId;
use calve_git::worktree::WorktreeInfo;
use calve_receipt::{ServiceReceipt, ServiceState, path};

use crate::error::Result;
use crate::host::{Host, database_home};
use crate::origin::DataOrigin;
use crate::ownership::{own_of, sweep};
use crate::services::Services;

impl Services<'_> {
    /// Returns [`Services::receipts`] with each service's memory, disk space and reset template.
    pub fn measured(&self) -> Result<Vec<ServiceReceipt>> {
        let Some(home) = &self.home else { return Ok(Vec::new()) };
        let measure = |receipt: ServiceReceipt| {
            let made = self.made.get(&receipt.name);
            // If there is no template, the reset itself reports why.
            let reset_template = made.map(|made| self.wanted_template(made).unwrap_or_else(|_| made.template.clone()));
            measured(self.host, ServiceReceipt { reset_template, ..receipt }, home, made)
        };
        Ok(self.receipts()?.into_iter().map(measure).collect())
    }

    pub fn receipts(&self) -> Result<Vec<ServiceReceipt>> {
        let Some(home) = &self.home else { return Ok(Vec::new()) };
        let mut names: Vec<&String> = self.wanted.keys().chain(self.made.keys()).collect();
        names.sort_unstable();
        names.dedup();
        let described = |name: &String| {
            let data_from = match self.origins.get(name) {
                Some(DataOrigin::Worktree { path: from, .. }) => from.as_ref().map(path),
                _ => None,
            };
            let lacking = self.lacking.iter().find(|(lacking, _)| lacking == name);
            let no_data_because = lacking.map(|(_, error)| error.to_string());
            let receipt = receipt(home, name, self.wanted.get(name), self.made.get(name))?;
            Ok(ServiceReceipt { data_from, no_data_because, ..receipt })
        };
        names.into_iter().map(described).collect()
    }
}

fn receipt(home: &Home, name: &str, wanted: Option<&ServiceConfig>, made: Option<&Service>) -> Result<ServiceReceipt> {
    let state = match made {
        None => ServiceState::Absent,
        Some(service) if service.server(home)?.is_some() => ServiceState::Running,
        Some(_) => ServiceState::Stopped,
    };
    Ok(ServiceReceipt {
        name: name.to_owned(),
        variable: wanted.map(|wanted| wanted.variable.clone()),
        // Existing data may come from another template than the one wanted now.
        template: match (made, wanted) {
            (Some(made), _) => made.template.clone(),
            (None, wanted) => wanted.map(|wanted| wanted.template.clone()).unwrap_or_default(),
        },
        state,
        url: made.map(|made| made.address(home)).transpose()?.map(|address| address.url),
        server: made.map(|made| made.name.clone()),
        data_directory: made.map(|made| path(made.data_directory())),
        ..ServiceReceipt::default()
    })
}

fn measured(host: &dyn Host, receipt: ServiceReceipt, home: &Home, made: Option<&Service>) -> ServiceReceipt {
    let Some(made) = made else { return receipt };
    ServiceReceipt {
        memory_bytes: made.server(home).ok().flatten().and_then(|record| calve_db::memory_bytes(record.server.pid?)),
        disk_bytes: data_bytes(host, made),
        ..receipt
    }
}

/// Returns the most space that removing the data frees. `None` if it cannot be measured: its files come and go.
pub fn data_bytes(host: &dyn Host, service: &Service) -> Option<u64> {
    let options = DiskUsageOptions { scratch: Some(host.scratch()), ..DiskUsageOptions::default() };
    Some(disk_usage(&[service.data_directory()], &options).ok()?.total.frees_max)
}

/// Returns each worktree's services; without a home there are none.
pub fn services_of_worktrees(host: &dyn Host, all: &[WorktreeInfo]) -> Result<Vec<Vec<ServiceReceipt>>> {
    let Ok(home) = database_home(host) else { return Ok(all.iter().map(|_| Vec::new()).collect()) };
    sweep(&home)?;
    // A list leaves out unreadable records.
    let services = calve_db::services(&home)?;
    let of_worktree = |listed: &WorktreeInfo| {
        let Some(owner) = WorktreeId::of_worktree(&listed.worktree)? else { return Ok(Vec::new()) };
        let described = |made: &Service| {
            receipt(&home, &made.service, None, Some(made)).map(|receipt| measured(host, receipt, &home, Some(made)))
        };
        own_of(&owner, services.clone())?.iter().flatten().map(described).collect()
    };
    all.iter().map(of_worktree).collect()
}
