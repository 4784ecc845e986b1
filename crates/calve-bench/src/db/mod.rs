//! `calve bench db`: the cost of a server on a clone of a template, by every strategy that works there.

mod bench;
mod client;
mod report;
mod sample;
mod servers;
mod steps;

use std::time::SystemTime;

use calve_db::{EngineKind, OwnedServer};

pub use self::bench::DatabaseBench;
use self::client::Session;
use self::servers::Servers;
use crate::error::BenchError;
use crate::machine;
use crate::remedy::Remedy;
use crate::report::Report;
use crate::runs::take_turns;
use crate::scratch::Scratch;
use crate::setup::Rounds;

/// Deletes a row of the largest table that has rows, which needs no knowledge of its columns.
const POSTGRES_WRITE: &str = "SELECT format('DELETE FROM %s WHERE ctid = (SELECT ctid FROM %s LIMIT 1)', t, t) FROM (SELECT \
    c.oid::regclass AS t FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND n.nspname NOT IN \
    ('pg_catalog', 'information_schema') AND pg_relation_size(c.oid) > 0 ORDER BY pg_relation_size(c.oid) DESC LIMIT 1) AS found";
const MARIADB_WRITE: &str = "SELECT CONCAT('DELETE FROM `', REPLACE(table_schema, '`', '``'), '`.`', REPLACE(table_name, '`', '``'), \
    '` LIMIT 1') FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('mysql', 'sys', \
    'performance_schema', 'information_schema') AND table_rows > 0 ORDER BY data_length DESC LIMIT 1";

impl DatabaseBench<'_> {
    pub fn run(&self) -> Result<Report, BenchError> {
        let began = SystemTime::now();
        self.setup.in_scratch(|scratch| self.measure(began, scratch))
    }

    fn measure(&self, began: SystemTime, scratch: &Scratch<'_>) -> Result<Report, BenchError> {
        if calve_db::has_pool(self.home, self.template) {
            let text = format!("the template `{}` has a pool, whose standbys would be measured", self.template);
            return Err(BenchError::usage(text, Remedy::EndStandbys(self.template.to_owned())));
        }
        let machine = machine::here();
        let found = calve_db::list_templates(self.home)?.into_iter().find(|template| template.name == self.template);
        let template = found.ok_or_else(|| calve_db::Error::UnknownTemplate(self.template.into()))?;
        let scout = self.start(None)?;
        let engine = client::engine(&scout.record.server)?;
        let write = self.write(&scout, engine)?;
        scout.stop()?;
        let servers = Servers::new(self, scratch, &write, engine)?;
        let mut rows = servers.rows();
        take_turns(rows.len(), Rounds::Exactly(self.runs), |index, round| {
            self.setup.cancel.check()?;
            servers.run(round, &mut rows[index])
        })?;
        let steps = if self.steps > 0 { self.steps()? } else { Vec::new() };
        let mut report = Report::new("db", began, machine);
        scratch.add_to(&mut report, "Servers in")?;
        report::complete(&mut report, self, &template, &write, &rows);
        if !steps.is_empty() {
            report::add_steps(&mut report, steps);
        }
        Ok(report)
    }

    /// Returns the statement that writes. A first server, untimed, has run it by then.
    fn write(&self, scout: &OwnedServer, engine: EngineKind) -> Result<String, BenchError> {
        let mut session = Session::open(&scout.record.server)?;
        let write = match self.write {
            Some(sql) => sql.to_owned(),
            None => {
                let question = if engine == EngineKind::Postgres { POSTGRES_WRITE } else { MARIADB_WRITE };
                session.run(question)?.ok_or_else(|| {
                    let text = format!("template `{}` has no table with rows to write to", self.template);
                    BenchError::usage(text, Remedy::ChangeWrite)
                })?
            }
        };
        session
            .run(&write)
            .map_err(|error| BenchError::failed(format!("`{write}` failed: {error}"), Remedy::ChangeWrite))?;
        Ok(write)
    }
}
