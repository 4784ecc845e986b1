//! `calve db mark`, `calve db marks` and `calve db unmark`.

use std::time::Instant;

use calve_core::CancelToken;

use super::home;
use crate::cli::db::{MarkArguments, MarksArguments, UnmarkArguments};
use crate::failure::Failure;
use crate::{db_receipt, output};
use calve_receipt::human::{count, duration, size};
use calve_receipt::{DbMarkReceipt, DbMarksReceipt};

pub(crate) fn add(arguments: &MarkArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let started = Instant::now();
    let mark = calve_db::mark(&home()?, &arguments.server, &arguments.name, cancel)?;
    if !output::is_quiet() {
        let took = duration(started.elapsed());
        output::say(&format!("marked `{}` as `{}` in {took}", arguments.server, arguments.name));
    }
    if !arguments.json {
        return Ok(());
    }
    output::json(&DbMarkReceipt { mark: db_receipt::mark(&arguments.server, &mark) })
}

pub(crate) fn list(arguments: &MarksArguments) -> Result<(), Failure> {
    let marks = calve_db::marks(&home()?, &arguments.server)?;
    if arguments.json {
        let marks = marks.iter().map(|mark| db_receipt::mark(&arguments.server, mark)).collect();
        return output::json(&DbMarksReceipt { marks });
    }
    let widest = marks.iter().map(|mark| mark.name.len()).max().unwrap_or(0);
    let line = |mark: &calve_db::DatabaseTemplate| {
        format!("{:widest$}  {} files, {}\n", mark.name, count(mark.files), size(mark.bytes))
    };
    output::result(&marks.iter().map(line).collect::<String>())
}

pub(crate) fn remove(arguments: &UnmarkArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let home = home()?;
    for name in &arguments.names {
        calve_db::unmark(&home, &arguments.server, name, cancel)?;
        output::note(&format!("removed the mark `{name}`"));
    }
    Ok(())
}
