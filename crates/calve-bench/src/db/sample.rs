//! One server: cloned, started, asked, written to, put under load, and stopped.

use std::io;
use std::time::Instant;

use calve_core::{CancelToken, Strategy};
use calve_db::{Error, OwnedServer, Record};

use super::client::Session;
use super::load::{LoadProgram, LoadResult};
use super::memory;
use super::report::Row;
use crate::error::BenchError;
use crate::report::shown_ms;
use crate::scratch::Scratch;
use crate::setup::check_cancelled;

/// The common part of all runs.
pub(super) struct Runner<'a> {
    pub(super) scratch: &'a Scratch<'a>,
    pub(super) query: &'a str,
    pub(super) write: &'a str,
    pub(super) program: Option<&'a LoadProgram>,
    pub(super) start: &'a dyn Fn(Strategy) -> Result<OwnedServer, Error>,
    pub(super) delete_trash: &'a dyn Fn() -> Result<(), BenchError>,
    pub(super) cancel: &'a CancelToken,
    pub(super) say: &'a dyn Fn(&str),
}

/// Times in milliseconds.
#[derive(Debug, Clone, Default)]
pub(super) struct Sample {
    pub(super) clone_ms: f64,
    /// From the request until the first query was answered, cloning included.
    pub(super) ready_ms: f64,
    pub(super) writes_ms: Vec<f64>,
    pub(super) load: Option<LoadResult>,
    pub(super) stop_ms: f64,
    /// The growth that `df` shows once the tenth write is on the disk.
    pub(super) disk_bytes: i64,
    /// `None` where the system does not tell.
    pub(super) memory_bytes: Option<u64>,
}

/// As many as the report tells of.
const WRITES: usize = 10;

impl Runner<'_> {
    /// Runs a strategy once. A failure is noted in its row, and the strategy is not tried again.
    pub(super) fn run(&self, run: u32, row: &mut Row) -> Result<(), BenchError> {
        if row.refused.is_some() || row.failed.is_some() {
            return Ok(());
        }
        (self.delete_trash)()?;
        self.scratch.settle()?;
        let used = self.scratch.used_bytes()?;
        let began = Instant::now();
        let owned = match (self.start)(row.strategy) {
            Ok(owned) => owned,
            Err(Error::Strategy { reason, .. }) => {
                row.refused = Some(reason);
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let sample = match self.answer(&owned.record, began) {
            Ok(mut sample) => {
                self.scratch.flush()?;
                sample.disk_bytes = self.scratch.used_bytes()? as i64 - used as i64;
                self.put_under_load(&owned.record, &mut sample).map(|()| sample)
            }
            Err(error) => Err(error),
        };
        check_cancelled(self.cancel)?;
        match sample {
            Ok(mut sample) => {
                let began = Instant::now();
                owned.stop()?;
                sample.stop_ms = ms(began);
                let took = shown_ms(sample.ready_ms);
                (self.say)(&format!("run {run}  {took:>9}  {}", row.strategy));
                row.samples.push(sample);
            }
            Err(error) => {
                (self.say)(&format!("run {run}  {:>9}  {}: {error}", "failed", row.strategy));
                row.failed = Some(error.to_string());
            }
        }
        Ok(())
    }

    /// Times the first query, and the writes.
    fn answer(&self, server: &Record, began: Instant) -> io::Result<Sample> {
        let mut session = Session::open(server)?;
        session.run(self.query)?;
        let mut sample = Sample { clone_ms: server.clone_ms, ready_ms: ms(began), ..Sample::default() };
        for _ in 0..WRITES {
            let began = Instant::now();
            session.run(self.write)?;
            sample.writes_ms.push(ms(began));
        }
        sample.memory_bytes = memory::bytes(server.pid);
        Ok(sample)
    }

    fn put_under_load(&self, server: &Record, sample: &mut Sample) -> io::Result<()> {
        let Some(program) = self.program else { return Ok(()) };
        let at = self.scratch.path();
        program.prepare(server, at, self.cancel)?;
        let (load, peak) = memory::peak_during(server.pid, || program.run(server, at, self.cancel));
        sample.load = Some(load?);
        sample.memory_bytes = sample.memory_bytes.max((peak > 0).then_some(peak));
        Ok(())
    }
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}
