//! The command line of `calve worktree`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum WorktreeCommand {
    Check(CheckArguments),
}

/// Find what in a worktree points into another one
///
/// Symlinks, shebangs, virtual environments, path files, notes of pnpm, build directories of CMake, caches of webpack and Next.js,
/// `.git` files and units of Cargo that name another worktree of the repository. With --fix they are made to name this one, or
/// dropped where a tool makes them anew. What git tracks is only reported. The other worktrees are never written.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 nothing points out of the worktree (any more), 1 something does, 2 usage, 130 interrupted."
)]
pub(crate) struct CheckArguments {
    /// The worktree, or a directory in it
    #[arg(value_name = "PATH", default_value = ".")]
    pub(crate) path: PathBuf,
    /// Repair or drop what is found
    #[arg(long)]
    pub(crate) fix: bool,
    /// Print the findings as JSON on stdout (schema calve.worktree_check/1)
    #[arg(long)]
    pub(crate) json: bool,
    /// PATH is a copy of this tree [default: PATH is a worktree of a repository, and a copy of its main worktree]
    #[arg(long, value_name = "DIR")]
    pub(crate) against: Vec<PathBuf>,
}
