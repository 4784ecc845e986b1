//! `calve worktree remove`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use calve_core::{RemoveOptions, Shown, Trashed};

use super::register::{self, Turn, entries_by_worktree};
use super::repository::{Repository, Worktree, joined};
use super::submodules;
use crate::error::{Error, Result};
use crate::git::Git;

/// What becomes of the branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BranchFate {
    /// It stays.
    #[default]
    Stays,
    /// It is deleted if it is merged.
    DeletedIfMerged,
    /// It is deleted.
    Deleted,
}

/// A worktree to be removed.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RemoveWorktreeOptions {
    /// A directory in the repository.
    pub start: PathBuf,
    /// The branch, the path, or the last name of the path.
    pub what: PathBuf,
    /// Also when something would be lost, or it is locked.
    pub is_forced: bool,
    /// What becomes of its branch.
    pub branch: BranchFate,
    /// How the engine removes.
    pub remove: RemoveOptions,
}

/// A worktree that is gone.
#[derive(Debug)]
#[non_exhaustive]
pub struct Removed {
    /// Where it was.
    pub path: PathBuf,
    /// The branch it had.
    pub branch: Option<String>,
    /// Whether that was deleted.
    pub is_branch_deleted: bool,
    /// Where its files wait for [`calve_core::reap`].
    pub trashed: Option<Trashed>,
    /// From the call to its return.
    pub elapsed: Duration,
}

/// Removes a worktree. `before` is called when nothing stands in the way any more, with the worktree still whole.
pub fn remove<E: From<Error>>(
    options: &RemoveWorktreeOptions,
    before: impl FnOnce(&Worktree) -> std::result::Result<(), E>,
) -> std::result::Result<Removed, E> {
    let started = Instant::now();
    let repository = Repository::open(&options.start)?;
    let worktree = repository.find(&options.what)?.clone();
    check(&repository, &worktree, options)?;
    before(&worktree)?;
    Ok(take_away(&repository, worktree, options, started)?)
}

fn take_away(
    repository: &Repository,
    worktree: Worktree,
    options: &RemoveWorktreeOptions,
    started: Instant,
) -> Result<Removed> {
    let entries = entries_by_worktree(&repository.common)?;
    let entry = entries.into_iter().find(|(path, _)| *path == worktree.path).map(|(_, entry)| entry);
    let mut trashed = None;
    if !worktree.is_gone {
        match calve_core::remove_tree(&worktree.path, &options.remove) {
            Ok(report) => trashed = report.trashed,
            Err(calve_core::Error::Missing(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if let Some(entry) = entry {
        register::remove(&entry)?;
    }
    let is_branch_deleted = match (&worktree.branch, options.branch) {
        (Some(branch), BranchFate::Deleted) => delete_branch(repository, branch, "-D")?,
        (Some(branch), BranchFate::DeletedIfMerged) => delete_branch(repository, branch, "-d")?,
        _ => false,
    };
    Ok(Removed { path: worktree.path, branch: worktree.branch, is_branch_deleted, trashed, elapsed: started.elapsed() })
}

/// In the repository itself: the directory that it was started from may just have been removed.
fn delete_branch(repository: &Repository, branch: &str, how: &str) -> Result<bool> {
    let _turn = Turn::take(&repository.common)?;
    let git = Git::at(&repository.common).with("GIT_DIR", &repository.common);
    Ok(git.output(&["branch", "--quiet", how, "--", branch])?.status.success())
}

fn check(repository: &Repository, worktree: &Worktree, options: &RemoveWorktreeOptions) -> Result<()> {
    let path = Shown(&worktree.path);
    if worktree.is_main || worktree.is_bare {
        return Err(Error::refused(
            format!("`{path}` is the main worktree, with the repository in it"),
            "name a linked worktree; `calve worktree list` shows them",
        ));
    }
    if options.is_forced {
        return Ok(());
    }
    if let Some(reason) = &worktree.locked {
        let why = if reason.is_empty() { String::new() } else { format!(": {}", Shown(reason)) };
        return Err(Error::refused(
            format!("the worktree `{path}` is locked{why}"),
            "`git worktree unlock` it first, or pass `-f`",
        ));
    }
    if worktree.is_gone {
        return Ok(());
    }
    let git = Git::at(&worktree.path);
    std::thread::scope(|scope| {
        let reached = scope.spawn(|| check_reached(repository, worktree));
        let submodules = scope.spawn(|| submodules::check_kept(repository, worktree));
        if !is_plainly_clean(&git)? {
            check_clean(&git, &worktree.path)?;
        }
        joined(reached)?;
        joined(submodules)
    })
}

/// Two short questions, asked at once, instead of a long one. Where they find something it may still be nothing: a file that was
/// touched, a directory with nothing in it.
fn is_plainly_clean(git: &Git) -> Result<bool> {
    let (tracked, others) = std::thread::scope(|scope| {
        let tracked = scope.spawn(|| git.output(&["diff-index", "--quiet", "--ignore-submodules=none", "HEAD", "--"]));
        let others =
            git.output(&["ls-files", "-z", "--others", "--exclude-standard", "--directory", "--no-empty-directory"]);
        (joined(tracked), others)
    });
    let others = others?;
    Ok(tracked?.status.success() && others.status.success() && others.stdout.is_empty())
}

fn check_clean(git: &Git, path: &Path) -> Result<()> {
    let status = git.run(&[
        "status",
        "--porcelain",
        "-z",
        "--no-renames",
        "--untracked-files=normal",
        "--no-ahead-behind",
        "--ignore-submodules=none",
    ])?;
    if let Some(first) = status.split(|&byte| byte == 0).find(|record| !record.is_empty()) {
        let name = OsStr::new(std::str::from_utf8(first.get(3..).unwrap_or_default()).unwrap_or("?"));
        return Err(Error::refused(
            format!(
                "the worktree `{}` has changes that are not committed (first: `{}`)",
                Shown(path),
                Shown(Path::new(name))
            ),
            "commit or stash them, or pass `-f` to lose them",
        ));
    }
    Ok(())
}

fn check_reached(repository: &Repository, worktree: &Worktree) -> Result<()> {
    let path = Shown(&worktree.path);
    let (None, Some(head)) = (&worktree.branch, &worktree.head) else { return Ok(()) };
    let reached = repository.git().run(&["for-each-ref", "--count=1", "--format=x", "--contains", head])?;
    if reached.is_empty() {
        return Err(Error::refused(
            format!("the worktree `{path}` has commits that no branch or tag has"),
            format!("keep them with `git branch NAME {}`, or pass `-f` to lose them", &head[..head.len().min(12)]),
        ));
    }
    Ok(())
}
