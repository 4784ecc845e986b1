//! The data of the services of all worktrees, also of those that are gone.

use std::path::{Path, PathBuf};

use calve_core::{CancelToken, ShownPath};
use calve_db::{Home, Service, WrittenDataRule};
use calve_git::environment::Keeper;
use calve_receipt::human::size;
use calve_receipt::{DbServiceData, ServiceDataState, path};

use crate::commands::du;
use crate::failure::Failure;
use crate::output;

/// The data of a service, and whose it is.
pub(super) struct KeptData {
    service: Service,
    /// The root of its worktree, if that is where it was.
    worktree: Option<PathBuf>,
    state: ServiceDataState,
    disk_bytes: u64,
}

/// Returns all of it, by name.
pub(super) fn all(home: &Home) -> Result<Vec<KeptData>, Failure> {
    Ok(calve_db::services(home)?.into_iter().map(|service| KeptData::of(home, service)).collect())
}

fn root_of(service: &Service) -> Option<PathBuf> {
    Keeper::root(Path::new(&service.keeper), &service.keeper_id)
}

impl KeptData {
    fn of(home: &Home, service: Service) -> Self {
        let worktree = root_of(&service);
        let state = match (&worktree, service.server(home)) {
            (None, _) => ServiceDataState::Orphaned,
            (Some(_), Some(_)) => ServiceDataState::Running,
            (Some(_), None) => ServiceDataState::Stopped,
        };
        // Files come and go while it is looked at.
        let disk_bytes = du::taken(&[service.data_directory()], &CancelToken::default()).unwrap_or_default();
        Self { service, worktree, state, disk_bytes }
    }

    pub(super) fn name(&self) -> &String {
        &self.service.name
    }

    pub(super) fn receipt(&self) -> DbServiceData {
        let service = &self.service;
        DbServiceData {
            name: service.name.clone(),
            service: service.service.clone(),
            engine: service.engine.clone(),
            template: service.template.clone(),
            state: self.state,
            worktree: self.worktree.as_ref().map(path),
            keeper: path(Path::new(&service.keeper)),
            data_directory: path(service.data_directory()),
            disk_bytes: self.disk_bytes,
        }
    }

    /// Describes it, as in "orphaned  service `db` of `PATH`, which is gone, 41 MB".
    pub(super) fn line(&self) -> String {
        let whose = match &self.worktree {
            Some(worktree) => format!("`{}`", ShownPath(worktree)),
            None => format!("`{}`, which is gone", ShownPath(Path::new(&self.service.keeper))),
        };
        format!("{}  service `{}` of {whose}, {}", self.state, self.service.service, size(self.disk_bytes))
    }
}

/// Names the data whose worktree is gone, and removes it if it may be lost. Returns what stays and the names of what was removed.
pub(super) fn orphans(home: &Home, lose_data: bool) -> Result<(Vec<DbServiceData>, Vec<String>), Failure> {
    let (mut left, mut removed) = (Vec::new(), Vec::new());
    for data in all(home)?.into_iter().filter(|data| data.state == ServiceDataState::Orphaned) {
        let name = data.name();
        if !lose_data {
            output::say(&format!("`{name}`  {}", data.line()));
            left.push(data.receipt());
            continue;
        }
        match calve_db::doom(home, name, WrittenDataRule::Accept).and_then(|doomed| doomed.remove(home)) {
            Ok(()) => {
                output::say(&format!("removed the data of `{name}`  {}", data.line()));
                removed.push(name.clone());
            }
            Err(error) => {
                output::failure(&error.into());
                left.push(data.receipt());
            }
        }
    }
    if !left.is_empty() && !lose_data {
        output::say(
            "`calve worktree add --data-from NAME` gives such data to a new worktree, and `calve db gc --lose-data` removes all of it; after a \
             repository was moved, `calve env` in its worktrees says where they are now",
        );
    }
    Ok((left, removed))
}

/// Says which worktrees cannot be put back to a template any more once it is removed.
pub(super) fn say_users(home: &Home, template: &str) -> Result<(), Failure> {
    let mut users = calve_db::services(home)?;
    users.retain(|service| service.template == template);
    let roots: Vec<String> = users.iter().filter_map(root_of).map(|root| format!("`{}`", ShownPath(&root))).collect();
    if !roots.is_empty() {
        output::say(&format!("`calve reset` needs the template `{template}` in {}", roots.join(", ")));
    }
    Ok(())
}
