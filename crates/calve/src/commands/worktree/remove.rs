//! `calve worktree remove`.

use calve_core::{Cancel, Shown, Wait};
use calve_git::worktree::{self, BranchFate, RemoveWorktreeOptions};
use serde_json::json;

use crate::cli::worktree::RemoveWorktreeArguments;
use crate::commands::{protected, reap};
use crate::failure::Failure;
use crate::output::{self, duration};
use crate::receipt;

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
    // The closure is where the project's own hook runs.
    let removed = worktree::remove(&options, |_worktree| Ok(()))?;
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
