//! `calve db trace`.

use std::time::Duration;

use calve_core::{CancelToken, Strategy};
use calve_db::Trace;

use super::{copies, home};
use crate::cli::db::TraceArguments;
use crate::failure::{Failure, INTERRUPTED};
use crate::{db_receipt, output};

const LOOK_EVERY: Duration = Duration::from_millis(20);

pub(crate) fn run(arguments: &TraceArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let home = home()?;
    let record = calve_db::find(&home, &arguments.name)?;
    let mut trace = Trace::of_server(&home, &arguments.name)?;
    if arguments.json {
        return output::json(&db_receipt::trace(&record, trace.more()));
    }
    if record.strategy != Some(Strategy::Overlay) {
        let how = record.strategy_name();
        output::say(&format!("`{}` is a clone by {how}: nothing is copied as a whole", record.name));
        return Ok(());
    }
    match &record.untold {
        Some(untold) => output::say(&format!("trace: {untold}")),
        None if !record.watched => {
            output::say(
                "trace: copies share their blocks here, so they are not watched unless the server is started with --trace",
            );
            return Ok(());
        }
        None => {}
    }
    loop {
        let is_over = trace.is_over();
        for copied in trace.more() {
            output::result(&format!("{}\n", copies::line(&copied)))?;
        }
        if cancel.is_cancelled() {
            return Err(Failure::Reported(INTERRUPTED));
        }
        if is_over {
            return Ok(());
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
