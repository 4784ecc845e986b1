//! Answers an agent that asks for a branch, before a worktree is made.

use std::path::{Path, PathBuf};

use calve_core::{CancelToken, ShownPath};
use calve_git::worktree::{AgentBranch, AgentTurn, for_agent};

use crate::failure::{FAILED, Failure};

pub(super) enum AgentAnswer {
    /// The agent's finished worktree, possibly made by another process just now.
    Ready(PathBuf),
    /// The branch is free. Keep the turn until the worktree is finished.
    Make(AgentTurn),
}

pub(super) fn answer(
    start: &Path,
    branch: &str,
    base: Option<&str>,
    maker: &str,
    cancel: &CancelToken,
) -> Result<AgentAnswer, Failure> {
    let turn = AgentTurn::wait(start, branch, cancel)?;
    let named = ShownPath(Path::new(branch));
    let (text, hint) = match for_agent(start, branch, base, maker)? {
        AgentBranch::Free => return Ok(AgentAnswer::Make(turn)),
        // A returning agent gets its old worktree.
        AgentBranch::Ready(path) => return Ok(AgentAnswer::Ready(path)),
        AgentBranch::TakenByMain(path) => (
            format!("the branch `{named}` is checked out in the main worktree, `{}`", ShownPath(&path)),
            "ask for another name: an agent gets a worktree of its own".to_owned(),
        ),
        AgentBranch::Taken(path) => {
            let path = ShownPath(&path);
            (
                format!(
                    "the branch `{named}` is checked out in `{path}`, which is not a finished worktree of this agent"
                ),
                format!(
                    "ask for another name; if an earlier attempt left `{path}`, check it, then run `calve worktree remove {path}`"
                ),
            )
        }
        AgentBranch::Commit => (
            format!("`{named}` is a tag or a commit, and an agent works on a branch"),
            "ask for another name, with that one as the base".to_owned(),
        ),
    };
    Err(Failure::stated(FAILED, text, hint))
}
