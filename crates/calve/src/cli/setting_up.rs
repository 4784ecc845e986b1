//! The options of the commands that set up the program, shells and agents.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::db::ENGINES;

/// Write .calve.toml: the ports and the database of each worktree
///
/// Without options it asks on a terminal, and elsewhere writes only the port `web`. The file goes to the root of the worktree that you are in. An
/// existing one is left alone.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calve init
  calve init --port web=3000 --engine postgres --create 'npm run migrate'")]
pub(crate) struct InitArguments {
    /// A port of a program that you run, such as web=3000 (repeatable) [default: asked for; without a terminal web=3000]
    #[arg(long = "port", value_name = "NAME=NUMBER")]
    pub(crate) ports: Vec<String>,
    /// The database: postgres, mariadb, mysql, redis, valkey [default: asked for; without a terminal none]
    #[arg(long, value_name = "ENGINE", value_parser = ENGINES, hide_possible_values = true)]
    pub(crate) engine: Option<String>,
    /// The command that fills the database, which finds its URL in DATABASE_URL (REDIS_URL) [default: it is empty]
    #[arg(long, value_name = "CMD", requires = "engine")]
    pub(crate) create: Option<String>,
}

/// Serve worktrees and databases to a coding agent (MCP)
///
/// Speaks the protocol on stdin and stdout, so that an agent starts it and ends it. Its tools list, create, show and remove worktrees, return
/// the URLs of their databases, reset these, and show disk usage, in the repositories that are named here. No tool runs a command of the
/// agent's choice. Removing and resetting take two calls: a plan, then its confirmation.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calve hook install claude                      has Claude Code start it
  calve mcp --repository app --repository api    serve two repositories")]
pub(crate) struct McpArguments {
    /// A directory in a repository to serve (repeatable)
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) repository: Vec<PathBuf>,
}

/// Print the worktree that you are in, for a shell's prompt
///
/// Prints the branch of a linked worktree, its ports, and which of its services run, such as `feature web:3001 db:running`. Prints nothing in
/// a main worktree or outside of a repository. It starts no other program, and never fails.
#[derive(Debug, Args)]
#[command(after_help = "\
Where to put it:
  bash  PS1='$(calve prompt) '\"$PS1\"                      in ~/.bashrc
  zsh   setopt prompt_subst; RPROMPT='$(calve prompt)'      in ~/.zshrc
  fish  function fish_right_prompt; calve prompt; end       in ~/.config/fish/config.fish")]
pub(crate) struct PromptArguments {}

/// Print a shell function that changes to worktrees
///
/// A program cannot change the directory of the shell that started it. Prints a function `calve` that can: it goes into the worktree that
/// `calve worktree add` has made, to the one that `calve worktree cd` names, and to the main worktree when `calve worktree remove` has
/// removed the one that you are in. It passes everything else on as it is. Also prints completions that know the branches.
#[derive(Debug, Args)]
#[command(after_help = "\
Where to put it:
  bash  eval \"$(calve shell-init bash)\"       in ~/.bashrc
  zsh   eval \"$(calve shell-init zsh)\"        in ~/.zshrc, after compinit
  fish  calve shell-init fish | source        in ~/.config/fish/config.fish")]
pub(crate) struct ShellInitArguments {
    /// The shell
    pub(crate) shell: WithFunctions,
}

/// Shells with a function.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum WithFunctions {
    Bash,
    Zsh,
    Fish,
}
