use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use calve_core::CancelToken;
use calve_core::internal::ShownPath;
use calve_git::environment::{WorktreeId, may_have_directory};
use calve_git::hooks::{Hook, HookEnvironment, repository_of};
use calve_git::worktree::{self, AddDetails, AddIntent, AddReport, AgentBranch, AgentTurn, PlanDetails, for_agent};

use crate::complete::{Incomplete, Maker, OwnParts};
use crate::consent::{self, Consent};
use crate::data_from::DataFrom;
use crate::early_clones::EarlyClones;
use crate::error::{Error, Result};
use crate::host::{Host, database_home};
use crate::remedy::Remedy;
use crate::remove::{RemovedEnvironment, take_back};

#[derive(Debug)]
pub struct AddOptions {
    pub worktree: worktree::AddOptions,
    pub data_from: DataFrom,
    pub env_file: Option<PathBuf>,
    pub consent: Consent,
    /// The agent to make it for. A worktree that cannot be finished for an agent is taken back.
    pub agent: Option<String>,
    pub protect: Vec<PathBuf>,
}

/// A worktree that was added or, with [`PlanDetails`], would be.
pub struct AddedEnvironment<'h, D = AddDetails> {
    pub report: AddReport<D>,
    pub own: OwnParts<'h>,
}

pub enum AddOutcome<'h> {
    /// The agent already has this finished worktree.
    Ready(PathBuf),
    Added(Box<AddedEnvironment<'h>>),
}

pub struct AddFailure {
    pub error: Box<Error>,
    /// Earlier failures, which did not stop the work.
    pub earlier: Vec<Error>,
    pub rest: AddRest,
}

pub enum AddRest {
    Nothing,
    /// The worktree remains, unless its own hook removed it.
    Worktree {
        path: PathBuf,
        lacks_hook: bool,
    },
    /// An agent is never left an unfinished worktree. If removing it failed, it may be gone all the same.
    TakenBack(PathBuf, Box<Result<RemovedEnvironment>>),
}

impl From<Error> for AddFailure {
    fn from(error: Error) -> Self {
        Self { error: Box::new(error), earlier: Vec::new(), rest: AddRest::Nothing }
    }
}

/// Makes a worktree with its files, ports and data, writes its env files, and runs the project's hook in it.
///
/// Calls `begin` when the work begins, because an agent first waits for its turn, and drops its result when the files are
/// there. Calls `is_complete` when the worktree is complete, or completing it failed, before its hook.
pub fn add<'h, W>(
    host: &'h dyn Host,
    options: &AddOptions,
    begin: impl FnOnce() -> W,
    is_complete: impl FnOnce(&mut AddedEnvironment<'_>),
    cancel: &CancelToken,
) -> std::result::Result<AddOutcome<'h>, AddFailure> {
    let turn = match answer_agent(options, cancel)? {
        ControlFlow::Break(path) => return Ok(AddOutcome::Ready(path)),
        ControlFlow::Continue(turn) => turn,
    };
    let watch = begin();
    let mut addition = Addition { host, options, cancel, hook: None, data_source: None, early: None, _turn: turn };
    let report = worktree::add_after(&options.worktree, |upcoming| addition.prepare(upcoming));
    drop(watch);
    let mut added = addition.complete(report?);
    is_complete(&mut added);
    addition.finish(added)
}

