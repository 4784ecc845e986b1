//! `calve db run`: a server for one command.

use calve_core::CancelToken;
use calve_db::{Error, Ownership};

use super::{command_for, home, pool, start};
use crate::cli::db::RunArguments;
use crate::failure::{FAILED, Failure};
use crate::{output, sys};

pub(crate) fn run(arguments: &RunArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let mut options = start::options(&arguments.server, cancel);
    options.owner = Ownership::Caller;
    let home = home()?;
    pool::configure(&home, &arguments.template, &options)?;
    let owned = start::started(&home, &arguments.template, &options)?;
    pool::refill(&home, &arguments.template);
    let address = &owned.record.address;
    let Some(mut command) = command_for(address, &arguments.command)? else {
        return Err(Failure::stated(FAILED, "no command is named", "name it after `--`"));
    };
    if cancel.is_cancelled() {
        owned.stop()?;
        return Err(Error::Interrupted.into());
    }
    owned.tie(&mut command)?;
    let status = sys::run_command(&mut command);
    let end = match status {
        Ok(status) => sys::command_end(status),
        Err(error) => {
            let failure = Failure::not_started(&arguments.command[0], error);
            output::failure(&failure);
            Some((failure.code(), String::new()))
        }
    };
    let code = end.map(|(code, _)| code);
    if arguments.keep_on_failure && code.is_some() {
        let record = owned.keep()?;
        output::say(&format!("the server `{}` is kept: {}", record.name, record.address.url));
        output::say(&format!("end it with: calve db stop {}", record.name));
    } else {
        owned.stop()?;
    }
    code.map_or(Ok(()), |code| Err(Failure::Reported(code)))
}
