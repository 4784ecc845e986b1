//! Finds work that exists only in the entry of a worktree, and would go when the worktree is removed or forgotten.

pub(crate) mod hidden;
pub(crate) mod nested;
pub(crate) mod submodules;
mod unpushed;

use std::path::Path;

use calve_core::ShownPath;

use crate::error::{Error, Result};
use crate::git::Git;
use crate::remedy::{Remedy, UnfinishedOperation};
use crate::repository::{Repository, Worktree};

/// The files that git keeps during an operation.
const UNFINISHED: [(&str, UnfinishedOperation); 7] = [
    ("rebase-merge", UnfinishedOperation::Rebase),
    ("rebase-apply", UnfinishedOperation::RebaseOrAm),
    ("MERGE_HEAD", UnfinishedOperation::Merge),
    ("MERGE_AUTOSTASH", UnfinishedOperation::Merge),
    ("CHERRY_PICK_HEAD", UnfinishedOperation::CherryPick),
    ("REVERT_HEAD", UnfinishedOperation::Revert),
    ("BISECT_LOG", UnfinishedOperation::Bisect),
];

/// Refuses while git is in the middle of an operation: its own stash and the commits so far exist nowhere else.
pub(crate) fn check_at_rest(worktree: &Worktree, entry: &Path) -> Result<()> {
    match unfinished(entry) {
        None => Ok(()),
        Some(operation) => Err(Error::refused(
            format!("a {} is not finished in the worktree `{}`", operation.name(), ShownPath(&worktree.path)),
            Remedy::FinishOrForce(operation),
        )),
    }
}

/// Returns the operation that git is in the middle of, in the worktree with these files of git's.
fn unfinished(entry: &Path) -> Option<UnfinishedOperation> {
    let is_there = |name: &str| fs_err::symlink_metadata(entry.join(name)).is_ok();
    UNFINISHED.iter().find(|(name, _)| is_there(name)).map(|(_, operation)| *operation)
}

/// Refuses if HEAD is detached at commits that no reference has.
pub(crate) fn check_reached(repository: &Repository, worktree: &Worktree) -> Result<()> {
    let (None, Some(head)) = (&worktree.branch, &worktree.head) else { return Ok(()) };
    if is_reached(&repository.common, head)? {
        return Ok(());
    }
    Err(Error::refused(
        format!("the worktree `{}` has commits that no branch or tag has", ShownPath(&worktree.path)),
        Remedy::BranchOrForce(head.clone()),
    ))
}

/// Asks the repository itself, because references of the worktree alone (`refs/bisect`, `refs/worktree`) go with it.
fn is_reached(common: &Path, commit: &str) -> Result<bool> {
    let git = Git::at(common).with("GIT_DIR", common);
    Ok(!git.run(&["for-each-ref", "--count=1", "--format=x", "--contains", commit])?.is_empty())
}

/// Refuses to forget a worktree whose directory is gone if its entry has the last copy of staged contents, commits or submodules.
pub(crate) fn check_forgettable(repository: &Repository, worktree: &Worktree, entry: &Path) -> Result<()> {
    check_at_rest(worktree, entry)?;
    check_reached(repository, worktree)?;
    submodules::check_kept(repository, worktree, entry)?;
    if let Some(first) = staged(repository, worktree, entry)? {
        return Err(Error::refused(
            format!("the entry of the worktree `{}` has staged changes (first: `{first}`)", ShownPath(&worktree.path)),
            Remedy::RecoverStaged,
        ));
    }
    Ok(())
}

/// Returns the first file whose staged contents the commit does not have.
fn staged(repository: &Repository, worktree: &Worktree, entry: &Path) -> Result<Option<String>> {
    if fs_err::symlink_metadata(entry.join("index")).is_err() {
        return Ok(None);
    }
    let git = Git::at(&repository.common).with("GIT_DIR", entry);
    let said = match &worktree.head {
        Some(_) => git.run(&["diff-index", "--cached", "--name-only", "--diff-filter=AMTU", "-z", "HEAD", "--"])?,
        None => git.run(&["ls-files", "--cached", "-z"])?,
    };
    let first = said.split(|&byte| byte == 0).find(|path| !path.is_empty());
    Ok(first.map(|path| ShownPath(String::from_utf8_lossy(path).as_ref()).to_string()))
}

/// Refuses to forget an entry that git takes for broken, for the same reasons.
pub(crate) fn check_broken(repository: &Repository, entry: &Path) -> Result<()> {
    let Ok(text) = fs_err::read_to_string(entry.join("HEAD")) else { return Ok(()) };
    let branch = text.trim_end().strip_prefix("ref: refs/heads/").map(str::to_owned);
    let git = Git::at(&repository.common).with("GIT_DIR", entry);
    let head = git.answer(&["rev-parse", "--verify", "--quiet", "HEAD"])?;
    let worktree = Worktree { path: entry.to_path_buf(), branch, head, ..Worktree::default() };
    check_forgettable(repository, &worktree, entry)
}