/// Returns the agent's finished worktree, perhaps made by another process just now. If the branch is free, returns the
/// turn to make one, to be held until that is finished.
fn answer_agent(options: &AddOptions, cancel: &CancelToken) -> Result<ControlFlow<PathBuf, Option<AgentTurn>>> {
    let Some(maker) = &options.agent else { return Ok(ControlFlow::Continue(None)) };
    let worktree::AddOptions { start, branch, base, .. } = &options.worktree;
    let turn = AgentTurn::wait(start, branch, cancel)?;
    let named = ShownPath(Path::new(branch));
    let (text, remedy) = match for_agent(start, branch, base.as_deref(), maker)? {
        AgentBranch::Free => return Ok(ControlFlow::Continue(Some(turn))),
        // A returning agent gets its old worktree.
        AgentBranch::Ready(path) => return Ok(ControlFlow::Break(path)),
        AgentBranch::TakenByMain(path) => (
            format!("the branch `{named}` is checked out in the main worktree, `{}`", ShownPath(&path)),
            Remedy::AskForAnotherName,
        ),
        AgentBranch::Taken(path) => (
            format!(
                "the branch `{named}` is checked out in `{}`, which is not a finished worktree of this agent",
                ShownPath(&path)
            ),
            Remedy::AskForAnotherNameOrRemove(path),
        ),
        AgentBranch::Commit => {
            (format!("`{named}` is a tag or a commit, and an agent works on a branch"), Remedy::AskForAnotherNameThere)
        }
    };
    Err(Error::failed(text, remedy))
}

/// A worktree that is being added, and everything that a failure takes back. Until git lists it, calve-git takes back its
/// files, branch and entry, and dropping this the cloned data. From then on nothing fails before [`Self::finish`]: the
/// worktree stays, except an agent's, which that takes back. The agent's turn ends last.
struct Addition<'h, 'a> {
    host: &'h dyn Host,
    options: &'a AddOptions,
    cancel: &'a CancelToken,
    /// Its text and, but for the worktree and its branch, its surroundings.
    hook: Option<(String, HookEnvironment)>,
    data_source: Option<WorktreeId>,
    early: Option<EarlyClones<'h>>,
    _turn: Option<AgentTurn>,
}

