//! `calve bench db`.

use std::time::Duration;

use calve_core::Cancel;

use super::bench_report::{Forms, Outlet};
use super::db::{home, supervisor};
use crate::bench::db::{Report, Wish, html, run as measure};
use crate::cli::bench_db::BenchDbArguments;
use crate::failure::{FAILED, Failure};

pub(crate) fn run(arguments: &BenchDbArguments, cancel: &Cancel) -> Result<(), Failure> {
    let forms = Forms { json: Report::json, markdown: Report::markdown, html: html::document };
    let outlet = Outlet::of(&arguments.report, forms)?;
    let home = home()?;
    let directory = crate::home::directory()
        .map_err(|why| Failure::stated(FAILED, why, "set CALVE_HOME to a directory of your own"))?;
    // A home that is not there yet has no template, which the start of a server says.
    fs_err::create_dir_all(&directory)?;
    let report = measure(&Wish {
        home: &home,
        directory: &directory,
        supervisor: &supervisor()?,
        template: &arguments.template,
        query: &arguments.query,
        write: arguments.write.as_deref(),
        runs: arguments.runs,
        clients: arguments.clients,
        duration: Duration::from_secs(arguments.duration),
        say: &|line| outlet.say(line),
        cancel,
    })?;
    outlet.give(&report)?;
    match report.broken() {
        Some(strategy) => {
            let text = format!("the servers by {strategy} failed");
            Err(Failure::stated(FAILED, text, "the report says why; try one with `calve db start --strategy`"))
        }
        None => Ok(()),
    }
}
