use calve_core::CancelToken;
use calve_db::Error;

use super::home::home;
use crate::cli::db::StopArguments;
use crate::failure::Failure;
use crate::{operands, output};
use calve_receipt::DbServersReceipt;
use calve_receipt::human::duration;

pub(crate) fn run(arguments: &StopArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let home = home()?;
    let names = if arguments.all {
        // Those of worktrees end by `calve down`.
        calve_db::list(&home)?.into_iter().filter(|record| !record.durable).map(|record| record.server.name).collect()
    } else {
        arguments.names.clone()
    };
    let mut servers = Vec::new();
    let ended = operands::each(&names, |name| match calve_db::stop(&home, name, cancel) {
        Ok(stopped) => {
            output::note(&format!("stopped `{name}` in {}", duration(stopped.took)));
            servers.extend(stopped.record.map(|record| record.server));
            Ok(())
        }
        // Its owner ended, or it got too old, in this moment.
        Err(Error::UnknownServer(_) | Error::ServerEnded { .. }) if arguments.all => Ok(()),
        Err(error) => Err(error.into()),
    })?;
    if arguments.json {
        output::json(&DbServersReceipt { servers, ended: None, services: None })?;
    }
    ended
}
