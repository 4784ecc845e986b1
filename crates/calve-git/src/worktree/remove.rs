//! Removes a worktree.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use calve_core::{CancelToken, RemoveOptions, ShownPath, TrashedTree};

use crate::error::{Error, Result};
use crate::git::Git;
use crate::paths::real;
use crate::remedy::Remedy;
use crate::repository::state::{LinkedWorktree, WorktreeState};
use crate::repository::{Repository, Worktree, joined};
use crate::worktree::registration::{self, RepositoryLock};
use crate::worktree::unsaved::hidden::check_hidden;
use crate::worktree::unsaved::nested;
use crate::worktree::unsaved::submodules;
use crate::worktree::unsaved::{check_at_rest, check_forgettable, check_reached};

/// The fate of the branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the other names say it")]
pub enum BranchFate {
    #[default]
    Stays,
    DeletedIfMerged,
    Deleted,
}

/// A worktree to be removed.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RemoveWorktreeOptions {
    /// A directory in the repository.
    pub start: PathBuf,
    /// The branch, the path, or the last name of the path; without it, the worktree that `start` is in.
    pub what: Option<PathBuf>,
    /// Also when something would be lost, or it is locked.
    pub is_forced: bool,
    /// The fate of its branch.
    pub branch: BranchFate,
    /// How the engine removes.
    pub remove: RemoveOptions,
}

/// A worktree that is gone.
#[derive(Debug)]
#[non_exhaustive]
pub struct WorktreeRemoveReport {
    /// Where it was.
    pub path: PathBuf,
    /// The branch it had.
    pub branch: Option<String>,
    /// Whether that was deleted.
    pub is_branch_deleted: bool,
    /// Its directory was gone before, so that only its entry was removed.
    pub was_gone: bool,
    /// A directory to go to from one that is not there any more: the main worktree, or in a bare repository the directory that the
    /// worktree was in.
    pub home: PathBuf,
    /// Where its files wait for [`calve_core::reap`].
    pub trashed: Option<TrashedTree>,
    /// From the call to its return.
    pub elapsed: Duration,
}

/// Removes a worktree. `before` is called when nothing stands in the way any more, with the worktree still whole.
pub fn remove<E: From<Error>>(
    options: &RemoveWorktreeOptions,
    before: impl FnOnce(&Worktree) -> std::result::Result<(), E>,
) -> std::result::Result<WorktreeRemoveReport, E> {
    let started = Instant::now();
    let (repository, worktree, linked) = checked(options)?;
    before(&worktree)?;
    Ok(take_away(&repository, worktree, linked, options, started)?)
}

/// Returns the worktree that [`remove`] would remove. Fails as that would, and changes nothing.
pub fn plan_removal(options: &RemoveWorktreeOptions) -> Result<Worktree> {
    checked(options).map(|(_, worktree, _)| worktree)
}

/// Returns the paths of the worktrees that `names` mean, and the directory to remove them from.
pub fn find_all(start: &Path, names: &[PathBuf]) -> Result<(PathBuf, Vec<Result<PathBuf>>)> {
    let repository = Repository::open(start)?;
    let found = names.iter().map(|name| repository.find(name).map(|worktree| worktree.path.clone())).collect();
    Ok((repository.common, found))
}

/// Finds the worktree, and refuses if it must not be removed.
fn checked(options: &RemoveWorktreeOptions) -> Result<(Repository, Worktree, Option<LinkedWorktree>)> {
    let repository = Repository::open(&options.start)?;
    let what = options.what.as_ref().or(repository.here.as_ref());
    let what = what.ok_or_else(|| Error::refused("there is no worktree here to remove", Remedy::NameListedWorktree))?;
    let worktree = repository.find(what)?.clone();
    check_linked(&worktree)?;
    if !options.is_forced {
        check_unlocked(&worktree)?;
    }
    let linked = match worktree.standing {
        WorktreeState::Gone => None,
        _ => Some(repository.linked(&worktree)?),
    };
    match &linked {
        _ if options.is_forced => {}
        Some(linked) => check(&repository, &worktree, linked, &options.remove.cancel)?,
        None => worktree.entry.iter().try_for_each(|entry| check_forgettable(&repository, &worktree, entry))?,
    }
    Ok((repository, worktree, linked))
}

