//! Whole commands, until a query is answered: a start that finds a standby, and the resets.

use std::io;
use std::time::{Duration, Instant};

use calve_db::{Pool, PoolOptions, Server};
use calve_receipt::bench::DatabaseStepResult;

use super::bench::{DatabaseBench, QUERY, program};
use super::client::Session;
use crate::error::BenchError;
use crate::report::shown_ms;
use crate::stats::spread;

const STANDBY: &str = "calve db start, with a standby";
const RESET: &str = "calve db reset";
const RESET_TO_MARK: &str = "calve db reset --to MARK";
const RESET_PREPARED: &str = "calve db reset --to MARK, with a standby";

/// Limit for the next standby to wait.
const PATIENCE: Duration = Duration::from_secs(60);
const MARK: &str = "bench";

impl DatabaseBench<'_> {
    /// Runs each command `steps` times. The template has no pool, before or after.
    pub(super) fn steps(&self) -> Result<Vec<DatabaseStepResult>, BenchError> {
        let [mut standby, mut memory_bytes, mut reset, mut to_mark, mut prepared] = [const { Vec::new() }; 5];
        let server = self.start(None)?;
        let name = server.record.server.name.clone();
        let reset_to_mark = ["reset", &name, "--to", MARK, "-q"];
        for _ in 0..self.steps {
            reset.push(self.timed(RESET, &["reset", &name, "-q"], &server.record.server)?);
        }
        calve_db::mark(self.home, &name, MARK, self.setup.cancel)?;
        for _ in 0..self.steps {
            to_mark.push(self.timed(RESET_TO_MARK, &reset_to_mark, &server.record.server)?);
        }
        self.with_pool(|| {
            // The first reset prepares the next one, if that is possible.
            let back = calve_db::reset(self.home, &name, Some(MARK), self.setup.cancel)?;
            let prepares = if back.can_prepare() { self.steps } else { 0 };
            for _ in 0..prepares {
                self.until(|| Ok(calve_db::find(self.home, &name)?.prepared))?;
                prepared.push(self.timed(RESET_PREPARED, &reset_to_mark, &server.record.server)?);
            }
            let is_ready = |pool: &Pool| pool.template == self.template && pool.waiting > 0;
            for _ in 0..self.steps {
                self.until(|| Ok(calve_db::pools(self.home)?.iter().any(is_ready)))?;
                let (ms, memory) = self.start_with_standby()?;
                standby.push(ms);
                memory_bytes.extend(memory);
            }
            Ok(())
        })?;
        server.stop()?;
        let step =
            |step, ms, memory_bytes| DatabaseStepResult { step, ms: spread(ms), memory_bytes: spread(memory_bytes) };
        Ok(vec![
            step(STANDBY, standby, memory_bytes),
            step(RESET, reset, Vec::new()),
            step(RESET_TO_MARK, to_mark, Vec::new()),
            step(RESET_PREPARED, prepared, Vec::new()),
        ])
    }

    fn with_pool(&self, work: impl FnOnce() -> Result<(), BenchError>) -> Result<(), BenchError> {
        let mut options = PoolOptions::default();
        options.size = 1;
        calve_db::set_pool(self.home, self.template, &options, self.supervisor, self.setup.cancel)?;
        let done = work();
        options.size = 0;
        calve_db::set_pool(self.home, self.template, &options, self.supervisor, self.setup.cancel)?;
        done
    }

    fn until(&self, mut holds: impl FnMut() -> Result<bool, BenchError>) -> Result<(), BenchError> {
        let began = Instant::now();
        while !holds()? {
            self.setup.cancel.check()?;
            if began.elapsed() > PATIENCE {
                return Err(io::Error::other("no standby was ready after a minute").into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn timed(&self, step: &str, words: &[&str], server: &Server) -> Result<f64, BenchError> {
        self.setup.cancel.check()?;
        let began = Instant::now();
        program(self.supervisor, words)?;
        Session::open(server)?.run(QUERY)?;
        let ms = began.elapsed().as_secs_f64() * 1000.0;
        (self.setup.say)(&format!("{:>9}  {step}", shown_ms(ms)));
        Ok(ms)
    }

    /// Returns the milliseconds, and the memory of the server after one query.
    fn start_with_standby(&self) -> Result<(f64, Option<f64>), BenchError> {
        let name = format!("bench-{}", std::process::id());
        let owner = std::process::id().to_string();
        let began = Instant::now();
        program(self.supervisor, &["start", self.template, "--name", &name, "--owner-pid", &owner, "-q"])?;
        // The command prints the directory of sockets, which the record has too.
        let record = calve_db::find(self.home, &name)?;
        Session::open(&record.server)?.run(QUERY)?;
        let ms = began.elapsed().as_secs_f64() * 1000.0;
        let memory_bytes = calve_db::memory_bytes(record.supervisor).map(|bytes| bytes as f64);
        calve_db::stop(self.home, &name, self.setup.cancel)?;
        if !record.server.standby {
            return Err(io::Error::other("a server was started although one waited").into());
        }
        (self.setup.say)(&format!("{:>9}  {STANDBY}", shown_ms(ms)));
        Ok((ms, memory_bytes))
    }
}
