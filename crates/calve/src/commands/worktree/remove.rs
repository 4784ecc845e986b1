//! `calve worktree remove`.

use std::path::Path;

use calve_core::{CancelToken, RemovalWait, ShownPath};
use calve_db::WrittenDataRule;
use calve_git::Config;
use calve_git::hooks::{Hook, HookEnvironment, repository_of};
use calve_git::worktree::{self, BranchFate, RemoveWorktreeOptions, Worktree, WorktreeRemoveReport};

use crate::cli::worktree::RemoveWorktreeArguments;
use crate::commands::services::{LeavingServices, Services};
use crate::commands::{env, protected, reap};
use crate::consent;
use crate::failure::{Failure, INTERRUPTED};
use crate::output;
use calve_receipt::human::duration;
use calve_receipt::{WorktreeRemoval, WorktreeRemovePlanReceipt, WorktreeRemoveReceipt, WorktreeRemoveReceipts, path};

/// Runs the project's hook in a worktree that is still whole. Returns whether there was one: it takes time, and so does asking about it.
fn hook(worktree: &Worktree, arguments: &RemoveWorktreeArguments, cancel: &CancelToken) -> Result<bool, Failure> {
    if arguments.no_hooks || worktree.is_gone {
        return Ok(false);
    }
    if !arguments.trust && calve_git::trust::is_untrusted(&worktree.path) {
        if !arguments.quiet {
            output::say(
                "no hook was run: this worktree is from a pull request that is not trusted (`--trust` runs its hook)",
            );
        }
        return Ok(false);
    }
    let Some(text) = Config::load(&worktree.path)?.hooks.pre_remove else { return Ok(false) };
    if !arguments.yes {
        consent::require(&repository_of(&worktree.path)?, Hook::PreRemove, &text)?;
    }
    let mut surroundings = HookEnvironment::of(&worktree.path);
    let others = calve_git::escape::worktrees_of(&worktree.path)?.others;
    surroundings.main = others.into_iter().next();
    surroundings.branch = worktree.branch.clone().map(Into::into);
    surroundings.commit = worktree.head.clone().map(Into::into);
    // Faults of theirs must not keep a worktree.
    surroundings.variables = variables(&worktree.path).unwrap_or_default();
    consent::run(Hook::PreRemove, &text, &surroundings, cancel).map(|()| true)
}

fn variables(root: &Path) -> Result<Vec<(String, String)>, Failure> {
    let config = env::config(root)?;
    let ports = env::leased(root, &config)?;
    env::variables(&ports, &Services::of(root, config.services)?)
}

pub(crate) fn run(arguments: &RemoveWorktreeArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let mut options = options(arguments, cancel)?;
    // Removing one of them goes elsewhere.
    let here = std::env::current_dir().ok();
    let [_, _, ..] = arguments.what[..] else {
        options.what = arguments.what.first().cloned();
        let document = one(&options, arguments, here.as_deref())?;
        return if arguments.json { output::json(&document) } else { Ok(()) };
    };
    // All are looked up first: the directory that their paths are relative to may be removed with one of them.
    let (start, found) = worktree::find_all(&options.start, &arguments.what)?;
    options.start = start;
    let mut documents = Vec::new();
    let mut worst = 0;
    for path in found {
        let done = path.map_err(Failure::from).and_then(|path| {
            options.what = Some(path);
            one(&options, arguments, here.as_deref())
        });
        match done {
            Ok(document) => documents.push(document),
            // As `calve rm` does: the others are still removed.
            Err(failure) if failure.code() != INTERRUPTED => {
                output::failure(&failure);
                worst = worst.max(failure.code());
            }
            Err(failure) => return Err(failure),
        }
    }
    if arguments.json {
        output::json(&WorktreeRemoveReceipts { removed: documents })?;
    }
    if worst > 0 { Err(Failure::Reported(worst)) } else { Ok(()) }
}

/// Refuses where the data of its services would be lost.
pub(super) fn check_services(worktree: &Worktree) -> Result<(), Failure> {
    LeavingServices::of(worktree)?.map_or(Ok(()), |leaving| leaving.check(WrittenDataRule::Refuse))
}

/// Removes a worktree as `calve worktree remove PATH` does.
pub(super) fn merged(start: &Path, path: &Path, cancel: &CancelToken) -> Result<(), Failure> {
    let arguments = RemoveWorktreeArguments { what: vec![path.to_path_buf()], ..RemoveWorktreeArguments::default() };
    let mut options = options(&arguments, cancel)?;
    options.start = start.to_path_buf();
    options.what = arguments.what.first().cloned();
    one(&options, &arguments, None).map(|_| ())
}

