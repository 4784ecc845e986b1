pub(crate) mod add;
mod cd;
mod check;
mod convert;
pub(crate) mod env;
pub(crate) mod facts;
mod list;
mod prune;
mod remove;
pub(crate) mod services;
pub(crate) mod up;

use calve_core::CancelToken;

use crate::cli::worktree::WorktreeCommand;
use crate::failure::Failure;

pub(crate) fn run(command: &WorktreeCommand, cancel: &CancelToken) -> Result<(), Failure> {
    match command {
        WorktreeCommand::Add(arguments) => add::run(arguments, cancel),
        WorktreeCommand::Cd { what } => cd::run(what.as_ref()),
        WorktreeCommand::List { json } => list::run(*json),
        WorktreeCommand::Remove(arguments) => remove::run(arguments, cancel),
        WorktreeCommand::Check(arguments) => check::run(arguments, cancel),
        WorktreeCommand::Prune(arguments) => prune::run(arguments, cancel),
        WorktreeCommand::Convert { path, json } => convert::run(path, *json, cancel),
    }
}
