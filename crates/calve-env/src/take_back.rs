use std::path::PathBuf;

use calve_core::RemovalWait;
use calve_db::LossRule;
use calve_git::environment::WorktreeId;
use calve_git::worktree::{
    self, Meanwhile, NewWorktree, RemovalSteps, RemoveWorktreeOptions, UnsavedItem, Worktree, WorktreeRemoveReport,
};

use crate::error::{Error, Result};
use crate::host::Host;
use crate::leaving::LeavingServices;

pub enum TakenBack {
    Removed {
        worktree: Box<WorktreeRemoveReport>,
        unfinished: Vec<Error>,
    },
    /// It could not be removed, for this reason; it may be gone already.
    Stays(PathBuf, Error),
}

/// Removes the worktree unless it would lose something. Its data does not count: a failed hook may have written it.
pub(crate) fn take_back(host: &dyn Host, added: &NewWorktree, protect: &[PathBuf]) -> TakenBack {
    let mut options = RemoveWorktreeOptions::default();
    options.start.clone_from(&added.donor);
    options.what = Some(added.path.clone());
    options.remove.wait = RemovalWait::No;
    options.remove.protect = protect.to_vec();
    // The signal that ended the hook must not end the removal.
    options.remove.cancel = host.listen_again();
    let mut steps = Steps { host, services: Ok(None) };
    match worktree::remove(&options, &mut steps) {
        Ok(mut removed) => {
            let entry = removed.unfinished.take().map(Error::from);
            let branch = worktree::delete_made_branch(added).err().map(Error::from);
            let data = steps.services.and_then(remove_data).err();
            if let Some(trashed) = &removed.trashed {
                host.reap(&trashed.parent);
            }
            let unfinished = entry.into_iter().chain(branch).chain(data).collect();
            TakenBack::Removed { worktree: Box::new(removed), unfinished }
        }
        Err(why) => TakenBack::Stays(added.path.clone(), why),
    }
}

/// Looks up the services while the worktree exists. Their faults must not prevent its removal.
struct Steps<'h> {
    host: &'h dyn Host,
    services: Result<Option<LeavingServices<'h>>>,
}

impl RemovalSteps<Error> for Steps<'_> {
    fn unsaved(&mut self, _: &Worktree) -> Result<Vec<UnsavedItem>> {
        Ok(Vec::new())
    }

    fn before(&mut self, worktree: &Worktree) -> Result<Meanwhile> {
        let owner = WorktreeId::of_worktree(worktree).map_err(Error::from);
        self.services = owner.and_then(|owner| LeavingServices::find(self.host, owner));
        Ok(Meanwhile::Nothing)
    }
}

fn remove_data(services: Option<LeavingServices<'_>>) -> Result<()> {
    let Some(mut services) = services else { return Ok(()) };
    services.end(LossRule::Accept)?;
    services.remove()
}
