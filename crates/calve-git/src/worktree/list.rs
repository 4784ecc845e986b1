use std::path::Path;
use std::time::Duration;

use calve_core::internal::joined;

use crate::error::Result;
use crate::git::Git;
use crate::repository::standing::WorktreeState;
use crate::repository::{Repository, Worktree};
use crate::worktree::agent;
use crate::worktree::registration::open_swept;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorktreeInfo {
    pub worktree: Worktree,
    pub is_here: bool,
    /// Has uncommitted changes. `None` if git cannot tell.
    pub is_dirty: Option<bool>,
    /// Commits that `compared_with` lacks.
    pub ahead: Option<u64>,
    /// Commits that only `compared_with` has.
    pub behind: Option<u64>,
    /// The branch's upstream, else the main worktree's branch.
    pub compared_with: Option<String>,
    /// The agent that it was made for, or that made it.
    pub maker: Option<String>,
    /// Since it was made. `None` for the main worktree.
    pub age: Option<Duration>,
}

pub fn list(start: &Path) -> Result<Vec<WorktreeInfo>> {
    let repository = &open_swept(start)?;
    let main = repository.worktrees.first().and_then(|main| main.branch.as_deref());
    // In parallel, because each takes as long as a `git status`.
    std::thread::scope(|scope| {
        let begin = |worktree| scope.spawn(move || look(repository, worktree, main));
        let all: Vec<_> = repository.worktrees.iter().map(begin).collect();
        all.into_iter().map(joined).collect()
    })
}

fn look(repository: &Repository, worktree: &Worktree, main: Option<&str>) -> Result<WorktreeInfo> {
    let mut listed = WorktreeInfo {
        worktree: worktree.clone(),
        is_here: match &worktree.standing {
            WorktreeState::Moved(here) => repository.here.as_ref() == Some(here),
            _ => repository.here.as_ref() == Some(&worktree.path),
        },
        maker: agent::maker(worktree),
        age: worktree.made().and_then(|made| made.elapsed().ok()),
        ..WorktreeInfo::default()
    };
    if !worktree.is_usable() {
        return Ok(listed);
    }
    let git = Git::at(&worktree.path);
    let output =
        git.output(&["status", "--porcelain", "-z", "--untracked-files=normal", "--ignore-submodules=none"])?;
    listed.is_dirty = output.status.success().then_some(!output.stdout.is_empty());
    let Some(head) = &worktree.head else { return Ok(listed) };
    let upstream = git.answer(&["rev-parse", "--verify", "--quiet", "--abbrev-ref", "@{upstream}"])?;
    let (other, reference) = match (upstream, main) {
        (Some(upstream), _) => (upstream, "@{upstream}".to_owned()),
        (None, Some(main)) if !worktree.is_main && worktree.branch.as_deref() != Some(main) => {
            (main.to_owned(), format!("refs/heads/{main}"))
        }
        _ => return Ok(listed),
    };
    let range = format!("{head}...{reference}");
    let counted = git.output(&["rev-list", "--left-right", "--count", "--end-of-options", &range])?;
    let text = String::from_utf8_lossy(&counted.stdout);
    let mut numbers = text.split_whitespace().map(str::parse);
    if let (Some(Ok(ahead)), Some(Ok(behind))) = (numbers.next(), numbers.next()) {
        (listed.ahead, listed.behind, listed.compared_with) = (Some(ahead), Some(behind), Some(other));
    }
    Ok(listed)
}
