//! `calve db stop`.

use calve_core::CancelToken;
use calve_db::Error;

use super::home;
use crate::cli::db::StopArguments;
use crate::db_receipt;
use crate::failure::Failure;
use crate::output;
use calve_receipt::DbServersReceipt;
use calve_receipt::human::duration;

pub(crate) fn run(arguments: &StopArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let home = home()?;
    let names = if arguments.all {
        // Those of worktrees end by `calve down`.
        calve_db::list(&home)?.into_iter().filter(|record| !record.durable).map(|record| record.name).collect()
    } else {
        arguments.names.clone()
    };
    let (mut servers, mut worst) = (Vec::new(), 0);
    for name in &names {
        match calve_db::stop(&home, name, cancel) {
            Ok(stopped) => {
                output::note(&format!("stopped `{name}` in {}", duration(stopped.took)));
                servers.push(db_receipt::server(&stopped.record));
            }
            // Its owner ended, or it got too old, in this moment.
            Err(Error::UnknownServer(_) | Error::ServerEnded { .. }) if arguments.all => {}
            // The others are still stopped.
            // For one server the document of the error is printed.
            Err(error) if arguments.json && names.len() == 1 => return Err(error.into()),
            Err(error) => {
                let failure = Failure::from(error);
                output::failure(&failure);
                worst = worst.max(failure.code());
            }
        }
    }
    match worst {
        0 if arguments.json => output::json(&DbServersReceipt { servers, ended: None, services: None }),
        0 => Ok(()),
        worst => Err(Failure::Reported(worst)),
    }
}
