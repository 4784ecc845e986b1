use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::result::Result as StepResult;
use std::time::{Duration, Instant};

use calve_core::RemoveOptions;
use calve_core::error::Protection;
use calve_core::internal::ShownPath;
use calve_core::internal::json::{As, Milliseconds, ReceiptPath};
use calve_core::report::TrashedTree;
use rustix::fs::FlockOperation;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::file_lock::lock;
use crate::paths::{is_missing, real};
use crate::place::open_directory;
use crate::remedy::Remedy;
use crate::repository::entries;
use crate::repository::logs::Log;
use crate::repository::operation::{holding, names_one};
use crate::repository::reference_list::References;
use crate::repository::state::LinkedWorktree;
use crate::repository::status::WorktreeState;
use crate::repository::{self, Repository, Worktree};
use crate::unsaved_item::{IgnoredFile, UnsavedItem};
use crate::worktree::registration;
use crate::worktree::unsaved::{self, KeptFiles, UnsavedReceipt, reflog};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BranchFate {
    #[default]
    Stays,
    DeletedIfMerged,
    Deleted,
}

#[derive(Debug, Clone, Default)]
pub struct RemoveWorktreeOptions {
    /// A directory in the repository.
    pub start: PathBuf,
    /// `start` is git's own directory of the repository, as [`find_all`] returns it.
    pub is_found: bool,
    /// Branch, path, or last name of the path. Without it, the worktree that `start` is in.
    pub what: Option<PathBuf>,
    /// Worktrees that the same dry run would remove before.
    pub gone_before: Vec<PathBuf>,
    /// Removes it although something would be lost, or it is locked.
    pub is_forced: bool,
    /// Removes it although service data would be lost.
    pub loses_data: bool,
    pub branch: BranchFate,
    pub remove: RemoveOptions,
}

/// The caller's part in a removal.
pub trait RemovalSteps<E> {
    /// Lists losses that only the caller knows of, such as service data.
    fn unsaved(&mut self, _: &Worktree) -> StepResult<Vec<UnsavedItem>, E> {
        Ok(Vec::new())
    }

    /// Runs once nothing stands in the way any more, with the worktree still whole.
    fn before(&mut self, _: &Worktree) -> StepResult<Meanwhile, E> {
        Ok(Meanwhile::Nothing)
    }
}

/// Possible changes during [`RemovalSteps::before`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meanwhile {
    /// It took no time.
    Nothing,
    /// It took time, in which files may have been saved: everything is checked again.
    Changes,
}

#[derive(Debug)]
pub struct RemovalPlan {
    pub worktree: Worktree,
    /// Everything that exists nowhere else. Items that need force are lost, ignored files are moved aside.
    pub unsaved: Vec<UnsavedItem>,
    pub branch: Option<GoingBranch>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GoingBranch {
    /// Without `refs/heads/`.
    #[serde(skip)]
    pub name: String,
    /// The commit of the branch that was deleted. Absent if it stays.
    #[serde(rename = "branch_commit")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub commit: String,
    /// How many commits only it and its log lead to. Absent if it stays.
    // The log, with amended and reset commits, goes with the branch.
    #[serde(rename = "branch_own_commits")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub own_commits: u64,
}

/// The report of `calve worktree remove`.
#[derive(Debug, Serialize)]
#[serde(tag = "schema", rename = "calve.worktree-remove/1")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorktreeRemoveReport {
    /// The path of the worktree.
    #[serde(with = "As::<ReceiptPath>")]
    pub path: PathBuf,
    /// The branch that was checked out. Null if HEAD was detached.
    pub branch: Option<String>,
    /// The branch, if it was to be deleted and stays.
    #[serde(skip)]
    pub staying_branch: Option<GoingBranch>,
    /// True if the branch was deleted.
    #[serde(rename = "branch_deleted")]
    pub is_branch_deleted: bool,
    #[serde(flatten)]
    pub deleted_branch: Option<GoingBranch>,
    /// True if the directory was gone before.
    pub was_gone: bool,
    /// Ignored files that only it had, and where they are. Absent if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptFiles>,
    /// Everything that existed only there and was lost by `-f`. Absent if there was nothing.
    #[serde(with = "As::<Vec<UnsavedReceipt>>", skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<UnsavedItem>,
    /// Why the entry or the branch may still be there, though the directory is gone.
    #[serde(skip)]
    pub unfinished: Option<Error>,
    /// Where to go from a removed directory: the main worktree, or for a bare repository the worktree's parent.
    #[serde(skip)]
    pub home: PathBuf,
    /// True if files wait to be deleted in the background.
    #[serde(with = "As::<bool>")]
    pub trashed: Option<TrashedTree>,
    /// The time that it took in milliseconds, without deletion in the background.
    #[serde(rename = "elapsed_ms", with = "As::<Milliseconds>")]
    pub elapsed: Duration,
}

