//! `calve db stop`.

use calve_db::Error;

use super::{copies, home};
use crate::cli::db::StopArguments;
use crate::failure::Failure;
use crate::output;
use calve_receipt::human::duration;

pub(crate) fn run(arguments: &StopArguments) -> Result<(), Failure> {
    let home = home()?;
    let names = if arguments.all {
        // Those of worktrees end by `calve down`.
        calve_db::list(&home)?.into_iter().filter(|record| !record.durable).map(|record| record.name).collect()
    } else {
        arguments.names.clone()
    };
    let mut worst = 0;
    for name in &names {
        match calve_db::stop(&home, name) {
            Ok(_) if arguments.quiet => {}
            Ok(stopped) => {
                output::say(&format!("stopped `{name}` in {}", duration(stopped.took)));
                copies::tell(&stopped.copied);
            }
            // Its owner ended, or it got too old, in this moment.
            Err(Error::UnknownServer(_) | Error::ServerEnded { .. }) if arguments.all => {}
            // The others are still stopped.
            Err(error) => {
                let failure = Failure::from(error);
                output::failure(&failure);
                worst = worst.max(failure.code());
            }
        }
    }
    if worst > 0 { Err(Failure::Reported(worst)) } else { Ok(()) }
}
