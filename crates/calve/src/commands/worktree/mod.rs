//! `calve worktree`.

pub(crate) mod add;
mod agent;
mod cd;
mod check;
mod convert;
pub(crate) mod dependencies;
mod gone_data;
mod list;
mod processes;
mod prune;
mod remove;

use std::path::PathBuf;

use calve_core::CancelToken;

use crate::cli::worktree::WorktreeCommand;
use crate::failure::{FAILED, Failure};

pub(crate) fn run(command: &WorktreeCommand, cancel: &CancelToken) -> Result<(), Failure> {
    match command {
        WorktreeCommand::Add(arguments) => add::run(arguments, cancel),
        WorktreeCommand::Cd(arguments) => cd::run(arguments),
        WorktreeCommand::List(arguments) => list::run(arguments),
        WorktreeCommand::Remove(arguments) => remove::run(arguments, cancel),
        WorktreeCommand::Check(arguments) => check::run(arguments, cancel),
        WorktreeCommand::Prune(arguments) => prune::run(arguments, cancel),
        WorktreeCommand::Convert(arguments) => convert::run(arguments, cancel),
    }
}

/// Returns where the user is.
fn here() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|error| {
        Failure::stated(
            FAILED,
            format!("the current directory cannot be told: {error}"),
            "change to a directory that exists",
        )
    })
}
