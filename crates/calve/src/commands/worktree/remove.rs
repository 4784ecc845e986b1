//! `calve worktree remove`.

use calve_core::{Cancel, Shown, Wait};
use calve_git::Config;
use calve_git::hooks::{Hook, Surroundings, repository_of};
use calve_git::worktree::{self, BranchFate, RemoveWorktreeOptions, Worktree};
use serde_json::json;

use crate::cli::worktree::RemoveWorktreeArguments;
use crate::commands::{protected, reap};
use crate::failure::Failure;
use crate::output;
use crate::{consent, receipt};
use calve_receipt::human::duration;

/// Runs the project's hook in a worktree that is still whole.
fn hook(worktree: &Worktree, arguments: &RemoveWorktreeArguments) -> Result<(), Failure> {
    if arguments.no_hooks || worktree.is_gone {
        return Ok(());
    }
    if !arguments.trust && calve_git::trust::is_untrusted(&worktree.path) {
        if !arguments.quiet {
            output::say(
                "no hook was run: this worktree is from a pull request that is not trusted (`--trust` runs its hook)",
            );
        }
        return Ok(());
    }
    let Some(text) = Config::load(&worktree.path)?.hooks.pre_remove else { return Ok(()) };
    if !arguments.yes {
        consent::require(&repository_of(&worktree.path)?, Hook::PreRemove, &text)?;
    }
    let mut surroundings = Surroundings::of(&worktree.path);
    let others = calve_git::escape::worktrees_of(&worktree.path)?.others;
    surroundings.main = others.into_iter().next();
    surroundings.branch = worktree.branch.clone().map(Into::into);
    surroundings.commit = worktree.head.clone().map(Into::into);
    consent::run(Hook::PreRemove, &text, &surroundings)
}

pub(crate) fn run(arguments: &RemoveWorktreeArguments, cancel: &Cancel) -> Result<(), Failure> {
    let mut options = RemoveWorktreeOptions::default();
    options.start = super::here()?;
    options.what.clone_from(&arguments.what);
    options.is_forced = arguments.force;
    options.branch = match (arguments.delete_branch, arguments.delete_merged) {
        (true, _) => BranchFate::Deleted,
        (_, true) => BranchFate::DeletedIfMerged,
        _ => BranchFate::Stays,
    };
    options.remove.wait = Wait::No;
    options.remove.protect = protected();
    options.remove.cancel = cancel.clone();
    let removed = worktree::remove(&options, |worktree| hook(worktree, arguments))?;
    if let Some(trashed) = &removed.trashed {
        reap::start(&trashed.parent);
    }
    if !arguments.quiet {
        let branch = match (&removed.branch, options.branch) {
            (Some(branch), _) if removed.is_branch_deleted => format!(", and the branch `{}`", Shown(branch)),
            (Some(branch), BranchFate::DeletedIfMerged) => {
                format!("; the branch `{}` is not merged, and stays", Shown(branch))
            }
            (Some(branch), BranchFate::Deleted) => format!("; the branch `{}` could not be deleted", Shown(branch)),
            _ => String::new(),
        };
        output::say(&format!("removed `{}`{branch} in {}", Shown(&removed.path), duration(removed.elapsed)));
    }
    if arguments.json {
        return output::json(&json!({
            "schema": "calve.worktree-remove/1",
            "path": receipt::path(&removed.path),
            "branch": removed.branch,
            "branch_deleted": removed.is_branch_deleted,
            "trashed": removed.trashed.is_some(),
            "elapsed_ms": receipt::milliseconds(removed.elapsed),
        }));
    }
    Ok(())
}
