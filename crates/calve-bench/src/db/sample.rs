//! One server: cloned, started, asked, written to, put under load, and stopped.

use std::io;
use std::time::{Duration, Instant};

use calve_core::{Cancel, Strategy};
use calve_db::{Error, Owned, Record};

use super::check_cancelled;
use super::client::Session;
use super::load::{Load, Program};
use super::memory;
use super::report::Row;
use crate::error::BenchError;
use crate::place::Place;
use calve_receipt::human::duration;

/// What is the same for all runs.
pub(super) struct Ground<'a> {
    pub(super) place: &'a Place<'a>,
    pub(super) query: &'a str,
    pub(super) write: &'a str,
    pub(super) program: Option<&'a Program>,
    pub(super) start: &'a dyn Fn(Strategy) -> Result<Owned, Error>,
    pub(super) delete_trash: &'a dyn Fn() -> Result<(), BenchError>,
    pub(super) cancel: &'a Cancel,
    pub(super) say: &'a dyn Fn(&str),
}

/// Times in milliseconds.
#[derive(Debug, Clone, Default)]
pub(super) struct Sample {
    pub(super) clone_ms: f64,
    /// From the request until the first query was answered, cloning included.
    pub(super) ready_ms: f64,
    pub(super) writes_ms: Vec<f64>,
    pub(super) load: Option<Load>,
    pub(super) stop_ms: f64,
    /// What `df` shows more once the tenth write is on the disk.
    pub(super) disk_bytes: i64,
    /// `None` where the system does not tell.
    pub(super) memory_bytes: Option<u64>,
}

/// As many as the report tells of.
const WRITES: usize = 10;

/// One run of a strategy. What does not work is noted in its row and not tried again.
pub(super) fn round(ground: &Ground<'_>, run: u32, row: &mut Row) -> Result<(), BenchError> {
    if row.refused.is_some() || row.failed.is_some() {
        return Ok(());
    }
    (ground.delete_trash)()?;
    ground.place.settle()?;
    let used = ground.place.used_bytes()?;
    let began = Instant::now();
    let owned = match (ground.start)(row.strategy) {
        Ok(owned) => owned,
        Err(Error::Strategy { reason, .. }) => {
            row.refused = Some(reason);
            return Ok(());
        }
        Err(error @ Error::Told { refused: true, .. }) => {
            row.refused = Some(error.to_string());
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let sample = match answered(ground, &owned.record, began) {
        Ok(mut sample) => {
            ground.place.flush()?;
            sample.disk_bytes = ground.place.used_bytes()? as i64 - used as i64;
            loaded(ground, &owned.record, &mut sample).map(|()| sample)
        }
        Err(error) => Err(error),
    };
    check_cancelled(ground.cancel)?;
    match sample {
        Ok(mut sample) => {
            let began = Instant::now();
            owned.stop()?;
            sample.stop_ms = ms(began);
            let took = duration(Duration::from_secs_f64(sample.ready_ms / 1000.0));
            (ground.say)(&format!("run {run}  {took:>9}  {}", row.strategy));
            row.samples.push(sample);
        }
        Err(error) => {
            (ground.say)(&format!("run {run}  {:>9}  {}: {error}", "failed", row.strategy));
            row.failed = Some(error.to_string());
        }
    }
    Ok(())
}

/// The first query, and the writes.
fn answered(ground: &Ground<'_>, server: &Record, began: Instant) -> io::Result<Sample> {
    let mut session = Session::open(server)?;
    session.run(ground.query)?;
    let mut sample = Sample { clone_ms: server.clone_ms, ready_ms: ms(began), ..Sample::default() };
    for _ in 0..WRITES {
        let began = Instant::now();
        session.run(ground.write)?;
        sample.writes_ms.push(ms(began));
    }
    sample.memory_bytes = memory::bytes(server.pid);
    Ok(sample)
}

fn loaded(ground: &Ground<'_>, server: &Record, sample: &mut Sample) -> io::Result<()> {
    let Some(program) = ground.program else { return Ok(()) };
    let at = ground.place.path();
    program.prepare(server, at, ground.cancel)?;
    let (load, peak) = memory::peak_during(server.pid, || program.run(server, at, ground.cancel));
    sample.load = Some(load?);
    sample.memory_bytes = sample.memory_bytes.max((peak > 0).then_some(peak));
    Ok(())
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}
