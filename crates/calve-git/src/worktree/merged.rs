//! Worktrees whose commits are elsewhere too.

use std::cmp::Reverse;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::git::Git;
use crate::remedy::Remedy;
use crate::repository::{Repository, Worktree};
use crate::unsaved_item::UnsavedItem;
use crate::worktree::processes::check_idle;
use crate::worktree::remove::{RemovalSteps, RemoveWorktreeOptions, plan_in};
use crate::worktree::unsaved::reflog;

#[derive(Debug)]
pub struct MergedWorktree {
    pub worktree: Worktree,
    /// The main worktree's branch, or the worktree's own upstream.
    pub merged_into: String,
    /// The branch has all changes in one commit, and not the commits.
    pub is_squashed: bool,
    pub age: Option<Duration>,
    /// Ignored files that only this worktree has, which removal moves aside, and data that may be lost.
    pub unsaved: Vec<UnsavedItem>,
}

/// Worktrees that may go, and those that stay, with the reasons.
pub type JudgedWorktrees<E> = (Vec<MergedWorktree>, Vec<(PathBuf, E)>);

/// Returns the merged linked worktrees made at least `older_than` ago that may go, and those that stay, with the reasons, oldest first: the
/// main worktree's branch or their upstream has their commits, or one commit of the main worktree's branch has all their changes (a squashed
/// merge).
///
/// A worktree stays for the reasons of [`super::remove`], while a process is inside (other users' cannot be seen without privilege),
/// and if `start` is in it. Without `older_than`, also if no commit was ever made on its branch: that is new, not merged.
pub fn merged<E: From<Error>>(
    options: &RemoveWorktreeOptions,
    older_than: Option<Duration>,
    steps: &mut impl RemovalSteps<E>,
) -> std::result::Result<JudgedWorktrees<E>, E> {
    let repository = Repository::open(&options.start)?;
    repository.check_references(Remedy::RemoveWithGit)?;
    let (mut found, mut staying) = (Vec::new(), Vec::new());
    let age = |worktree: &Worktree| worktree.made().and_then(|made| made.elapsed().ok());
    let mut aged: Vec<_> = repository.worktrees.iter().map(|worktree| (age(worktree), worktree)).collect();
    aged.sort_by_key(|(age, _)| Reverse(*age));
    for (age, worktree) in aged {
        if age.unwrap_or_default() >= older_than.unwrap_or_default()
            && let Some((merged_into, is_squashed)) = branch_with(&repository, worktree)?
        {
            let is_new = older_than.is_none() && !is_squashed && !has_own_commits(&repository, worktree, &merged_into)?;
            let checked = match is_new {
                true => Err(Error::refused("no commit was ever made on its branch", Remedy::GiveAge).into()),
                false => check(&repository, worktree, options, steps),
            };
            let worktree = worktree.clone();
            match checked {
                Ok(unsaved) => found.push(MergedWorktree { worktree, merged_into, is_squashed, age, unsaved }),
                Err(error) => staying.push((worktree.path, error)),
            }
        }
        if options.remove.cancel.is_cancelled() {
            return Err(Error::Interrupted.into());
        }
    }
    Ok((found, staying))
}

/// Returns whether a worktree of [`merged`] is unchanged and may go. [`super::remove`] checks for unsaved work itself.
pub fn is_still_merged(start: &Path, found: &MergedWorktree) -> Result<bool> {
    let repository = Repository::open(start)?;
    let Some(worktree) = repository.worktrees.iter().find(|worktree| **worktree == found.worktree) else {
        return Ok(false);
    };
    let is_free = check_not_here(&repository, worktree).and_then(|()| check_idle(&worktree.path)).is_ok();
    Ok(is_free && branch_with(&repository, worktree)?.is_some())
}

/// Returns whether a commit was ever made on a worktree's branch, or in it if HEAD is detached, by the reflog. Without a reflog, and for a
/// branch with an upstream, whose commits were made elsewhere, only a merge by a commit shows that.
fn has_own_commits(repository: &Repository, worktree: &Worktree, merged_into: &str) -> Result<bool> {
    let (directory, reference) = match (&worktree.branch, &worktree.entry) {
        (Some(branch), _) => (&repository.common, format!("refs/heads/{branch}")),
        (None, Some(entry)) => (entry, "HEAD".to_owned()),
        (None, None) => return Ok(false),
    };
    let git = Git::at(&repository.common).with("GIT_DIR", &repository.common);
    match reflog::has_made_commits(directory, &reference) {
        Some(true) => return Ok(true),
        Some(false) if !has_remote(&git, worktree)? => return Ok(false),
        _ => {}
    }
    let Some(head) = &worktree.head else { return Ok(false) };
    let straight = git.run(&["rev-list", "--first-parent", "--end-of-options", merged_into])?;
    Ok(!straight.split(|&byte| byte == b'\n').any(|commit| commit == head.as_bytes()))
}

