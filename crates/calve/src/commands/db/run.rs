use calve_core::CancelToken;
use calve_db::{Error, Ownership, Record};

use super::home::{command_for, home};
use super::{pool, start};
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
    let Some(mut command) = command_for(&owned.record.server, &arguments.command)? else {
        return Err(Failure::stated(FAILED, "no command is named", "name it after `--`"));
    };
    if cancel.is_cancelled() {
        owned.stop()?;
        return Err(Error::Interrupted.into());
    }
    owned.tie(&mut command)?;
    let code = match sys::run_command(&mut command) {
        Ok(status) => sys::command_end(status).map(|end| end.code),
        Err(error) => {
            let failure = Failure::not_started(&arguments.command[0], error);
            output::failure(&failure);
            Some(failure.code)
        }
    };
    let left =
        if arguments.keep_on_failure && code.is_some() { owned.keep().map(Some) } else { owned.stop().map(|()| None) };
    match left {
        Ok(Some(Record { server, .. })) => {
            output::note(&format!("the server `{}` is kept: {}", server.name, server.address.url));
            output::note(&format!("end it with: calve db stop {}", server.name));
        }
        Ok(None) => {}
        // The server has ended by itself; the command's result stands.
        Err(error @ (Error::ServerEnded { .. } | Error::SupervisorGone(_) | Error::StoppedMeanwhile(_))) => {
            output::warn(&error.to_string());
        }
        Err(error) if code.is_none() => return Err(error.into()),
        Err(error) => _ = output::failure(&error.into()),
    }
    code.map_or(Ok(()), |code| Err(Failure::reported(code)))
}
