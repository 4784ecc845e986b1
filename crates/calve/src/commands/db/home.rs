use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use calve_db::{Home, Server};
use calve_env::Host as _;

use crate::failure::Failure;
use crate::host::Program;
use crate::output;

/// Returns the directories of servers and templates, without a crash's leftovers.
pub(crate) fn home() -> Result<Home, Failure> {
    Ok(calve_env::swept_home(&Program)?)
}

pub(crate) fn warn_of_unreadable(home: &Home) -> Result<(), Failure> {
    calve_db::unreadable(home)?.iter().for_each(|record| output::warn_of_record(record));
    Ok(())
}

/// Builds the user's command, with an environment that leads only to this server.
pub(crate) fn command_for(server: &Server, line: &[OsString]) -> calve_db::Result<Option<Command>> {
    let [program, words @ ..] = line else { return Ok(None) };
    let mut command = Command::new(program);
    command.args(words);
    Program.introduce(server, &mut command)?;
    Ok(Some(command))
}

/// Returns the names of container programs, preferred first.
pub(crate) fn runtimes() -> Vec<String> {
    let mut names: Vec<String> = calve_db::RUNTIMES.map(Into::into).to_vec();
    if env::var_os("DOCKER_HOST").is_some_and(|host| !host.is_empty()) {
        names.reverse();
    }
    names
}

/// Returns the supervisor's command: this program and its hidden subcommand.
pub(crate) fn supervisor() -> Result<[PathBuf; 2], Failure> {
    Ok(Program.supervisor()?)
}
