//! Worktrees that are made for coding agents. An agent that comes back gets its own again, and nobody else's.
//!
//! A mark in git's own directory of the worktree says that it was made for an agent, and finished: all its hooks have run.

use std::path::{Path, PathBuf};

use calve_core::RemoveOptions;

use super::add::Added;
use super::register::delete_unmoved;
use super::remove::{RemoveWorktreeOptions, Removed, remove};
use super::repository::Repository;
use crate::error::{Error, Result};
use crate::trust::entry_of;

/// The mark's name.
const MARK: &str = "calve-agent";

/// What an agent that asks for a branch can have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForAgent {
    /// No worktree has the branch checked out.
    Free,
    /// This one, which was made for an agent.
    Ready(PathBuf),
    /// Nothing: the main worktree, which is the user's, has the branch.
    TakenByMain(PathBuf),
    /// Nothing: this one has the branch, and is the user's, or was not finished.
    Taken(PathBuf),
}

/// Whose the worktree of a branch is.
pub fn for_agent(start: &Path, branch: &str) -> Result<ForAgent> {
    let repository = Repository::open(start)?;
    let found = repository.worktrees.iter().find(|worktree| worktree.branch.as_deref() == Some(branch));
    let Some(worktree) = found.filter(|worktree| worktree.path.is_dir()) else { return Ok(ForAgent::Free) };
    let path = worktree.path.clone();
    let entry = if worktree.is_usable() { entry_of(&path)? } else { None };
    let is_on_branch = |entry: &Path| {
        let head = fs_err::read_to_string(entry.join("HEAD")).unwrap_or_default();
        head.trim_end().strip_prefix("ref: refs/heads/") == Some(branch)
    };
    match entry.filter(|entry| is_on_branch(entry) && entry.join(MARK).is_file()) {
        Some(_) => Ok(ForAgent::Ready(path)),
        None if worktree.is_main => Ok(ForAgent::TakenByMain(path)),
        None => Ok(ForAgent::Taken(path)),
    }
}

/// Says that a worktree was made for an agent, and is finished.
pub fn finish_for_agent(added: &Added) -> Result<()> {
    let Some(entry) = entry_of(&added.path)? else {
        let reason = format!("`{}` is no linked worktree any more", calve_core::Shown(&added.path));
        return Err(Error::refused(reason, "look at what has become of it; something has changed it meanwhile"));
    };
    fs_err::write(entry.join(MARK), "made by calve hook worktree-create\n")?;
    Ok(())
}

/// Takes a worktree away again that could not be finished, with a branch that was made for it and has not moved. Refused when it
/// has something that would be lost.
pub fn take_back(added: &Added, options: &RemoveOptions) -> Result<Removed> {
    let options = RemoveWorktreeOptions {
        start: added.donor.clone(),
        what: added.path.clone(),
        remove: options.clone(),
        ..RemoveWorktreeOptions::default()
    };
    let mut removed = remove(&options, |_| Ok::<_, Error>(()))?;
    if let Some(branch) = added.branch.as_deref().filter(|_| added.is_new_branch) {
        removed.is_branch_deleted = delete_unmoved(&Repository::open(&added.donor)?.common, branch, &added.head)?;
    }
    Ok(removed)
}
