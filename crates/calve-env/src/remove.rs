//! Removes a complete worktree: its hook runs, its servers stop, its files go, then its data.

use std::collections::BTreeMap;
use std::path::PathBuf;

use calve_core::CancelToken;
use calve_db::LossRule;
use calve_git::Config;
use calve_git::environment::WorktreeId;
use calve_git::escape::worktrees_of;
use calve_git::hooks::{Hook, HookEnvironment, repository_of};
use calve_git::worktree::{
    self, Meanwhile, NewWorktree, RemovalPlan, RemovalSteps, RemoveWorktreeOptions, UnsavedItem, Worktree,
    WorktreeRemoveReport,
};

use crate::consent::{self, Consent};
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::host::{Event, Host};
use crate::leaving::{LeavingServices, unsaved_data};

#[derive(Debug)]
pub struct RemoveOptions {
    pub worktree: RemoveWorktreeOptions,
    pub consent: Consent,
    /// Run the hook of an untrusted worktree too.
    pub trusts_hook: bool,
}

#[derive(Debug)]
pub struct RemovedEnvironment {
    pub worktree: WorktreeRemoveReport,
    /// The reasons why something that belongs to it may remain.
    pub unfinished: Vec<Error>,
}

impl RemovedEnvironment {
    /// Starts deleting the files, and adds up the reasons.
    fn finish(host: &dyn Host, mut worktree: WorktreeRemoveReport, left: impl IntoIterator<Item = Error>) -> Self {
        if let Some(trashed) = &worktree.trashed {
            host.reap(&trashed.parent);
        }
        let unfinished = worktree.unfinished.take().map(Error::from).into_iter().chain(left).collect();
        Self { worktree, unfinished }
    }
}

/// Removes a worktree with its data. `before` runs last while the worktree is whole, after its servers stopped.
pub fn remove(
    host: &dyn Host,
    options: &RemoveOptions,
    before: &mut dyn FnMut(&Worktree) -> Meanwhile,
) -> Result<RemovedEnvironment> {
    let mut steps = Steps { host, options, before, leaving: None };
    let removed = worktree::remove(&options.worktree, &mut steps)?;
    let data = steps.leaving.take().map_or(Ok(()), LeavingServices::remove);
    Ok(RemovedEnvironment::finish(host, removed, data.err()))
}

pub fn plan_removal(host: &dyn Host, options: &RemoveOptions) -> Result<RemovalPlan> {
    let before = &mut |_: &Worktree| Meanwhile::Nothing;
    worktree::plan_removal(&options.worktree, &mut Steps { host, options, before, leaving: None })
}

struct Steps<'a> {
    host: &'a dyn Host,
    options: &'a RemoveOptions,
    before: &'a mut dyn FnMut(&Worktree) -> Meanwhile,
    leaving: Option<LeavingServices<'a>>,
}

impl Steps<'_> {
    fn written(&self) -> LossRule {
        let RemoveWorktreeOptions { is_forced, loses_data, .. } = self.options.worktree;
        LossRule::from_consent(is_forced || loses_data)
    }
}

impl RemovalSteps<Error> for Steps<'_> {
    fn unsaved(&mut self, worktree: &Worktree) -> Result<Vec<UnsavedItem>> {
        // Once the servers have ended, no client writes any more.
        match &self.leaving {
            Some(_) => Ok(Vec::new()),
            None => unsaved_data(self.host, worktree, self.written()),
        }
    }

    fn before(&mut self, worktree: &Worktree) -> Result<Meanwhile> {
        let leaving = LeavingServices::find(self.host, WorktreeId::of_worktree(worktree)?)?;
        let has_hook = hook(self.host, worktree, self.options)?;
        self.leaving = leaving;
        let written = self.written();
        self.leaving.iter_mut().try_for_each(|leaving| leaving.end(written))?;
        let has_waited = (self.before)(worktree) == Meanwhile::Changes;
        Ok(if has_hook || has_waited || self.leaving.is_some() { Meanwhile::Changes } else { Meanwhile::Nothing })
    }
}

/// Runs the project's hook while the worktree is whole. Returns whether it had one: asking and running take time.
fn hook(host: &dyn Host, worktree: &Worktree, options: &RemoveOptions) -> Result<bool> {
    if options.consent == Consent::Nothing || worktree.is_gone {
        return Ok(false);
    }
    if !options.trusts_hook && worktree.provenance.is_untrusted() {
        // An unreadable configuration has no hook to run, and must not prevent the removal.
        if Config::of_worktree(&worktree.path).is_ok_and(|config| config.hooks.pre_remove.is_some()) {
            let text =
                "no hook was run: this worktree is from a pull request that is not trusted; `--trust` runs its hook";
            host.report(Event::Note(text.into()));
        }
        return Ok(false);
    }
    // Another command may just have removed it, which the caller tells.
    let read = Config::of_worktree(&worktree.path)
        .or_else(|error| if worktree.path.is_dir() { Err(error) } else { Ok(Config::default()) });
    let Some(text) = read?.hooks.pre_remove else { return Ok(false) };
    let variables = match variables(host, worktree) {
        Ok(variables) => variables,
        // Faults in ports or services must not prevent the removal.
        Err(why) => {
            host.report(Event::Failure("the pre-remove hook did not run", why));
            return Ok(false);
        }
    };
    let cancel: &CancelToken = &options.worktree.remove.cancel;
    if options.consent == Consent::Approved {
        consent::require(host, &repository_of(&worktree.path)?, Hook::PreRemove, &text, cancel)?;
    }
    let surroundings = HookEnvironment {
        worktree: worktree.path.clone(),
        main: worktrees_of(&worktree.path)?.main,
        source: None,
        branch: worktree.branch.clone(),
        commit: worktree.head.clone(),
        variables,
    };
    consent::run(host, Hook::PreRemove, &text, &surroundings, cancel).map(|()| true)
}

fn variables(host: &dyn Host, worktree: &Worktree) -> Result<BTreeMap<String, Option<String>>> {
    let environment = Environment::of_root(host, &worktree.path)?;
    Environment::of_command(&environment.ports()?, &environment.services()?)
}

/// Removes the worktree unless it would lose something. Its data does not count: a failed hook may have written it.
pub(crate) fn take_back(host: &dyn Host, added: &NewWorktree, protect: &[PathBuf]) -> Result<RemovedEnvironment> {
    let (start, what, protect) = (added.donor.clone(), Some(added.path.clone()), protect.to_vec());
    // The signal that ended the hook must not end the removal.
    let remove = calve_core::RemoveOptions { protect, cancel: host.listen_again(), ..Default::default() };
    let options = RemoveWorktreeOptions { start, what, remove, ..RemoveWorktreeOptions::default() };
    let mut steps = TakeBackSteps { host, services: Ok(None) };
    let removed = worktree::remove(&options, &mut steps)?;
    let branch = worktree::delete_made_branch(added).map_err(Error::from);
    let data = steps.services.and_then(remove_data);
    Ok(RemovedEnvironment::finish(host, removed, branch.err().into_iter().chain(data.err())))
}

/// Looks up the services while the worktree exists. Their faults must not prevent its removal.
struct TakeBackSteps<'h> {
    host: &'h dyn Host,
    services: Result<Option<LeavingServices<'h>>>,
}

impl RemovalSteps<Error> for TakeBackSteps<'_> {
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
