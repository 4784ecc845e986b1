//! `calve worktree`: one file per command.

mod check;

use calve_core::Cancel;

use crate::cli::worktree::WorktreeCommand;
use crate::failure::{FAILED, Failure};

pub(crate) fn run(command: &WorktreeCommand, cancel: &Cancel) -> Result<(), Failure> {
    match command {
        WorktreeCommand::Check(arguments) => check::run(arguments, cancel),
    }
}

/// What the library says, with what to do next.
pub(crate) fn failure(error: calve_git::Error) -> Failure {
    let hint = match &error {
        calve_git::Error::Start { .. } => "install git, or put it on the PATH",
        calve_git::Error::Git { .. } => "git's own message says what is wrong; put that right, then try again",
        calve_git::Error::Config { .. } => "correct the file at that place",
        _ => "check the path and its permissions, then try again",
    };
    match error {
        calve_git::Error::Clone(error) => Failure::Core(error),
        error => Failure::stated(FAILED, error.to_string(), hint),
    }
}
