use std::path::PathBuf;

use calve_agent::configuration::Agent;
use clap::{Args, Subcommand};

use crate::name_parser::NameParser;

#[derive(Debug, Subcommand)]
pub(crate) enum HookCommand {
    Install(InstallArguments),
    /// Remove what `calve hook install` wrote
    ///
    /// Shows the changes and asks. Everything else in the files stays as it is. Leaves values that changed since alone, and names them.
    Uninstall(InstallArguments),
    WorktreeCreate(WorktreeCreateArguments),
    /// Complete a worktree that a coding agent has made with git
    ///
    /// Runs in the new worktree: carries what git ignores, leases its ports, clones the data of its services, and runs the project's post-add
    /// hook if you have approved it. Existing files stay as they are. For agents that make worktrees themselves and run a command in each.
    WorktreeSetup {
        /// Name the agent, for `calve worktree list`
        #[arg(long, value_name = "NAME", default_value = "agent", value_parser = maker)]
        maker: String,
        /// Take files from this worktree [default: the main worktree]
        #[arg(long, value_name = "WORKTREE")]
        from: Option<PathBuf>,
    },
    /// Remove a worktree for a coding agent's hook
    ///
    /// Reads one JSON object from stdin, with `worktree_path`, as Claude Code's WorktreeRemove hook gives it. Removes that worktree as by
    /// `calve worktree remove`, which refuses while there are changes in it. Prints its path alone.
    WorktreeRemove {
        /// Remove it even if it has changes
        #[arg(short, long)]
        force: bool,
    },
    Approve(ApproveArguments),
}

/// Make a worktree for a coding agent's hook
///
/// Reads one JSON object from stdin, with `cwd` (a directory in the repository) and `name`, as Claude Code's WorktreeCreate hook gives it.
/// Checks the branch NAME out in a new worktree, as `calve worktree add` does, and prints only its path. Given the same NAME again,
/// prints the same path. It refuses a branch that is checked out elsewhere, such as in the main worktree. If the project's post-add fails,
/// it removes the worktree again.
#[derive(Debug, Args)]
pub(crate) struct WorktreeCreateArguments {
    /// Name the agent, for `calve worktree list`
    #[arg(long, value_name = "NAME", default_value = "agent", value_parser = maker)]
    pub(crate) maker: String,
    /// Do not run the project's hooks
    #[arg(long)]
    pub(crate) no_hooks: bool,
    /// Run the project's hooks without asking
    #[arg(long, conflicts_with = "no_hooks")]
    pub(crate) yes: bool,
}

/// Set up an agent to get complete worktrees and use `calve mcp`
///
/// Shows what changes in the agent's configuration files in this worktree, and asks. Everything else in them stays as it is, and `calve hook
/// uninstall` removes exactly these changes. Leaves alone, and names, files with errors, and files with another value.
#[derive(Debug, Args)]
pub(crate) struct InstallArguments {
    /// The agent: claude, codex, cursor, opencode
    #[arg(value_name = "AGENT", value_parser = NameParser(Agent::NAMES, agent), hide_possible_values = true)]
    pub(crate) agent: Agent,
    /// A directory in the worktree
    #[arg(value_name = "PATH", default_value = ".")]
    pub(crate) path: PathBuf,
    /// Make the changes without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Show what would change, and change nothing
    #[arg(short = 'n', long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,
}

fn agent(name: &str) -> Result<Agent, String> {
    name.parse().map_err(|_| format!("it is one of: {}", Agent::NAMES.join(", ")))
}

/// Accepts one word as a maker's name, because lists show it.
fn maker(text: &str) -> Result<String, String> {
    let is_word = text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    match is_word && (1..=40).contains(&text.len()) {
        true => Ok(text.to_owned()),
        false => Err("it is a word of up to 40 letters, digits, dots and hyphens".into()),
    }
}

/// Approve the commands of a project
///
/// Shows the `[hooks]` of `.calve.toml`, and `create` of its services, and asks before it approves them. An approval covers exactly that text in
/// that repository; any change needs a new one.
///
/// Hooks do not run in the worktree of a pull request that was added without --trust, so there is nothing to approve. --trust marks its
/// current commit as trusted, and then asks about its hooks as for any other worktree.
#[derive(Debug, Args)]
pub(crate) struct ApproveArguments {
    /// A worktree of the repository
    #[arg(value_name = "PATH", default_value = ".")]
    pub(crate) path: PathBuf,
    /// Approve without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// Trust the pull request's commit that is checked out in PATH
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) trust: bool,
    /// Withdraw the approval
    #[arg(long, conflicts_with = "yes")]
    pub(crate) revoke: bool,
}
