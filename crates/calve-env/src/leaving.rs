use calve_core::internal::ShownPath;
use calve_db::{Error as DbError, Home, LossRule, PendingRemoval, Service};
use calve_git::environment::WorktreeId;
use calve_git::worktree::{UnsavedItem, Worktree};

use crate::error::{Error, Result};
use crate::host::{Event, Host, reap_trash, swept_home};
use crate::ownership::{kept, last_root, own_of, sweep};
use crate::remedy::Remedy;

/// Services of a worktree under removal. They stay if this is dropped before they are removed.
pub(crate) struct LeavingServices<'h> {
    host: &'h dyn Host,
    home: Home,
    services: Vec<Service>,
    /// The reason why more services may exist.
    unreadable: Option<Error>,
    removals: Vec<PendingRemoval>,
}

/// Lists data that may differ from its source. Fails if some is unreadable and may not be given up.
pub(crate) fn unsaved_data(host: &dyn Host, worktree: &Worktree, rule: LossRule) -> Result<Vec<UnsavedItem>> {
    let leaving = LeavingServices::find(host, WorktreeId::of_worktree(worktree)?)?;
    let Some(mut leaving) = leaving else { return Ok(Vec::new()) };
    if let (Some(error), LossRule::Refuse) = (leaving.unreadable.take(), rule) {
        return Err(error);
    }
    let mut items = Vec::new();
    for service in &leaving.services {
        if calve_db::is_written(&leaving.home, service).map_err(|error| unless_going(service, error))? {
            items.push(UnsavedItem::Service(service.service.clone()));
        }
    }
    Ok(items)
}

impl<'h> LeavingServices<'h> {
    pub(crate) fn find(host: &'h dyn Host, owner: Option<WorktreeId>) -> Result<Option<Self>> {
        let Some(owner) = owner else { return Ok(None) };
        let home = swept_home(host)?;
        sweep(&home)?;
        let (services, unreadable) = match kept(&home, &owner) {
            Err(error) if error.is_damaged_record() => {
                (own_of(&owner, calve_db::services(&home)?)?.unwrap_or_default(), Some(error))
            }
            found => (found?, None),
        };
        let is_any = !services.is_empty() || unreadable.is_some();
        Ok(is_any.then_some(Self { host, home, services, unreadable, removals: Vec::new() }))
    }

    /// Stops the servers. Unless `written` accepts it, fails for written or unreadable data. Unreadable data stays.
    pub(crate) fn end(&mut self, written: LossRule) -> Result<()> {
        match (self.unreadable.take(), written) {
            (Some(error), LossRule::Accept) => {
                self.host.report(Event::Warning(format!("this worktree's data was not removed: {error}")));
            }
            (Some(error), LossRule::Refuse) => return Err(error),
            (None, _) => {}
        }
        for service in &self.services {
            let removal = calve_db::begin_removal(&self.home, &service.name, written);
            self.removals.push(removal.map_err(|error| unless_going(service, error))?);
        }
        Ok(())
    }

    /// Removes the data, after [`Self::end`].
    pub(crate) fn remove(mut self) -> Result<()> {
        self.removals.drain(..).try_for_each(|removal| removal.commit(&self.home))?;
        reap_trash(self.host, &self.home)
    }
}

impl Drop for LeavingServices<'_> {
    fn drop(&mut self) {
        for error in self.removals.drain(..).filter_map(|removal| removal.cancel().err()) {
            self.host.report(Event::Warning(error.to_string()));
        }
    }
}

/// Distinguishes a service that another process is removing from a failure.
fn unless_going(service: &Service, error: DbError) -> Error {
    match error {
        DbError::UnknownService(_) => {
            let text = format!("the worktree `{}` is being removed by another calve", ShownPath(&last_root(service)));
            Error::failed(text, Remedy::ListWorktrees)
        }
        other => other.into(),
    }
}