/// Removes a worktree. Refuses to lose anything that exists nowhere else, unless forced.
pub fn remove<E: From<Error>>(
    options: &RemoveWorktreeOptions,
    steps: &mut impl RemovalSteps<E>,
) -> StepResult<WorktreeRemoveReport, E> {
    let started = Instant::now();
    let repository = options.repository()?;
    let going = Going::find(&repository, options)?;
    let mut unsaved = going.checked_unless_removed(steps)?;
    if steps.before(&going.worktree)? == Meanwhile::Changes {
        // Service data of the first check stays in the list: servers that have ended are not asked again.
        let data = unsaved.into_iter().filter(|item| matches!(item, UnsavedItem::Service(_)));
        let data: Vec<UnsavedItem> = data.collect();
        unsaved = going.checked_unless_removed(steps)?;
        unsaved.extend(data);
    }
    Ok(going.take_away(unsaved, started)?)
}

impl RemoveWorktreeOptions {
    fn repository(&self) -> Result<Repository> {
        if self.is_found { Repository::open_again(&self.start) } else { Repository::open(&self.start) }
    }
}

/// Plans [`remove`]: fails where it would, and changes nothing.
pub fn plan_removal<E: From<Error>>(
    options: &RemoveWorktreeOptions,
    steps: &mut impl RemovalSteps<E>,
) -> StepResult<RemovalPlan, E> {
    plan_in(&options.repository()?, options, steps)
}

pub(super) fn plan_in<E: From<Error>>(
    repository: &Repository,
    options: &RemoveWorktreeOptions,
    steps: &mut impl RemovalSteps<E>,
) -> StepResult<RemovalPlan, E> {
    let going = Going::find(repository, options)?;
    let unsaved = going.checked(steps)?;
    let branch = going.branch(&repository.references)?;
    Ok(RemovalPlan { worktree: going.worktree, unsaved, branch })
}

/// Returns the repository to remove from, and the path for each of `names`. A worktree inside another comes before it.
pub fn find_all(start: &Path, names: &[PathBuf]) -> Result<(PathBuf, Vec<Result<PathBuf>>)> {
    let repository = Repository::open(start)?;
    let found = names.iter().map(|name| repository.find(name).map(|worktree| worktree.path.clone()));
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|path| Reverse(path.as_ref().map_or(0, |path| path.iter().count())));
    Ok((repository.common, found))
}

/// A worktree to be removed, held open unless it is gone.
struct Going<'r> {
    repository: &'r Repository,
    options: &'r RemoveWorktreeOptions,
    worktree: Worktree,
    linked: Option<LinkedWorktree>,
}

