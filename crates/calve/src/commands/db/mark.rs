use std::time::Instant;

use calve_core::CancelToken;

use super::home::home;
use crate::failure::Failure;
use crate::{operands, output};
use calve_receipt::human::{counted, duration, size};
use calve_receipt::{DbMark, DbMarkReceipt, DbMarksReceipt};

pub(crate) fn add(server: &str, name: &str, json: bool, cancel: &CancelToken) -> Result<(), Failure> {
    let started = Instant::now();
    let mark = calve_db::mark(&home()?, server, name, cancel)?;
    let took = duration(started.elapsed());
    output::note(&format!("marked `{server}` as `{name}` in {took}"));
    output::json_if(json, &DbMarkReceipt { mark: DbMark::new(server, mark) })
}

pub(crate) fn list(server: &str, json: bool) -> Result<(), Failure> {
    let home = home()?;
    super::home::warn_of_unreadable(&home)?;
    let marks = calve_db::marks(&home, server)?;
    let row = |mark: &calve_db::DatabaseTemplate| {
        (mark.name.clone(), format!("{}, {}", counted(mark.files, "file"), size(mark.bytes)))
    };
    let text = output::table(marks.iter().map(row));
    let marks = marks.into_iter().map(|mark| DbMark::new(server, mark)).collect();
    output::json_or(json, &DbMarksReceipt { marks }, &text)
}

pub(crate) fn remove(server: &str, names: &[String], cancel: &CancelToken) -> Result<(), Failure> {
    let home = home()?;
    operands::each(names, |name| {
        calve_db::unmark(&home, server, name, cancel)?;
        output::note(&format!("removed the mark `{name}`"));
        Ok(())
    })?
}
