use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use calve_core::CancelToken;
use calve_core::internal::ShownPath;
use calve_git::worktree::{AddOptions, AgentBranch, AgentTurn, for_agent};

use crate::error::{Error, Result};
use crate::remedy::Remedy;

/// Returns the agent's finished worktree, perhaps made by another process just now. If the branch is free, returns the
/// turn to make one, to be held until that is finished.
pub(crate) fn answer(
    wanted: &AddOptions,
    maker: &str,
    cancel: &CancelToken,
) -> Result<ControlFlow<PathBuf, AgentTurn>> {
    let AddOptions { start, branch, base, .. } = wanted;
    let turn = AgentTurn::wait(start, branch, cancel)?;
    let named = ShownPath(Path::new(branch));
    let (text, remedy) = match for_agent(start, branch, base.as_deref(), maker)? {
        AgentBranch::Free => return Ok(ControlFlow::Continue(turn)),
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
