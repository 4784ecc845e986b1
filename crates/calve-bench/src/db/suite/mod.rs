//! A suite: workers at the same time, and every test from the same state, by several ways to get there.

mod contents;
mod mitosis;
mod workers;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use calve_core::CancelToken;
use calve_db::{EngineKind, Record};
use calve_receipt::bench::{NotRun, Side};

use self::mitosis::Mitosis;
use self::workers::{Database, MarkWorker, PreparedWorker, RestoreWorker};
use super::DatabaseBench;
use super::client::Session;
use crate::error::BenchError;
use crate::remedy::ProgramSource;
use crate::scratch::Scratch;
use crate::setup::check_cancelled;
use crate::{comparison, process, programs};

/// How many workers, and how many tests each of them runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the other names say it")]
pub struct SuiteSize {
    pub workers: u32,
    /// The tests of each.
    pub tests: u32,
}

/// A way that is slow is not run to its end.
const LIMIT: Duration = Duration::from_secs(120);

/// One way, measured.
pub(super) struct SuiteRow {
    pub(super) way: &'static str,
    pub(super) side: Side,
    pub(super) seconds: f64,
    pub(super) fresh_ms: Vec<f64>,
    /// How many states were compared as a whole with the one that every test must see.
    pub(super) compared: usize,
}

/// All ways, and those that were not measured.
#[derive(Default)]
pub(super) struct SuiteRows {
    pub(super) rows: Vec<SuiteRow>,
    pub(super) not_run: Vec<NotRun>,
}

/// The source of a worker's databases, one for each of its tests.
trait SuiteWorker: Send {
    /// Opens a session with a database that is as it was in the beginning.
    fn fresh(&mut self) -> Result<Session, BenchError>;
}

/// The common part of all ways.
struct Suite<'a> {
    bench: &'a DatabaseBench<'a>,
    size: SuiteSize,
    write: &'a str,
    /// The contents of all tables as every test must see them.
    expected: Vec<String>,
}

impl DatabaseBench<'_> {
    pub(super) fn suite(&self, size: SuiteSize, write: &str, scratch: &Scratch<'_>) -> Result<SuiteRows, BenchError> {
        let server = self.start(None)?;
        let mut session = Session::open(&server.record)?;
        contents::prepare(&mut session)?;
        let suite = Suite { bench: self, size, write, expected: contents::of(&mut session)? };
        // Nobody may be connected to the database that is the template.
        drop(session);
        let marked = || MarkWorker::begin(self);
        let mut found = SuiteRows {
            rows: vec![
                self.with_pool(size.workers as usize, || {
                    suite.way((Side::Calve, "calve db reset --to MARK, with a standby"), &|_| marked())
                })?,
                suite.way((Side::Calve, "calve db reset --to MARK"), &|_| marked())?,
            ],
            not_run: Vec::new(),
        };
        match server.record.engine_kind() {
            Some(EngineKind::Postgres) => suite.postgres(&server.record, scratch, &mut found)?,
            Some(EngineKind::Mariadb) => suite.mariadb(&server.record, scratch, &mut found)?,
            _ => {}
        }
        server.stop()?;
        Ok(found)
    }
}

