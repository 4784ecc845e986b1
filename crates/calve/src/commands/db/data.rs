//! The data of all worktrees' services, including those of missing worktrees.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use calve_core::internal::ShownPath;
use calve_db::{Home, LossRule, Service};
use calve_env::{data_bytes, last_root};
use calve_git::environment::WorktreeId;
use calve_receipt::human::size;
use calve_receipt::{DbServiceData, ServiceDataState, path};

use crate::commands::worktree::services::whose;
use crate::failure::{FAILED, Failure, REFUSED};
use crate::host::Program;
use crate::{operands, output, real_path};

/// First advice for data whose worktree is not found.
const IF_MOVED: &str =
    "if you moved the worktree, run `git worktree repair PATH…`, then `calve db gc` in the repository";

type Outcome = Result<(), Failure>;

pub(super) struct KeptData {
    pub(super) service: Service,
    /// The worktree's root, or `None` if it is missing. An error does not prove that.
    worktree: calve_git::Result<Option<PathBuf>>,
    pub(super) runs: bool,
    disk_bytes: OnceCell<Option<u64>>,
}

pub(super) fn all(home: &Home) -> Result<Vec<KeptData>, Failure> {
    real_path::here().iter().for_each(|here| calve_env::note_places_around(home, here));
    Ok(calve_db::services(home)?.into_iter().map(|service| KeptData::new(home, service)).collect())
}

/// Returns the data of missing worktrees.
pub(super) fn orphans(home: &Home) -> Result<Vec<KeptData>, Failure> {
    Ok(all(home)?.into_iter().filter(KeptData::is_orphaned).collect())
}

fn root_of(service: &Service) -> calve_git::Result<Option<PathBuf>> {
    WorktreeId::root(Path::new(&service.worktree.entry), &service.worktree.id)
}

impl KeptData {
    fn new(home: &Home, service: Service) -> Self {
        // A server with an unreadable record counts as running.
        let (worktree, runs) = (root_of(&service), !matches!(service.server(home), Ok(None)));
        Self { service, worktree, runs, disk_bytes: OnceCell::new() }
    }

    /// Measures the data when it is first shown.
    fn disk_bytes(&self) -> Option<u64> {
        *self.disk_bytes.get_or_init(|| data_bytes(&Program, &self.service))
    }

    fn is_orphaned(&self) -> bool {
        matches!(self.worktree, Ok(None))
    }

    fn state(&self) -> ServiceDataState {
        match self.runs {
            _ if self.is_orphaned() => ServiceDataState::Orphaned,
            true => ServiceDataState::Running,
            false => ServiceDataState::Stopped,
        }
    }

    pub(super) fn receipt(&self) -> DbServiceData {
        let service = &self.service;
        DbServiceData {
            name: service.name.clone(),
            service: service.service.clone(),
            engine: service.program.engine.clone(),
            template: service.template.clone(),
            state: self.state(),
            worktree: self.worktree.as_ref().ok().and_then(Option::as_ref).map(path),
            keeper: path(Path::new(&service.worktree.entry)),
            data_directory: path(service.data_directory()),
            disk_bytes: self.disk_bytes(),
        }
    }

    pub(super) fn line(&self) -> String {
        let found = match &self.worktree {
            Ok(Some(_)) => "",
            Ok(None) if self.runs => ", not found, its server runs",
            Ok(None) => ", not found",
            Err(_) => ", which cannot be read",
        };
        let taken = self.disk_bytes().map(|bytes| format!(", {}", size(bytes))).unwrap_or_default();
        format!("{}  {}{found}{taken}", self.state(), whose(&self.service))
    }

    /// Fails if the worktree exists, or may exist.
    fn check_orphaned(&self) -> Result<(), Failure> {
        let (why, hint) = match &self.worktree {
            Ok(None) => return Ok(()),
            Ok(Some(_)) => ("exists".to_owned(), "`calve worktree remove` removes a worktree with its data"),
            Err(error) => (format!("cannot be read: {error}"), "nothing was removed; see why it cannot be read"),
        };
        let text = format!("`{}` is the data of the {}, which {why}", self.service.name, whose(&self.service));
        Err(Failure::stated(REFUSED, text, hint))
    }

    /// Removes the data if it is unchanged and has no server, or if `lose_data` permits the loss.
    fn remove(&self, home: &Home, lose_data: bool) -> Result<(), Failure> {
        let refused = |text: String| {
            let name = &self.service.name;
            let hint = format!(
                "{IF_MOVED}; `calve worktree add --data-from {name}` gives the data to a new worktree; `--lose-data` ends its server and removes it"
            );
            Failure::stated(REFUSED, text, hint)
        };
        if self.runs && !lose_data {
            return Err(refused(format!("the server of `{}` runs ({})", self.service.name, whose(&self.service))));
        }
        let removal = match calve_db::begin_removal(home, &self.service.name, LossRule::from_consent(lose_data)) {
            Err(calve_db::Error::ServiceWritten { .. }) => {
                let whose = whose(&self.service);
                let text = format!("`{}` may have changes found nowhere else ({whose})", self.service.name);
                return Err(refused(text));
            }
            removal => removal?,
        };
        // Until the removal took the service's turn, another process may have found the worktree again.
        let now = calve_db::find_service(home, &self.service.name).map(|service| Self::new(home, service));
        if let Err(failure) = now.map_err(Failure::from).and_then(|now| now.check_orphaned()) {
            removal.cancel()?;
            return Err(failure);
        }
        Ok(removal.commit(home)?)
    }
}

/// Removes the named data, or nothing if any worktree may exist. Returns the removed names and the command's outcome.
pub(super) fn remove(home: &Home, names: &[String], lose_data: bool) -> Result<(Vec<String>, Outcome), Failure> {
    let mut named = all(home)?;
    if let Some(unknown) = names.iter().find(|name| named.iter().all(|data| data.service.name != **name)) {
        let text = format!("there is no data of a service with the name `{unknown}`");
        return Err(Failure::stated(FAILED, text, "`calve db list --all` lists what there is"));
    }
    named.retain(|data| names.contains(&data.service.name));
    named.iter().try_for_each(KeptData::check_orphaned)?;
    let mut removed = Vec::new();
    let ended = operands::each(named, |data| {
        data.remove(home, lose_data)?;
        output::note(&format!("removed `{}`, the data of the {}", data.service.name, whose(&data.service)));
        removed.push(data.service.name);
        Ok(())
    });
    Ok((removed, ended.and_then(|ended| ended)))
}

pub(super) fn say_orphans(orphans: &[KeptData]) {
    for data in orphans {
        output::note(&format!("`{}`  {}", data.service.name, data.line()));
    }
    output::note(&format!(
        "{IF_MOVED}; `calve worktree add --data-from NAME` gives such data to a new worktree; `calve db gc NAME` removes it, with `--lose-data` also if it has changes or a server"
    ));
}

/// Names the worktrees that cannot be reset once the template is removed.
pub(super) fn say_users(home: &Home, template: &str) -> Result<(), Failure> {
    let mut users = calve_db::services(home)?;
    users.retain(|service| service.template == template && !matches!(root_of(service), Ok(None)));
    let users: Vec<String> = users.iter().map(|user| format!("`{}`", ShownPath(&last_root(user)))).collect();
    if !users.is_empty() {
        output::note(&format!("`calve reset` needs the template `{template}` in {}", users.join(", ")));
    }
    Ok(())
}