/// Returns whether a worktree's branch follows a remote one. `.` is this repository.
fn has_remote(git: &Git, worktree: &Worktree) -> Result<bool> {
    let Some(branch) = &worktree.branch else { return Ok(false) };
    let remote = git.answer(&["config", "--get", &format!("branch.{branch}.remote")])?;
    Ok(remote.is_some_and(|remote| remote != "."))
}

/// Returns the other branch that has all commits of a linked worktree, and whether it has them as one.
fn branch_with(repository: &Repository, worktree: &Worktree) -> Result<Option<(String, bool)>> {
    if worktree.is_main || !worktree.is_usable() {
        return Ok(None);
    }
    let main = repository.worktrees.first().and_then(|main| main.branch.as_deref());
    let Some(head) = worktree.head.as_deref() else { return Ok(None) };
    let git = repository.git_to_ask();
    let has_all = |reference: &str| git.succeeds(&["merge-base", "--is-ancestor", head, reference]);
    let main = main.filter(|main| worktree.branch.as_deref() != Some(main));
    if let Some(main) = main
        && has_all(&format!("refs/heads/{main}"))?
    {
        return Ok(Some((main.to_owned(), false)));
    }
    if let Some(reference) = worktree.branch.as_ref().map(|branch| format!("{branch}@{{upstream}}"))
        && let Some(full) = git.answer(&["rev-parse", "--symbolic-full-name", &reference])?
        && !repository.references.names_of(worktree.branch.as_deref().unwrap_or_default()).contains(&full)
        && let Some(upstream) = git.answer(&["rev-parse", "--verify", "--quiet", "--abbrev-ref", &reference])?
        && has_all(&reference)?
    {
        return Ok(Some((upstream, false)));
    }
    match main {
        Some(main) if has_squashed(repository, git, head, &format!("refs/heads/{main}"))? => {
            Ok(Some((main.to_owned(), true)))
        }
        _ => Ok(None),
    }
}

/// Returns whether one commit of a branch has all changes of this worktree, as `git cherry` compares, and the branch still has them: a merge
/// would change nothing (`git merge-tree`, git 2.38). With an older git, nothing counts as squashed.
fn has_squashed(repository: &Repository, git: Git, head: &str, branch: &str) -> Result<bool> {
    let Some(base) = git.answer(&["merge-base", head, branch])? else { return Ok(false) };
    if git.succeeds(&["diff-tree", "--quiet", &base, head])? {
        return Ok(false);
    }
    // The objects that git makes for the comparison do not belong in the repository.
    let objects = tempfile::tempdir()?;
    let info = objects.path().join("info");
    fs_err::create_dir(&info)?;
    let own = repository.common.join("objects");
    fs_err::write(info.join("alternates"), [own.as_os_str().as_bytes(), b"\n"].concat())?;
    let git = git.with("GIT_OBJECT_DIRECTORY", objects.path());
    // Its own message makes the commit differ from every existing one.
    let signed = ["-c", "user.name=calve", "-c", "user.email=calve@localhost", "commit-tree", "-m", "calve: squashed"];
    let squashed = git.answer(&[&signed[..], &["-p", &base, &format!("{head}^{{tree}}")]].concat())?;
    let Some(squashed) = squashed else { return Ok(false) };
    if !git.run(&["cherry", branch, &squashed])?.starts_with(b"- ") {
        return Ok(false);
    }
    let merged = git.answer(&["merge-tree", "--write-tree", branch, head])?;
    Ok(merged.is_some() && merged == git.answer(&["rev-parse", &format!("{branch}^{{tree}}")])?)
}

fn check<E: From<Error>>(
    repository: &Repository,
    worktree: &Worktree,
    options: &RemoveWorktreeOptions,
    steps: &mut impl RemovalSteps<E>,
) -> std::result::Result<Vec<UnsavedItem>, E> {
    check_not_here(repository, worktree)?;
    let options = RemoveWorktreeOptions { what: Some(worktree.path.clone()), ..options.clone() };
    let plan = plan_in(repository, &options, steps)?;
    check_idle(&worktree.path)?;
    Ok(plan.unsaved)
}

fn check_not_here(repository: &Repository, worktree: &Worktree) -> Result<()> {
    match repository.here.as_ref() == Some(&worktree.path) {
        true => Err(Error::refused("you are in it", Remedy::LeaveDirectory)),
        false => Ok(()),
    }
}
