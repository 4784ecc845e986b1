//! Worktrees for coding agents. An agent that comes back gets its own worktree again, and nobody else's.
//!
//! A mark in git's own directory of the worktree says that it was made for an agent and is finished: all its hooks have run.

use std::path::{Path, PathBuf};

use calve_core::RemoveOptions;

use crate::error::{Error, Result};
use crate::remedy::Remedy;
use crate::trust::entry_of;
use crate::worktree::add::AddReport;
use crate::worktree::registration::delete_unmoved;
use crate::worktree::remove::{RemoveReport, RemoveWorktreeOptions, remove};
use crate::worktree::repository::Repository;

/// The mark's name.
const MARK: &str = "calve-agent";

/// The answer to an agent that asks for a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentBranch {
    /// No worktree has the branch checked out.
    Free,
    /// This finished worktree was made for an agent.
    Ready(PathBuf),
    /// The main worktree, which is the user's, has the branch.
    TakenByMain(PathBuf),
    /// This worktree has the branch, and it is the user's or was not finished.
    Taken(PathBuf),
}

/// Finds out whether an agent can have a branch.
pub fn for_agent(start: &Path, branch: &str) -> Result<AgentBranch> {
    let repository = Repository::open(start)?;
    let found = repository.worktrees.iter().find(|worktree| worktree.branch.as_deref() == Some(branch));
    let Some(worktree) = found.filter(|worktree| worktree.path.is_dir()) else { return Ok(AgentBranch::Free) };
    let path = worktree.path.clone();
    let entry = if worktree.is_usable() { entry_of(&path)? } else { None };
    let is_on_branch = |entry: &Path| {
        let head = fs_err::read_to_string(entry.join("HEAD")).unwrap_or_default();
        head.trim_end().strip_prefix("ref: refs/heads/") == Some(branch)
    };
    match entry.filter(|entry| is_on_branch(entry) && entry.join(MARK).is_file()) {
        Some(_) => Ok(AgentBranch::Ready(path)),
        None if worktree.is_main => Ok(AgentBranch::TakenByMain(path)),
        None => Ok(AgentBranch::Taken(path)),
    }
}

/// Marks a worktree as made for an agent and finished.
pub fn finish_for_agent(added: &AddReport) -> Result<()> {
    let Some(entry) = entry_of(&added.path)? else {
        let reason = format!("`{}` is not a linked worktree any more", calve_core::Shown(&added.path));
        return Err(Error::refused(reason, Remedy::CheckWorktree));
    };
    fs_err::write(entry.join(MARK), "made for a coding agent\n")?;
    Ok(())
}

/// Removes a worktree that could not be finished, with the branch if it was made for it and has not moved. Refuses if work would be lost.
pub fn take_back(added: &AddReport, options: &RemoveOptions) -> Result<RemoveReport> {
    let options = RemoveWorktreeOptions {
        start: added.donor.clone(),
        what: Some(added.path.clone()),
        remove: options.clone(),
        ..RemoveWorktreeOptions::default()
    };
    let mut removed = remove(&options, |_| Ok::<_, Error>(()))?;
    if let Some(branch) = added.branch.as_deref().filter(|_| added.is_new_branch) {
        removed.is_branch_deleted = delete_unmoved(&Repository::open(&added.donor)?.common, branch, &added.head)?;
    }
    Ok(removed)
}