impl<'r> Going<'r> {
    /// Finds the worktree. Refuses the main one, a locked one, and anything that is not the worktree.
    fn find(repository: &'r Repository, options: &'r RemoveWorktreeOptions) -> Result<Going<'r>> {
        repository.check_references(Remedy::RemoveWithGit)?;
        let what = options.what.as_ref().or(repository.here.as_ref());
        let what =
            what.ok_or_else(|| Error::refused("there is no worktree here to remove", Remedy::NameListedWorktree))?;
        let mut worktree = repository.find(what)?.clone();
        if worktree.is_main || worktree.is_bare {
            let text = format!("`{}` is the main worktree, with the repository in it", ShownPath(&worktree.path));
            return Err(Error::refused(text, Remedy::NameLinkedWorktree));
        }
        if !options.is_forced {
            worktree.check_unlocked(Remedy::UnlockOrForce)?;
        }
        if let Some(named) = worktree.entry.as_deref().and_then(entries::branch_in) {
            worktree.branch = Some(named);
        }
        let linked = match worktree.status {
            WorktreeState::Gone => None,
            _ => Some(repository.linked(&worktree).map_err(|error| match worktree.status {
                WorktreeState::Intact if is_missing(&worktree.path) => removed_meanwhile(&worktree),
                _ => error,
            })?),
        };
        Ok(Going { repository, options, worktree, linked })
    }

    /// Runs [`Self::checked`]. If the worktree went meanwhile, says so instead of naming the failure that this caused.
    fn checked_unless_removed<E: From<Error>>(
        &self,
        steps: &mut impl RemovalSteps<E>,
    ) -> StepResult<Vec<UnsavedItem>, E> {
        self.checked(steps).map_err(|error| match &self.linked {
            Some(_) if !self.options.remove.cancel.is_cancelled() && is_missing(&self.worktree.path) => {
                removed_meanwhile(&self.worktree).into()
            }
            _ => error,
        })
    }

    /// Lists everything that would be lost. Refuses if something needs force, unless that was given.
    fn checked<E: From<Error>>(&self, steps: &mut impl RemovalSteps<E>) -> StepResult<Vec<UnsavedItem>, E> {
        let Going { repository, options, worktree, .. } = self;
        // Force also applies to a worktree that is too broken to inspect.
        let mut unread = options.is_forced.then(Vec::new);
        let mut items = match (&self.linked, &worktree.entry) {
            (Some(linked), _) => {
                unsaved::of_worktree(repository, worktree, linked, &options.remove.cancel, &mut unread)?
            }
            (None, Some(entry)) => unsaved::part(unsaved::of_entry(repository, worktree, entry), &mut unread)?,
            (None, None) => Vec::new(),
        };
        items.extend(unread.into_iter().flatten());
        items.extend(steps.unsaved(worktree)?);
        if !options.is_forced {
            let may_go = |item: &&UnsavedItem| options.loses_data && matches!(item, UnsavedItem::Service(_));
            let staying: Vec<UnsavedItem> = items.iter().filter(|item| !may_go(item)).cloned().collect();
            unsaved::check_none_lost(&worktree.path, self.linked.is_none(), &staying)?;
            self.check_none_inside(&repository.worktrees)?;
            if !ignored(&items).is_empty() {
                unsaved::check_place(&repository.common)?;
            }
        }
        self.check_removable()?;
        Ok(items)
    }

    /// Refuses to take along another worktree: its hook would not run, and its ports and data would stay.
    fn check_none_inside(&self, worktrees: &[Worktree]) -> Result<()> {
        let outer = real(&self.worktree.path);
        let is_another = |other: &Worktree| {
            let is_going = other.path == self.worktree.path || self.options.gone_before.contains(&other.path);
            !other.is_main && other.is_usable() && !is_going
        };
        let is_inside = |other: &&Worktree| is_another(other) && real(&other.path).starts_with(&outer);
        let Some(inner) = worktrees.iter().find(is_inside) else { return Ok(()) };
        let text = format!("another worktree, `{}`, is inside `{}`", ShownPath(&inner.path), ShownPath(&outer));
        Err(Error::refused(text, Remedy::RemoveInnerOrForce))
    }

    fn check_removable(&self) -> Result<()> {
        if let Some(linked) = &self.linked {
            self.check_directory_removable(linked)?;
        }
        self.worktree.entry.as_deref().filter(|entry| !is_missing(entry)).map_or(Ok(()), registration::check_removable)
    }

    /// Refuses a worktree that the engine would refuse, such as with a mount inside, or would empty and leave in place.
    fn check_directory_removable(&self, linked: &LinkedWorktree) -> Result<()> {
        match calve_core::internal::check_removable(&linked.path, &self.removal()) {
            // The caller may leave the directory until then.
            Err(calve_core::Error::Protected { reason: Protection::CurrentDirectory, .. }) => {}
            // Without a directory there is nothing to remove.
            Err(calve_core::Error::Missing(_)) => return Ok(()),
            Err(error) if matches!(error.remedy(), Some(calve_core::error::Remedy::DeleteAsRoot)) => {
                return Err(Error::refused(error.to_string(), Remedy::RemoveAsRoot));
            }
            checked => checked?,
        }
        Ok(calve_core::internal::check_renamable(&linked.path)?)
    }

    fn removal(&self) -> RemoveOptions {
        let mut remove = self.options.remove.clone();
        remove.protect.push(self.repository.common.clone());
        remove
    }

    fn take_away(self, unsaved: Vec<UnsavedItem>, started: Instant) -> Result<WorktreeRemoveReport> {
        let references = self.references()?;
        let going_branch = self.branch(&references)?;
        let may_go = match &going_branch {
            Some(branch) if self.options.branch == BranchFate::DeletedIfMerged => {
                self.is_merged(branch, &references)?
            }
            _ => true,
        };
        let remove = self.removal();
        let Going { repository, options, worktree, linked } = self;
        let (mut trashed, mut kept, mut left) = (None, None, ignored(&unsaved));
        let mut was_gone = linked.is_none();
        // Another removal of it ends first, with its entry and its branch.
        let _turn = worktree.entry.as_deref().map(take_turn).transpose().map_err(|error| match &worktree.entry {
            Some(entry) if is_missing(entry) => removed_meanwhile(&worktree),
            _ => error,
        })?;
        if worktree.entry.as_deref().is_some_and(is_missing) {
            return Err(removed_meanwhile(&worktree));
        }
        if let Some(linked) = linked {
            kept = unsaved::keep(&repository.common, &linked, &mut left, options.is_forced)?;
            match calve_core::internal::remove_opened(&linked.path, linked.root(), &remove) {
                Ok(report) => trashed = report.trashed,
                // Removed by a program that knows nothing of entries.
                Err(calve_core::Error::Missing(_)) => was_gone = true,
                Err(error) => {
                    kept.take().into_iter().for_each(|kept| kept.undo(linked.root()));
                    return Err(error.into());
                }
            }
        }
        // Later errors go into the report: the user still learns which parts have gone and where the rest is.
        let is_there = worktree.entry.as_deref().map_or(Ok(()), registration::remove);
        unsaved::sweep_kept(&repository.common);
        let deleted = is_there.and_then(|()| match &going_branch {
            // The branch stays if it got new commits meanwhile.
            Some(branch) if may_go => {
                let names = references.names_of(&branch.name);
                let is_in_use = || is_in_use(repository, &names);
                registration::delete_unused(&repository.common, (&branch.name, &names), &branch.commit, is_in_use)
            }
            _ => Ok(false),
        });
        let is_branch_deleted = matches!(deleted, Ok(true));
        let (deleted_branch, staying_branch) =
            if is_branch_deleted { (going_branch, None) } else { (None, going_branch) };
        let left = (!left.is_empty()).then_some(UnsavedItem::Ignored(left));
        let lost = unsaved.into_iter().filter(UnsavedItem::needs_force).chain(left).collect();
        let home = repository.main().or(worktree.path.parent()).unwrap_or(&repository.common).to_path_buf();
        let Worktree { path, branch, .. } = worktree;
        let elapsed = started.elapsed();
        Ok(WorktreeRemoveReport {
            path,
            branch,
            staying_branch,
            is_branch_deleted,
            deleted_branch,
            was_gone,
            kept,
            lost,
            unfinished: deleted.err(),
            home,
            trashed,
            elapsed,
        })
    }

    /// Returns the references, listed again where they decide: the checks and the hook may have taken a while.
    fn references(&self) -> Result<Cow<'r, References>> {
        Ok(match self.options.branch {
            BranchFate::DeletedIfMerged => Cow::Owned(References::list(&self.repository.git_to_ask())?),
            _ => Cow::Borrowed(&self.repository.references),
        })
    }

    fn branch(&self, references: &References) -> Result<Option<GoingBranch>> {
        let (Some(name), Some(commit)) = (&self.worktree.branch, &self.worktree.head) else { return Ok(None) };
        if self.options.branch == BranchFate::Stays {
            return Ok(None);
        }
        let own = references.names_of(name);
        let main = self.repository.worktrees.first().filter(|main| main.is_main).and_then(|main| main.head.as_deref());
        let staying = references.all().filter(|one| !own.contains(one.name) && !one.is_of_one_worktree());
        let staying: HashSet<&str> = staying.map(|one| one.oid).chain(main).collect();
        let mut tips = reflog::all(&Log::new(&self.repository.common, &format!("refs/heads/{name}")));
        tips.insert(commit.clone());
        tips.retain(|tip| !staying.contains(tip.as_str()));
        let own_commits = match tips.is_empty() {
            // Usually it has nothing of its own, and git need not be asked.
            true => 0,
            false => {
                let staying = staying.iter().map(|oid| format!("^{oid}"));
                let input = tips.iter().cloned().chain(staying).collect::<Vec<_>>().join("\n");
                let git = self.repository.git_to_ask();
                let counted = git.fed(&["rev-list", "--count", "--ignore-missing", "--stdin"], input.as_bytes())?;
                String::from_utf8_lossy(&counted).trim().parse().unwrap_or_default()
            }
        };
        Ok(Some(GoingBranch { name: name.clone(), commit: commit.clone(), own_commits }))
    }

    /// Returns whether a branch and its log are merged as for `git branch -d`: into the upstream, else the main HEAD.
    fn is_merged(&self, branch: &GoingBranch, references: &References) -> Result<bool> {
        if branch.own_commits > 0 {
            return Ok(false);
        }
        let git = self.repository.git_to_ask();
        let upstream = format!("{}@{{upstream}}", branch.name);
        let into = git.answer(&["rev-parse", "--symbolic-full-name", "--end-of-options", &upstream])?;
        let into = into.as_deref().and_then(|said| said.lines().last());
        // Its upstream may be a symbolic reference to the branch itself.
        let own = references.names_of(&branch.name);
        let into = into.filter(|into| !own.contains(*into)).unwrap_or("HEAD");
        git.succeeds(&["merge-base", "--is-ancestor", &branch.commit, into])
    }
}

