//! `calve db stop`.

use std::time::Duration;

use calve_core::Shown;
use calve_db::{Copied, Error};

use super::home;
use crate::cli::db::StopArguments;
use crate::failure::Failure;
use crate::output::{self, duration};

pub(crate) fn run(arguments: &StopArguments) -> Result<(), Failure> {
    let home = home()?;
    let names = if arguments.all {
        calve_db::list(&home)?.into_iter().map(|record| record.name).collect()
    } else {
        arguments.names.clone()
    };
    let mut worst = 0;
    for name in &names {
        match calve_db::stop(&home, name) {
            Ok(stopped) => {
                output::say(&format!("stopped `{name}` in {}", duration(stopped.took)));
                tell(&stopped.copied);
            }
            // Its owner ended, or it got too old, in this moment.
            Err(Error::UnknownServer(_)) if arguments.all => {}
            // The others are still stopped.
            Err(error) => {
                let failure = Failure::from(error);
                failure.report();
                worst = worst.max(failure.code());
            }
        }
    }
    if worst > 0 { Err(Failure::Reported(worst)) } else { Ok(()) }
}

/// Smaller ones are not named.
const NAMED_BYTES: u64 = 1 << 20;

/// What an overlay copied. Who opened the files is not known without tracing the kernel.
fn tell(copied: &[Copied]) {
    if copied.is_empty() {
        return;
    }
    let bytes = copied.iter().map(|file| file.bytes).sum();
    let count = output::count(copied.len() as u64);
    output::say(&format!("the overlay copied {count} files, {}, because the server opened them", output::size(bytes)));
    for file in copied.iter().filter(|file| file.bytes >= NAMED_BYTES) {
        let after = duration(Duration::from_secs_f64(file.after_ms / 1000.0));
        output::say(&format!("  after {after}  {}  {}", Shown(&file.path), output::size(file.bytes)));
    }
}
