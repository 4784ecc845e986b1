//! Worktrees for coding agents. A mark, written once all hooks have run, gives a returning agent its worktree again.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::remedy::Remedy;
use crate::repository::entries::branch_in;
use crate::repository::operation::returning;
use crate::repository::{self, Repository, Worktree};
use crate::trust::entry_of;
use crate::worktree::add::report::NewWorktree;
use crate::worktree::add::target;
use crate::worktree::registration::delete_unused;

/// The mark's file in an entry. It holds the agent's name.
const MARK: &str = "calve-agent";

/// Name of an agent that gives none. Old marks have no name either.
const SOME_AGENT: &str = "agent";

/// Directories in which agents make their own worktrees, and the agents' names.
const PLACES: [([&str; 2], &str); 4] = [
    ([".claude", "worktrees"], "claude"),
    ([".codex", "worktrees"], "codex"),
    ([".cursor", "worktrees"], "cursor"),
    (["opencode", "worktree"], "opencode"),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentBranch {
    Free,
    /// A finished worktree made for this agent.
    Ready(PathBuf),
    /// The main worktree, which is the user's, has the branch.
    TakenByMain(PathBuf),
    /// Another worktree has the branch: the user's, another agent's, or an unfinished one.
    Taken(PathBuf),
    /// A tag or a commit, not a branch.
    Commit,
}

/// Finds out whether an agent can have a branch that begins at `base`. A worktree made for `maker` is handed out again.
pub fn for_agent(start: &Path, branch: &str, base: Option<&str>, maker: &str) -> Result<AgentBranch> {
    let repository = Repository::open(start)?;
    let branch = match base {
        Some(_) => Some(branch),
        None => target::branch_of(&repository, branch)?,
    };
    let Some(branch) = branch else { return Ok(AgentBranch::Commit) };
    let names = repository.references.names_of(branch);
    let found = repository.worktrees.iter().find(|worktree| worktree.branch.as_deref() == Some(branch));
    let found = found.or_else(|| repository.with_operation(|own| returning(own, &names)).map(|(worktree, _)| worktree));
    let Some(worktree) = found.filter(|worktree| worktree.path.is_dir()) else { return Ok(AgentBranch::Free) };
    let path = worktree.path.clone();
    let entry = if worktree.is_usable() { entry_of(&path)? } else { None };
    let is_own = |entry: &PathBuf| {
        (branch_in(entry).as_deref() == Some(branch) || returning(entry, &names).is_some())
            && marked(entry).is_some_and(|made_for| made_for == maker || made_for == SOME_AGENT)
    };
    match entry.filter(is_own) {
        Some(_) => Ok(AgentBranch::Ready(path)),
        None if worktree.is_main => Ok(AgentBranch::TakenByMain(path)),
        None => Ok(AgentBranch::Taken(path)),
    }
}

/// Returns the agent that a worktree was made for or that made it, by the mark, else by the path.
pub(crate) fn maker(worktree: &Worktree) -> Option<String> {
    if worktree.is_main {
        return None;
    }
    let marked = worktree.entry.as_deref().and_then(marked);
    marked.or_else(|| {
        let names: Vec<&OsStr> = worktree.path.iter().collect();
        let is_below = |place: &[&str; 2]| names.windows(2).any(|pair| pair[0] == place[0] && pair[1] == place[1]);
        PLACES.iter().find(|(place, _)| is_below(place)).map(|(_, maker)| (*maker).to_owned())
    })
}

/// Reads the name in the mark: `SOME_AGENT` if it is unusable, `None` without a mark.
fn marked(entry: &Path) -> Option<String> {
    let text = fs_err::read_to_string(entry.join(MARK)).ok()?;
    let word = text.trim_end();
    let is_word =
        !word.is_empty() && word.len() <= 40 && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    Some(if is_word { word } else { SOME_AGENT }.to_owned())
}

/// Marks a worktree as made for this agent and finished.
pub fn finish_for_agent(root: &Path, maker: &str) -> Result<()> {
    let Some(entry) = entry_of(root)? else {
        let reason = format!("`{}` is not a linked worktree", calve_core::internal::ShownPath(root));
        return Err(Error::refused(reason, Remedy::CheckWorktree));
    };
    fs_err::write(entry.join(MARK), format!("{maker}\n"))?;
    Ok(())
}

/// Deletes the branch made for a worktree, unless it has moved.
pub fn delete_made_branch(added: &NewWorktree) -> Result<()> {
    let Some(branch) = added.target.branch.as_deref().filter(|_| added.target.is_new) else { return Ok(()) };
    let repository = Repository::open(&added.donor)?;
    // Its own entry may still be there, if something keeps it from being removed.
    let has_it = |one: &Worktree| one.branch.as_deref() == Some(branch) && one.path != added.path;
    let is_in_use = || Ok(repository::list(&repository.git())?.iter().any(has_it));
    let names = repository.references.names_of(branch);
    delete_unused(&repository.common, (branch, &names), &added.target.oid, is_in_use).map(drop)
}
