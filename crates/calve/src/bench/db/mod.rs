//! `calve bench db`: what a server on a clone of a template costs, by every strategy that works there.

mod client;
pub(crate) mod html;
mod load;
mod memory;
pub(crate) mod report;
mod sample;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use calve_core::{Cancel, Error, Strategy, probe};
use calve_db::{Home, Owned, Ownership, StartOptions, Template};

use self::client::Session;
use self::load::Program;
pub(crate) use self::report::Report;
use self::report::{Row, Write};
use self::sample::{Ground, round};
use super::machine::{Machine, mount_options};
use super::place::Place;
use super::runs::shuffled;
use crate::failure::{FAILED, Failure, USAGE};

/// What is asked for.
pub(crate) struct Wish<'a> {
    pub(crate) home: &'a Home,
    /// On the file system of the templates and servers.
    pub(crate) directory: &'a Path,
    pub(crate) supervisor: &'a [PathBuf],
    pub(crate) template: &'a str,
    pub(crate) query: &'a str,
    pub(crate) write: Option<&'a str>,
    pub(crate) runs: u32,
    pub(crate) clients: u32,
    /// No write load when it is zero.
    pub(crate) duration: Duration,
    pub(crate) say: &'a dyn Fn(&str),
    pub(crate) cancel: &'a Cancel,
}

/// In the order of the report.
const STRATEGIES: [Strategy; 4] = [Strategy::Copy, Strategy::Overlay, Strategy::Reflink, Strategy::Snapshot];

/// Deletes a row of the largest table that has rows, which needs no knowledge of its columns.
const POSTGRES_WRITE: &str = "SELECT format('DELETE FROM %s WHERE ctid = (SELECT ctid FROM %s LIMIT 1)', t, t) FROM (SELECT \
    c.oid::regclass AS t FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND n.nspname NOT IN \
    ('pg_catalog', 'information_schema') AND pg_relation_size(c.oid) > 0 ORDER BY pg_relation_size(c.oid) DESC LIMIT 1) AS found";
const MARIADB_WRITE: &str = "SELECT CONCAT('DELETE FROM `', REPLACE(table_schema, '`', '``'), '`.`', REPLACE(table_name, '`', '``'), \
    '` LIMIT 1') FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('mysql', 'sys', \
    'performance_schema', 'information_schema') AND table_rows > 0 ORDER BY data_length DESC LIMIT 1";

/// Measures, ends all servers that it started, and reports.
pub(crate) fn run(wish: &Wish<'_>) -> Result<Report, Failure> {
    let machine = Machine::here();
    let began = SystemTime::now();
    let place = Place::make(wish.directory)?;
    let measured = measured(wish, &place);
    let file_system = probe(place.path(), place.path()).map(|report| report.dst.file_system);
    let mount = mount_options(place.path());
    let removed = place.remove();
    let measured = measured?;
    removed?;
    Ok(Report {
        began,
        machine,
        file_system: file_system.unwrap_or_else(|_| "unknown".into()),
        mount_options: mount.unwrap_or_else(|| "unknown options".into()),
        directory: wish.directory.to_path_buf(),
        template: measured.template,
        query: wish.query.to_owned(),
        write: measured.write,
        runs: wish.runs,
        load: measured.load,
        missing: measured.missing,
        rows: measured.rows,
    })
}

struct Measured {
    template: Template,
    write: Write,
    load: Option<String>,
    missing: Option<&'static str>,
    rows: Vec<Row>,
}

/// What a first server, which is not timed, tells of the template.
struct Scouted {
    write: Write,
    program: Option<Program>,
    missing: Option<&'static str>,
}

fn measured(wish: &Wish<'_>, place: &Place) -> Result<Measured, Failure> {
    let scout = start(wish, None)?;
    let found = calve_db::list_templates(wish.home)?.into_iter().find(|template| template.name == wish.template);
    let template = found.ok_or_else(|| calve_db::Error::UnknownTemplate(wish.template.into()))?;
    let Scouted { write, program, missing } = scouted(wish, &scout, &template)?;
    scout.stop()?;
    let ground = Ground {
        place,
        query: wish.query,
        write: &write.sql,
        program: program.as_ref(),
        start: &|strategy| start(wish, Some(strategy)),
        delete_trash: &|| Ok(calve_db::delete_trash(&calve_db::sweep(wish.home)?)?),
        cancel: wish.cancel,
        say: wish.say,
    };
    let mut rows: Vec<Row> = STRATEGIES.into_iter().map(Row::new).collect();
    for run in 1..=wish.runs {
        for index in shuffled(rows.len(), u64::from(run)) {
            check_cancelled(wish.cancel)?;
            round(&ground, run, &mut rows[index])?;
        }
    }
    let load = program.as_ref().map(Program::in_words);
    Ok(Measured { template, write, load, missing, rows })
}

fn scouted(wish: &Wish<'_>, scout: &Owned, template: &Template) -> Result<Scouted, Failure> {
    let mut session = Session::open(&scout.record)?;
    let write = match wish.write {
        Some(sql) => Write { sql: sql.to_owned(), is_given: true },
        None => {
            let question = if scout.record.engine == "postgres" { POSTGRES_WRITE } else { MARIADB_WRITE };
            let Some(sql) = session.run(question)? else {
                let text = format!("template `{}` has no table with rows to write to", wish.template);
                return Err(Failure::stated(USAGE, text, "give a statement that writes with `--write`"));
            };
            Write { sql, is_given: false }
        }
    };
    for (option, sql) in [("--query", wish.query), ("--write", &write.sql)] {
        session.run(sql).map_err(|error| {
            let text = format!("`{sql}` failed: {error}");
            Failure::stated_with(FAILED, text, format!("give another statement with `{option}`"))
        })?;
    }
    if wish.duration.is_zero() {
        return Ok(Scouted { write, program: None, missing: None });
    }
    let program = Program::find(&scout.record, &mut session, &template.program, wish.clients, wish.duration)?;
    match program {
        Ok(program) => Ok(Scouted { write, program: Some(program), missing: None }),
        Err(missing) => {
            (wish.say)(&format!("there is no write load: {missing} is not installed"));
            Ok(Scouted { write, program: None, missing: Some(missing) })
        }
    }
}

/// It ends with this process, however that ends.
fn start(wish: &Wish<'_>, strategy: Option<Strategy>) -> Result<Owned, calve_db::Error> {
    let mut options = StartOptions::default();
    options.owner = Ownership::Caller;
    options.strategy = strategy;
    options.cancel = wish.cancel.clone();
    calve_db::start(wish.home, wish.template, &options, wish.supervisor, &mut |_| ())
}

fn check_cancelled(cancel: &Cancel) -> Result<(), Failure> {
    if cancel.is_cancelled() { Err(Error::Interrupted.into()) } else { Ok(()) }
}