impl Suite<'_> {
    fn postgres(&self, server: &Record, scratch: &Scratch<'_>, found: &mut SuiteRows) -> Result<(), BenchError> {
        let made = |strategy: &'static str| {
            move |number| Ok(Box::new(Database::named(server, format!("w{number}"), strategy)) as Box<dyn SuiteWorker>)
        };
        found.rows.push(self.way((Side::Peer, "CREATE DATABASE ... TEMPLATE"), &made(""))?);
        let version = Session::open(server)?.run("SHOW server_version_num")?;
        if version.and_then(|version| version.parse::<u32>().ok()).is_some_and(|version| version >= 150_000) {
            let way = "CREATE DATABASE ... TEMPLATE ... STRATEGY file_copy";
            found.rows.push(self.way((Side::Peer, way), &made(" STRATEGY file_copy"))?);
        }
        let ahead = |number| Ok(Box::new(PreparedWorker::begin(server, number)) as Box<dyn SuiteWorker>);
        found.rows.push(self.way((Side::Peer, "databases made ahead from a template, as IntegreSQL does"), &ahead)?);
        match Mitosis::begin(server, scratch.path(), &self.bench.setup)? {
            Ok(mitosis) => {
                let clone = |_| Ok(Box::new(mitosis.worker()) as Box<dyn SuiteWorker>);
                found.rows.push(self.way((Side::Peer, "mitosis destroy, mitosis clone"), &clone)?);
            }
            Err(why) => found.not_run.push(why),
        }
        Ok(())
    }

    fn mariadb(&self, server: &Record, scratch: &Scratch<'_>, found: &mut SuiteRows) -> Result<(), BenchError> {
        let (Some(dump), Some(client)) = (programs::find("mariadb-dump"), programs::find("mariadb")) else {
            let (source, hint) = (ProgramSource::PackageManagerForDump, self.bench.setup.hint);
            found.not_run.push(comparison::missing("mariadb-dump", "mariadb-dump", source, hint));
            return Ok(());
        };
        let file = self.dump(&dump, server, scratch.path())?;
        let restored = |_| {
            let owned = self.bench.start(None)?;
            Ok(Box::new(RestoreWorker { owned, client: client.clone(), file: file.clone() }) as Box<dyn SuiteWorker>)
        };
        found.rows.push(self.way((Side::Peer, "a dump restored"), &restored)?);
        Ok(())
    }

    /// Runs the suite, and looks afterwards whether each worker still gets the state that it should.
    fn way<'w>(
        &self,
        (side, way): (Side, &'static str),
        worker: &dyn Fn(u32) -> Result<Box<dyn SuiteWorker + 'w>, BenchError>,
    ) -> Result<SuiteRow, BenchError> {
        check_cancelled(self.bench.setup.cancel)?;
        let mut workers: Vec<_> = (0..self.size.workers).map(worker).collect::<Result<_, _>>()?;
        let (cancel, query) = (self.bench.setup.cancel, self.bench.query);
        let run = TestRun { tests: self.size.tests, query, write: self.write, cancel, began: Instant::now() };
        let fresh_ms = together(&mut workers, |worker| run.tests(worker))?.concat();
        let seconds = run.began.elapsed().as_secs_f64();
        (self.bench.setup.say)(&format!("{} tests in {seconds:.1} s  {way}", fresh_ms.len()));
        let expected = &self.expected;
        let compared = together(&mut workers, |worker| {
            check_cancelled(cancel)?;
            contents::compare(&mut worker.fresh()?, expected, way)
        })?;
        Ok(SuiteRow { way, side, seconds, fresh_ms, compared: compared.len() })
    }

    fn dump(&self, dump: &Path, server: &Record, at: &Path) -> Result<PathBuf, BenchError> {
        let own = "SELECT GROUP_CONCAT(schema_name SEPARATOR ' ') FROM information_schema.schemata WHERE schema_name NOT IN ('mysql', \
            'sys', 'performance_schema', 'information_schema')";
        let names = Session::open(server)?.run(own)?.unwrap_or_default();
        let file = at.join("dump.sql");
        let mut command = std::process::Command::new(dump);
        command.args(["--no-defaults", "-uroot", "-S"]).arg(&server.address.socket);
        command.args(["--add-drop-database", "--databases"]).args(names.split(' '));
        command.stdout(fs_err::File::create(&file)?.into_parts().0).stdin(Stdio::null());
        succeeded(&process::measure_command(&mut command, self.bench.setup.cancel)?, "mariadb-dump")?;
        Ok(file)
    }
}

/// The common state of the threads of all workers.
struct TestRun<'a> {
    tests: u32,
    query: &'a str,
    write: &'a str,
    cancel: &'a CancelToken,
    began: Instant,
}

impl TestRun<'_> {
    /// Runs the tests of one worker. Returns how long each waited for its state.
    fn tests(&self, worker: &mut dyn SuiteWorker) -> Result<Vec<f64>, BenchError> {
        let mut times = Vec::new();
        while times.len() < self.tests as usize && (times.is_empty() || self.began.elapsed() < LIMIT) {
            check_cancelled(self.cancel)?;
            let asked = Instant::now();
            let mut session = worker.fresh()?;
            session.run(self.query)?;
            times.push(asked.elapsed().as_secs_f64() * 1000.0);
            contents::test(&mut session, self.write)?;
        }
        Ok(times)
    }
}

/// Runs `work` for all workers at the same time.
fn together<'w, T: Send>(
    workers: &mut [Box<dyn SuiteWorker + 'w>],
    work: impl Fn(&mut (dyn SuiteWorker + 'w)) -> Result<T, BenchError> + Sync,
) -> Result<Vec<T>, BenchError> {
    let work = &work;
    let done: Vec<Result<T, BenchError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = workers.iter_mut().map(|worker| scope.spawn(move || work(worker.as_mut()))).collect();
        let panicked = || Err(io::Error::other("a worker panicked").into());
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| panicked())).collect()
    });
    done.into_iter().collect()
}

fn succeeded(result: &process::ProcessResult, program: &str) -> Result<(), BenchError> {
    match result.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("{program} failed ({})", result.in_words())).into()),
    }
}