fn options(arguments: &RemoveWorktreeArguments, cancel: &CancelToken) -> Result<RemoveWorktreeOptions, Failure> {
    let mut options = RemoveWorktreeOptions::default();
    options.start = super::here()?;
    options.is_forced = arguments.force;
    options.branch = match (arguments.delete_branch, arguments.delete_merged) {
        (true, _) => BranchFate::Deleted,
        (_, true) => BranchFate::DeletedIfMerged,
        _ => BranchFate::Stays,
    };
    options.remove.wait = RemovalWait::No;
    options.remove.protect = protected();
    options.remove.cancel = cancel.clone();
    Ok(options)
}

/// Removes one worktree, and returns its receipt. Prints where to go from `here` if that was in it.
fn one(
    options: &RemoveWorktreeOptions,
    arguments: &RemoveWorktreeArguments,
    here: Option<&Path>,
) -> Result<WorktreeRemoval, Failure> {
    let written = if arguments.force { WrittenDataRule::Accept } else { WrittenDataRule::Refuse };
    if arguments.dry_run {
        let worktree = worktree::plan_removal(options)?;
        LeavingServices::of(&worktree)?.map_or(Ok(()), |leaving| leaving.check(written))?;
        if !arguments.quiet {
            say_plan(&worktree, options.branch);
        }
        return Ok(WorktreeRemoval::Planned(WorktreeRemovePlanReceipt {
            path: path(&worktree.path),
            branch: worktree.branch,
            gone: worktree.is_gone,
        }));
    }
    let mut leaving = None;
    let removed = worktree::remove(options, |worktree| {
        leaving = LeavingServices::of(worktree)?;
        leaving.iter().try_for_each(|leaving| leaving.check(written))?;
        let mut again = options.clone();
        again.what = Some(worktree.path.clone());
        let has_hook = hook(worktree, arguments, &options.remove.cancel)?;
        leaving.iter_mut().try_for_each(|leaving| leaving.end(written))?;
        if has_hook || leaving.is_some() {
            // A hook and the end of servers take time, in which somebody may save something.
            worktree::plan_removal(&again)?;
        }
        // The shell's directory may go; the directory of this process would keep the engine from removing it.
        let _ = worktree.path.parent().map(std::env::set_current_dir);
        Ok::<_, Failure>(())
    });
    let removed = match (removed, leaving) {
        (Ok(removed), Some(leaving)) => leaving.remove().map(|()| removed)?,
        (Err(failure), Some(mut leaving)) => {
            leaving.spare();
            return Err(failure);
        }
        (removed, None) => removed?,
    };
    if let Some(trashed) = &removed.trashed {
        reap::start(&trashed.parent);
    }
    if !arguments.quiet {
        say(&removed, options.branch);
    }
    if !arguments.json && here.is_some_and(|here| here.starts_with(&removed.path)) {
        output::path(&removed.home)?;
    }
    Ok(WorktreeRemoval::Removed(WorktreeRemoveReceipt {
        path: path(&removed.path),
        branch: removed.branch,
        branch_deleted: removed.is_branch_deleted,
        was_gone: removed.was_gone,
        trashed: removed.trashed.is_some(),
        elapsed_ms: removed.elapsed.into(),
    }))
}

fn say_plan(worktree: &Worktree, fate: BranchFate) {
    let path = ShownPath(&worktree.path);
    let branch = match (&worktree.branch, fate) {
        (Some(branch), BranchFate::Deleted) => format!(", and the branch `{}`", ShownPath(branch)),
        (Some(branch), BranchFate::DeletedIfMerged) => {
            format!(", and the branch `{}` if it is merged", ShownPath(branch))
        }
        _ => String::new(),
    };
    output::say(&match worktree.is_gone {
        true => format!("would forget `{path}`, which is gone{branch}"),
        false => format!("would remove `{path}`{branch}"),
    });
}

fn say(removed: &WorktreeRemoveReport, fate: BranchFate) {
    let branch = match (&removed.branch, fate) {
        (Some(branch), _) if removed.is_branch_deleted => format!(", and the branch `{}`", ShownPath(branch)),
        (Some(branch), BranchFate::DeletedIfMerged) => {
            format!("; the branch `{}` is not merged, and stays", ShownPath(branch))
        }
        (Some(branch), BranchFate::Deleted) => format!("; the branch `{}` could not be deleted", ShownPath(branch)),
        _ => String::new(),
    };
    let path = ShownPath(&removed.path);
    output::say(&match removed.was_gone {
        true => format!("forgot `{path}`, which was gone already{branch}"),
        false => format!("removed `{path}`{branch} in {}", duration(removed.elapsed)),
    });
}