impl<'h> Addition<'h, '_> {
    /// Returns the id of the data's worktree. Fails if a place or data that the user named is missing, or the user does
    /// not approve the hook.
    fn prepare(&mut self, upcoming: &AddIntent) -> Result<Option<String>> {
        let Self { host, options: AddOptions { data_from, .. }, cancel, .. } = *self;
        check_env_file(self.options, &upcoming.donor, &upcoming.head)?;
        self.data_source = data_from.source(host, &upcoming.donor)?;
        let requests = data_from.requests(host, &upcoming.services, self.data_source.as_ref())?;
        self.hook = self.hook_to_run(upcoming)?;
        if !requests.is_empty() {
            self.early = Some(EarlyClones::begin(host, database_home(host)?, requests, cancel));
        }
        Ok(self.data_source.as_ref().map(|owner| owner.id.clone()))
    }

    fn hook_to_run(&self, upcoming: &AddIntent) -> Result<Option<(String, HookEnvironment)>> {
        let consent = self.options.consent;
        let text = upcoming.hooks.post_add.clone().filter(|_| consent != Consent::Nothing);
        let Some(text) = text else { return Ok(None) };
        if consent == Consent::Approved {
            consent::require(self.host, &repository_of(&upcoming.donor)?, Hook::PostAdd, &text, self.cancel)?;
        }
        let AddIntent { donor, main, head, .. } = upcoming.clone();
        let (source, commit) = (Some(donor), Some(head));
        Ok(Some((text, HookEnvironment { main, source, commit, ..HookEnvironment::default() })))
    }

    /// Adds the parts of its own to a worktree with its files.
    fn complete(&mut self, report: AddReport) -> AddedEnvironment<'h> {
        let AddReport { worktree: added, untracked, details, .. } = &report;
        if let Some(parent) = added.path.parent().filter(|_| details.trash_waits) {
            self.host.reap(parent);
        }
        let is_trusted = !added.provenance.is_untrusted();
        let preferred = matches!(self.options.data_from, DataFrom::Donor).then_some(&*added.donor);
        let incomplete = Incomplete {
            root: &added.path,
            donor: &added.donor,
            files: untracked,
            env_file: self.options.env_file.as_deref(),
            maker: Maker::Calve,
            data_from: &self.options.data_from,
            // An untrusted pull request gets none of the user's data.
            data_source: (self.data_source.as_ref().filter(|_| is_trusted), preferred.filter(|_| is_trusted)),
            consent: self.options.consent,
        };
        let mut own = OwnParts::default();
        let filled = own.fill(self.host, &incomplete, self.early.take(), self.cancel);
        own.errors.extend(filled.err());
        AddedEnvironment { report, own }
    }

    /// Runs the hook if all went well. Takes an agent's unfinished worktree back.
    fn finish(self, mut added: AddedEnvironment<'h>) -> std::result::Result<AddOutcome<'h>, AddFailure> {
        let mut earlier = std::mem::take(&mut added.own.errors);
        let lacks_hook = self.hook.is_some() && !earlier.is_empty();
        let worktree = &added.report.worktree;
        let Some(error) = earlier.pop().or_else(|| self.run_hook(&added).err()) else {
            return Ok(AddOutcome::Added(Box::new(added)));
        };
        let path = worktree.path.clone();
        let rest = match self.options.agent {
            Some(_) => AddRest::TakenBack(path, Box::new(take_back(self.host, worktree, &self.options.protect))),
            None => AddRest::Worktree { path, lacks_hook },
        };
        Err(AddFailure { error: Box::new(error), earlier, rest })
    }

    fn run_hook(&self, added: &AddedEnvironment<'_>) -> Result<()> {
        let Self { host, options, cancel, .. } = self;
        let AddedEnvironment { report: AddReport { worktree: added, .. }, own } = added;
        if let Some((text, surroundings)) = &self.hook {
            let (worktree, branch) = (added.path.clone(), added.target.branch.clone());
            let surroundings = HookEnvironment { worktree, branch, ..surroundings.clone() };
            // An agent would have no worktree at all where nobody has made a template.
            let may_lack_data = options.agent.is_some() || matches!(options.data_from, DataFrom::Nowhere);
            own.run_hook(*host, text, surroundings, may_lack_data, cancel)?;
        }
        options.agent.as_deref().map_or(Ok(()), |maker| Ok(worktree::finish_for_agent(&added.path, maker)?))
    }
}

fn check_env_file(options: &AddOptions, donor: &Path, commit: &str) -> Result<()> {
    match &options.env_file {
        Some(file) if !may_have_directory(donor, commit, file)? => {
            let text = format!("the new worktree would have no directory for `{}`", ShownPath(file));
            Err(Error::refused(text, Remedy::NamePresentDirectory))
        }
        _ => Ok(()),
    }
}

/// Plans [`add`]. An error in the environment's own parts: the user would be asked about the hook and declined.
pub fn plan<'h>(host: &'h dyn Host, options: &AddOptions) -> Result<AddedEnvironment<'h, PlanDetails>> {
    let report = worktree::plan(&options.worktree)?;
    let AddReport { worktree, details, .. } = &report;
    let donor = &worktree.donor;
    check_env_file(options, donor, &worktree.target.oid)?;
    let is_untrusted = worktree.provenance.is_untrusted();
    let source = options.data_from.source(host, donor)?.filter(|_| !is_untrusted);
    let consent = if is_untrusted { Consent::Nothing } else { options.consent };
    let services = Some(options.data_from.plan(host, &report, source.as_ref(), consent)?);
    let hook = details.intent.hooks.post_add.as_ref().filter(|_| options.consent == Consent::Approved);
    let is_approved = |text: &String| consent::is_approved(host, &repository_of(donor)?, Hook::PostAdd, text);
    let not_approved = (!hook.map_or(Ok(true), is_approved)?).then(|| consent::not_approved(Hook::PostAdd));
    let own = OwnParts { services, errors: not_approved.into_iter().collect(), ..OwnParts::default() };
    Ok(AddedEnvironment { report, own })
}
