//! `calve bench db`: what a server on a clone of a template costs, by every strategy that works there.

mod client;
mod html;
mod load;
mod memory;
mod report;
mod sample;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use calve_core::{Cancel, Error, Strategy, probe};
use calve_db::{Home, Owned, Ownership, StartOptions, Template};

use self::client::Session;
use self::load::Program;
pub use self::report::Report;
use self::report::{Row, Write};
use self::sample::{Ground, round};
use super::machine::{Machine, mount_options};
use super::place::Place;
use super::runs::shuffled;
use crate::error::{BenchError, FailureKind};

/// The options of `calve bench db`.
pub struct Setup<'a> {
    /// Where the template is.
    pub home: &'a Home,
    /// On the file system of the templates and servers.
    pub directory: &'a Path,
    /// The command that looks after a server.
    pub supervisor: &'a [PathBuf],
    /// The name of the template.
    pub template: &'a str,
    /// The statement that a server answers first.
    pub query: &'a str,
    /// The statement that writes; a row of the largest table is deleted by default.
    pub write: Option<&'a str>,
    /// How many servers are started by each strategy.
    pub runs: u32,
    /// How many connections the write load has.
    pub clients: u32,
    /// No write load when it is zero.
    pub duration: Duration,
    /// Called with each line of progress.
    pub say: &'a dyn Fn(&str),
    /// Called with what should be known even by those who want no progress.
    pub warn: &'a dyn Fn(&str),
    /// Ends the bench early.
    pub cancel: &'a Cancel,
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
pub fn run(setup: &Setup<'_>) -> Result<Report, BenchError> {
    let machine = Machine::here();
    let began = SystemTime::now();
    let place = Place::make(setup.directory, setup.warn)?;
    let measured = measured(setup, &place);
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
        directory: setup.directory.to_path_buf(),
        template: measured.template,
        query: setup.query.to_owned(),
        write: measured.write,
        runs: setup.runs,
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

fn measured(setup: &Setup<'_>, place: &Place) -> Result<Measured, BenchError> {
    let scout = start(setup, None)?;
    let found = calve_db::list_templates(setup.home)?.into_iter().find(|template| template.name == setup.template);
    let template = found.ok_or_else(|| calve_db::Error::UnknownTemplate(setup.template.into()))?;
    let Scouted { write, program, missing } = scouted(setup, &scout, &template)?;
    scout.stop()?;
    let ground = Ground {
        place,
        query: setup.query,
        write: &write.sql,
        program: program.as_ref(),
        start: &|strategy| start(setup, Some(strategy)),
        delete_trash: &|| Ok(calve_db::delete_trash(&calve_db::sweep(setup.home)?)?),
        cancel: setup.cancel,
        say: setup.say,
    };
    let mut rows: Vec<Row> = STRATEGIES.into_iter().map(Row::new).collect();
    for run in 1..=setup.runs {
        for index in shuffled(rows.len(), u64::from(run)) {
            check_cancelled(setup.cancel)?;
            round(&ground, run, &mut rows[index])?;
        }
    }
    let load = program.as_ref().map(Program::in_words);
    Ok(Measured { template, write, load, missing, rows })
}

fn scouted(setup: &Setup<'_>, scout: &Owned, template: &Template) -> Result<Scouted, BenchError> {
    let mut session = Session::open(&scout.record)?;
    let write = match setup.write {
        Some(sql) => Write { sql: sql.to_owned(), is_given: true },
        None => {
            let question = if scout.record.engine == "postgres" { POSTGRES_WRITE } else { MARIADB_WRITE };
            let Some(sql) = session.run(question)? else {
                let text = format!("template `{}` has no table with rows to write to", setup.template);
                return Err(BenchError::stated(
                    FailureKind::Usage,
                    text,
                    "give a statement that writes with `--write`",
                ));
            };
            Write { sql, is_given: false }
        }
    };
    for (option, sql) in [("--query", setup.query), ("--write", &write.sql)] {
        session.run(sql).map_err(|error| {
            let text = format!("`{sql}` failed: {error}");
            BenchError::stated(FailureKind::Failed, text, format!("give another statement with `{option}`"))
        })?;
    }
    if setup.duration.is_zero() {
        return Ok(Scouted { write, program: None, missing: None });
    }
    let program = Program::find(&scout.record, &mut session, &template.program, setup.clients, setup.duration)?;
    match program {
        Ok(program) => Ok(Scouted { write, program: Some(program), missing: None }),
        Err(missing) => {
            (setup.say)(&format!("there is no write load: {missing} is not installed"));
            Ok(Scouted { write, program: None, missing: Some(missing) })
        }
    }
}

/// It ends with this process, however that ends.
fn start(setup: &Setup<'_>, strategy: Option<Strategy>) -> Result<Owned, calve_db::Error> {
    let mut options = StartOptions::default();
    options.owner = Ownership::Caller;
    options.strategy = strategy;
    options.cancel = setup.cancel.clone();
    calve_db::start(setup.home, setup.template, &options, setup.supervisor, &mut |_| ())
}

fn check_cancelled(cancel: &Cancel) -> Result<(), BenchError> {
    if cancel.is_cancelled() { Err(Error::Interrupted.into()) } else { Ok(()) }
}