fn take_away(
    repository: &Repository,
    worktree: Worktree,
    linked: Option<LinkedWorktree>,
    options: &RemoveWorktreeOptions,
    started: Instant,
) -> Result<WorktreeRemoveReport> {
    let mut trashed = None;
    let mut was_gone = linked.is_none();
    if let Some(linked) = linked {
        let mut remove = options.remove.clone();
        remove.protect.push(repository.common.clone());
        match calve_core::remove_opened(linked.path(), linked.root(), &remove) {
            Ok(report) => trashed = report.trashed,
            Err(calve_core::Error::Missing(_)) => was_gone = true,
            Err(error) => return Err(error.into()),
        }
    }
    if let Some(entry) = &worktree.entry {
        registration::remove(entry)?;
    }
    let is_branch_deleted = match (&worktree.branch, options.branch) {
        (Some(branch), BranchFate::Deleted) => delete_branch(repository, branch, "-D")?,
        (Some(branch), BranchFate::DeletedIfMerged) => delete_branch(repository, branch, "-d")?,
        _ => false,
    };
    let home = repository.main().or(worktree.path.parent()).unwrap_or(&repository.common).to_path_buf();
    let Worktree { path, branch, .. } = worktree;
    Ok(WorktreeRemoveReport { path, branch, is_branch_deleted, was_gone, home, trashed, elapsed: started.elapsed() })
}

/// Deletes a branch in the repository itself: the directory that `calve` was started from may just have been removed.
fn delete_branch(repository: &Repository, branch: &str, how: &str) -> Result<bool> {
    let _turn = RepositoryLock::take(&repository.common)?;
    let git = Git::at(&repository.common).with("GIT_DIR", &repository.common);
    let deleted = git.output(&["branch", "--quiet", how, "--", branch])?;
    // Then git only warns, and the next branch of that name would have the settings of this one.
    if deleted.status.success() && String::from_utf8_lossy(&deleted.stderr).contains("could not lock config file") {
        git.output(&["config", "--remove-section", &format!("branch.{branch}")])?;
    }
    Ok(deleted.status.success())
}

fn check_linked(worktree: &Worktree) -> Result<()> {
    if worktree.is_main || worktree.is_bare {
        return Err(Error::refused(
            format!("`{}` is the main worktree, with the repository in it", ShownPath(&worktree.path)),
            Remedy::NameLinkedWorktree,
        ));
    }
    Ok(())
}

fn check_unlocked(worktree: &Worktree) -> Result<()> {
    let Some(reason) = &worktree.locked else { return Ok(()) };
    let why = if reason.is_empty() { String::new() } else { format!(": {}", ShownPath(reason)) };
    Err(Error::refused(format!("the worktree `{}` is locked{why}", ShownPath(&worktree.path)), Remedy::UnlockOrForce))
}

/// Refuses if another worktree is registered at a path inside this one, and something else is there: nobody knows whose that is.
fn check_places_inside(repository: &Repository, worktree: &Worktree) -> Result<()> {
    let outer = real(&worktree.path);
    let others = repository.worktrees.iter().filter(|other| other.path != worktree.path && !other.is_bare);
    let mut strange = others.filter(|other| !matches!(other.standing, WorktreeState::Intact | WorktreeState::Gone));
    match strange.find(|other| real(&other.path).starts_with(&outer)) {
        None => Ok(()),
        Some(inside) => Err(Error::refused(
            format!(
                "`{}` in the worktree `{}` is registered as another worktree, but something else is there",
                ShownPath(&inside.path),
                ShownPath(&worktree.path)
            ),
            Remedy::MoveAwayOrForce,
        )),
    }
}

/// Refuses where something would be lost.
fn check(repository: &Repository, worktree: &Worktree, linked: &LinkedWorktree, cancel: &CancelToken) -> Result<()> {
    let git = Git::at(linked.path());
    check_at_rest(worktree, linked.entry())?;
    check_places_inside(repository, worktree)?;
    std::thread::scope(|scope| {
        let reached = scope.spawn(|| check_reached(repository, worktree));
        let submodules = scope.spawn(|| submodules::check_kept(repository, worktree, linked.entry()));
        let nested = scope.spawn(|| nested::check_kept(linked, &repository.worktrees, cancel));
        let hidden = scope.spawn(|| check_hidden(&git, &[], linked.path(), &|_, _| false));
        if !is_plainly_clean(&git)? {
            check_clean(&git, linked.path())?;
        }
        [reached, submodules, nested, hidden].into_iter().try_for_each(joined)
    })
}

/// Asks two short questions at once instead of a long one. Where they find something it may still be nothing: a file that was touched, a
/// directory with nothing in it.
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
                ShownPath(path),
                ShownPath(Path::new(name))
            ),
            Remedy::CommitOrForce,
        ));
    }
    Ok(())
}
