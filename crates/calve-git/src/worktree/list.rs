use std::path::Path;

use calve_core::internal::joined;
use serde::Serialize;

use crate::error::Result;
use crate::git::Git;
use crate::repository::{Repository, Worktree};
use crate::worktree::agent;
use crate::worktree::registration::open_swept;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorktreeInfo {
    #[serde(flatten)]
    pub worktree: Worktree,
    /// True if something is not committed. Null if that is unknown.
    #[serde(rename = "dirty")]
    pub is_dirty: Option<bool>,
    /// The number of commits that `compared_with` does not have. Null if that is unknown.
    pub ahead: Option<u64>,
    /// The number of commits that only `compared_with` has. Null if that is unknown.
    pub behind: Option<u64>,
    /// The upstream of the branch, or the branch of the main worktree.
    pub compared_with: Option<String>,
    /// The age in seconds. Null for the main worktree.
    pub age_s: Option<u64>,
}

pub fn list(start: &Path) -> Result<Vec<WorktreeInfo>> {
    let repository = open_swept(start)?;
    let main = repository.worktrees.first().and_then(|main| Some((main.branch.as_deref()?, main.head.as_deref()?)));
    // In parallel, because each takes as long as a `git status`.
    let repository = &repository;
    std::thread::scope(|scope| {
        let begin = |worktree| scope.spawn(move || look(repository, worktree, main));
        let all: Vec<_> = repository.worktrees.iter().map(begin).collect();
        all.into_iter().map(joined).collect()
    })
}

/// Compares with `main`, the branch and the commit of the main worktree, if the branch has no upstream.
fn look(repository: &Repository, worktree: &Worktree, main: Option<(&str, &str)>) -> Result<WorktreeInfo> {
    let mut listed = WorktreeInfo {
        worktree: Worktree { maker: agent::maker(worktree), ..worktree.clone() },
        age_s: worktree.made().and_then(|made| made.elapsed().ok()).map(|age| age.as_secs()),
        ..WorktreeInfo::default()
    };
    if !worktree.is_usable() {
        return Ok(listed);
    }
    let git = Git::at(&worktree.path).heeding_change_times();
    // One process tells the changes and the upstream: each costs as much as a small status.
    let output = git.output(&[
        "status",
        "--porcelain=v2",
        "--branch",
        "--no-ahead-behind",
        "-z",
        "--untracked-files=normal",
        "--ignore-submodules=none",
    ])?;
    if !output.status.success() {
        return Ok(listed);
    }
    let records = || output.stdout.split(|&byte| byte == 0).filter(|record| !record.is_empty());
    listed.is_dirty = Some(records().any(|record| !record.starts_with(b"# ")));
    let header = |name: &str| records().find_map(|record| record.strip_prefix(name.as_bytes()));
    let Some(head) = &worktree.head else { return Ok(listed) };
    // An upstream that is gone has no distance.
    let upstream = header("# branch.upstream ").zip(header("# branch.ab "));
    let (other, reference, is_same) = match (upstream, main) {
        (Some((upstream, distance)), _) => {
            (String::from_utf8_lossy(upstream).into_owned(), "@{upstream}".to_owned(), distance == b"+0 -0")
        }
        (None, Some((main, tip))) if !worktree.is_main && worktree.branch.as_deref() != Some(main) => {
            (main.to_owned(), format!("refs/heads/{main}"), tip == head)
        }
        _ => return Ok(listed),
    };
    if is_same {
        return Ok(WorktreeInfo { compared_with: Some(other), ahead: Some(0), behind: Some(0), ..listed });
    }
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
