mod advise;
mod clone;
mod fetch;
mod interaction;
mod lines;

use calve_core::CancelToken;

use crate::cli::git::GitCommand;
use crate::failure::Failure;

pub(crate) fn run(command: &GitCommand, cancel: &CancelToken) -> Result<(), Failure> {
    match command {
        GitCommand::Clone(arguments) => clone::run(arguments, cancel),
        GitCommand::Fetch(arguments) => fetch::run(arguments, cancel),
        GitCommand::Advise(arguments) => advise::run(arguments),
    }
}