/// Returns whether a listed worktree has one of these branches checked out, or an operation that returns to it.
fn is_in_use(repository: &Repository, names: &HashSet<String>) -> Result<bool> {
    let common = &repository.common;
    let has_it =
        |one: &Worktree| one.branch.as_ref().is_some_and(|branch| names.contains(&format!("refs/heads/{branch}")));
    // Usually no HEAD names it, and git need not be asked.
    if registration::may_be_checked_out(common, Path::new(""), names)?
        && repository::list(&repository.git_to_ask())?.iter().any(has_it)
    {
        return Ok(true);
    }
    let names_it = |entry: &Path| names_one(&entry.join("HEAD"), names) || holding(entry, names).is_some();
    Ok(names_it(common) || entries::by_worktree(common)?.iter().any(|(_, entry)| names_it(entry)))
}

fn ignored(items: &[UnsavedItem]) -> Vec<IgnoredFile> {
    let files = items.iter().filter_map(|item| match item {
        UnsavedItem::Ignored(files) if !item.needs_force() => Some(files.clone()),
        _ => None,
    });
    files.flatten().collect()
}

/// Waits for another removal of the worktree with this entry.
fn take_turn(entry: &Path) -> Result<File> {
    let directory = File::from(open_directory(entry)?);
    lock(&directory, entry, FlockOperation::LockExclusive)?;
    Ok(directory)
}

/// Returns the error for a worktree that was removed since it was found, whatever failed because of that.
fn removed_meanwhile(worktree: &Worktree) -> Error {
    let path = ShownPath(&worktree.path);
    let text = format!("the worktree `{path}` is gone: something else has removed it meanwhile");
    Error::refused(text, Remedy::NameListedWorktree)
}
