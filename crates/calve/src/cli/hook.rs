//! The command line of `calve hook`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum HookCommand {
    WorktreeCreate(WorktreeCreateArguments),
    WorktreeRemove(WorktreeRemoveArguments),
    Approve(ApproveArguments),
}

/// Make a worktree for a coding agent, as its hook asks
///
/// Reads one JSON object from stdin, with `cwd` (a directory in the repository) and `name`, as Claude Code's WorktreeCreate hook gives it.
/// Checks the branch NAME out in a new worktree, as `calve worktree add` does, and prints only its path. Asked for the same NAME again, it
/// prints the same path. It refuses a branch that is checked out elsewhere, such as in the main worktree. If the project's post-add fails,
/// it removes the worktree again.
#[derive(Debug, Args)]
pub(crate) struct WorktreeCreateArguments {
    /// Do not run the project's hooks
    #[arg(long)]
    pub(crate) no_hooks: bool,
    /// Run the project's hooks without asking
    #[arg(long, conflicts_with = "no_hooks")]
    pub(crate) yes: bool,
}

/// Remove a coding agent's worktree, as its hook asks
///
/// Reads one JSON object from stdin, with `worktree_path`, as Claude Code's WorktreeRemove hook gives it. Removes that worktree as by
/// `calve worktree remove`, which refuses while there are changes in it. Prints its path alone.
#[derive(Debug, Args)]
pub(crate) struct WorktreeRemoveArguments {
    /// Remove it even with changes in it
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// Approve the hooks of a project
///
/// Shows the `[hooks]` of `.calve.toml` and asks whether they may be run. An approval is for exactly that text in that repository: a hook
/// that has changed is asked about again.
///
/// Hooks do not run in the worktree of a pull request that was added without --trust, so there is nothing to approve. --trust trusts it
/// from now on, and then asks about its hooks as for any other worktree.
#[derive(Debug, Args)]
pub(crate) struct ApproveArguments {
    /// A worktree of the repository
    #[arg(value_name = "PATH", default_value = ".")]
    pub(crate) path: PathBuf,
    /// Approve without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// Trust the pull request that is checked out in PATH, from now on
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) trust: bool,
    /// Take the approval back
    #[arg(long, conflicts_with = "yes")]
    pub(crate) revoke: bool,
}
