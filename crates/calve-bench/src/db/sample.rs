//! One server: cloned, started, asked, written to, and stopped.

use std::time::Instant;

use calve_core::Strategy;
use calve_db::Error;
use calve_receipt::bench::BenchSide;

use super::bench::QUERY;
use super::client::Session;
use super::servers::{Server, Servers};
use crate::error::BenchError;
use crate::report::shown_ms;
use crate::setup::BenchSetup;

#[derive(Debug, Clone, Default)]
pub(super) struct Sample {
    /// `None` if Calve has not cloned the data.
    pub(super) clone_ms: Option<f64>,
    /// From the request until the first query was answered, cloning included.
    pub(super) ready_ms: f64,
    pub(super) writes_ms: Vec<f64>,
    pub(super) stop_ms: f64,
    /// The growth that `df` shows once the tenth write is on the disk.
    pub(super) disk_bytes: i64,
    /// `None` if the system does not report it.
    pub(super) memory_bytes: Option<u64>,
}

/// A way to start a server, and its runs.
#[derive(Default)]
pub(super) struct VariantRuns {
    pub(super) name: String,
    /// `None` for a server without Calve, on an existing directory: on this machine, or in a container.
    pub(super) strategy: Option<Strategy>,
    pub(super) samples: Vec<Sample>,
    /// Why it does not work here.
    pub(super) refused: Option<String>,
    /// Why it was not run any more.
    pub(super) failed: Option<String>,
}

impl VariantRuns {
    pub(super) fn side(&self) -> BenchSide {
        if self.strategy.is_some() { BenchSide::Calve } else { BenchSide::Peer }
    }
}

/// In the order of the report.
const STRATEGIES: [Strategy; 4] = [Strategy::Copy, Strategy::Overlay, Strategy::Reflink, Strategy::Snapshot];

/// The report has the first and the tenth.
const WRITES: usize = 10;

impl Servers<'_> {
    pub(super) fn rows(&self) -> Vec<VariantRuns> {
        let row = |name, strategy| VariantRuns { name, strategy, ..VariantRuns::default() };
        let baseline = format!("{}: an existing directory", self.baseline.runtime().unwrap_or("the server alone"));
        let rows = STRATEGIES.map(|strategy| row(strategy.to_string(), Some(strategy)));
        rows.into_iter().chain([row(baseline, None)]).collect()
    }

    /// Runs a way once. Notes a failure in its row. Returns false if the way is not to be tried again.
    pub(super) fn run(&self, run: u32, row: &mut VariantRuns) -> Result<bool, BenchError> {
        let BenchSetup { say, cancel, .. } = &self.bench.setup;
        self.delete_trash()?;
        let begun = self.begin(row.strategy);
        cancel.check()?;
        let measured = match begun {
            Ok(begun) => self.finish(begun),
            Err(error) => match refusal(row.side(), &error) {
                Some(reason) => {
                    row.refused = Some(reason);
                    return Ok(false);
                }
                None if row.side() == BenchSide::Calve && matches!(error, BenchError::Db(_)) => return Err(error),
                None => Err(error),
            },
        };
        cancel.check()?;
        match measured {
            Ok(sample) => {
                let took = shown_ms(sample.ready_ms);
                say(&format!("run {run}  {took:>9}  {}", row.name));
                row.samples.push(sample);
                Ok(true)
            }
            Err(error) => {
                say(&format!("run {run}  {:>9}  {}: {error}", "failed", row.name));
                row.failed = Some(error.to_string());
                Ok(false)
            }
        }
    }

    /// Starts a server and runs the first query. Returns also the milliseconds it took, and the used bytes before.
    fn begin(&self, strategy: Option<Strategy>) -> Result<(Server, Session, f64, u64), BenchError> {
        // Untimed. Calve prepares its own servers while it starts them.
        let prepared = strategy.is_none().then(|| self.baseline.prepare(self.bench.setup.cancel)).transpose()?;
        self.scratch.wait_for_freed_space()?;
        let used_bytes = self.scratch.used_bytes()?;
        let began = Instant::now();
        let mut server = match prepared {
            Some(start) => Server::Baseline(Box::new(start()?)),
            None => Server::Calve(Box::new(self.bench.start(strategy)?)),
        };
        let asked = self.open(&mut server).and_then(|mut session| {
            session.run(QUERY)?;
            Ok(session)
        });
        match asked {
            Ok(session) => Ok((server, session, ms(began), used_bytes)),
            Err(error) => {
                let _ = server.stop();
                Err(error)
            }
        }
    }

    /// Measures the rest of a server, and ends it whatever happens.
    fn finish(&self, begun: (Server, Session, f64, u64)) -> Result<Sample, BenchError> {
        let (server, session, ready_ms, used_bytes) = begun;
        let clone_ms = if let Server::Calve(owned) = &server { owned.record.server.launch.clone_ms } else { None };
        let sample = Sample { clone_ms, ready_ms, ..Sample::default() };
        let sample = self.measure(session, used_bytes, sample);
        let began = Instant::now();
        let left = server.stop();
        let stop_ms = ms(began);
        let sample = sample?;
        left?;
        Ok(Sample { stop_ms, ..sample })
    }

    fn measure(&self, mut session: Session, used_bytes: u64, mut sample: Sample) -> Result<Sample, BenchError> {
        for _ in 0..WRITES {
            let began = Instant::now();
            session.run(self.write)?;
            sample.writes_ms.push(ms(began));
        }
        let process = session.server;
        drop(session);
        sample.memory_bytes = process.and_then(calve_db::memory_bytes);
        self.scratch.flush()?;
        sample.disk_bytes = self.scratch.used_bytes()? as i64 - used_bytes as i64;
        Ok(sample)
    }
}

fn refusal(side: BenchSide, error: &BenchError) -> Option<String> {
    let BenchError::Db(error) = error else { return None };
    match error {
        Error::Strategy { reason, .. } => Some(reason.clone()),
        Error::Runtime { .. } | Error::NoSubordinateIds { .. } | Error::Unreachable(_) | Error::CannotBind(_)
            if side == BenchSide::Peer =>
        {
            Some(error.to_string())
        }
        _ => None,
    }
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}
