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
    let differing = git.output(&["rev-list", "--left-right", "--end-of-options", &range])?;
    if !differing.status.success() {
        return Ok(listed);
    }
    listed.compared_with = Some(other);
    let differing = String::from_utf8_lossy(&differing.stdout);
    // Where a shallow clone is cut off, there may be more commits, or the two may have parted later.
    let cut = fs_err::read_to_string(repository.common.join("shallow")).unwrap_or_default();
    if cut.is_empty() || !differing.lines().any(|line| line.get(1..).is_some_and(|commit| cut.contains(commit))) {
        let of = |side: char| differing.lines().filter(|line| line.starts_with(side)).count() as u64;
        (listed.ahead, listed.behind) = (Some(of('<')), Some(of('>')));
    }
    Ok(listed)
}
