//! A suite: workers at the same time, and every test from the same state, by several ways to get there.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use calve_db::{OwnedServer, Record};
use calve_receipt::bench::Side;

use super::client::Session;
use super::{DatabaseBench, program};
use crate::error::BenchError;
use crate::scratch::Scratch;
use crate::setup::check_cancelled;
use crate::{process, programs};

/// How many workers, and how many tests each of them runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuiteSize {
    /// The workers.
    pub workers: u32,
    /// The tests of each.
    pub tests: u32,
}

/// A way that is slow is not run to its end.
const LIMIT: Duration = Duration::from_secs(120);
const MARK: &str = "bench";

/// One way, measured.
pub(super) struct SuiteRow {
    pub(super) way: &'static str,
    pub(super) side: Side,
    pub(super) seconds: f64,
    pub(super) fresh_ms: Vec<f64>,
}

/// All ways, and the program without which one was not measured.
#[derive(Default)]
pub(super) struct SuiteRows {
    pub(super) rows: Vec<SuiteRow>,
    pub(super) missing: Option<&'static str>,
}

/// What a worker gets each of its tests from.
trait Worker: Send {
    /// A session with a database that is as it was in the beginning.
    fn fresh(&mut self) -> Result<Session, BenchError>;
}

impl DatabaseBench<'_> {
    pub(super) fn suite(&self, size: SuiteSize, write: &str, scratch: &Scratch<'_>) -> Result<SuiteRows, BenchError> {
        let workers = size.workers as usize;
        let mut rows = vec![
            self.with_pool(workers, || {
                self.way("calve db reset --to MARK, with a standby", size, write, &|_| self.server())
            })?,
            self.way("calve db reset --to MARK", size, write, &|_| self.server())?,
        ];
        let mut missing = None;
        let server = self.start(None)?;
        match server.record.engine.as_str() {
            "postgres" => {
                let made = |strategy: &'static str| {
                    let record = server.record.clone();
                    move |number| {
                        Ok(Box::new(Database { record: record.clone(), name: format!("w{number}"), strategy })
                            as Box<dyn Worker>)
                    }
                };
                rows.push(self.way("CREATE DATABASE ... TEMPLATE", size, write, &made(""))?);
                let version = Session::open(&server.record)?.run("SHOW server_version_num")?;
                if version.and_then(|version| version.parse::<u32>().ok()).is_some_and(|version| version >= 150_000) {
                    rows.push(self.way(
                        "CREATE DATABASE ... TEMPLATE ... STRATEGY file_copy",
                        size,
                        write,
                        &made(" STRATEGY file_copy"),
                    )?);
                }
                let ahead = |number| Ok(Box::new(Ahead::begin(&server.record, number)) as Box<dyn Worker>);
                rows.push(self.way("databases made ahead from a template, as IntegreSQL does", size, write, &ahead)?);
            }
            "mariadb" => {
                if let (Some(dump), Some(client)) = (programs::find("mariadb-dump"), programs::find("mariadb")) {
                    let file = self.dump(&dump, &server.record, scratch.path())?;
                    let restored = |_| {
                        let owned = self.start(None)?;
                        Ok(Box::new(Restored { owned, client: client.clone(), file: file.clone() }) as Box<dyn Worker>)
                    };
                    rows.push(self.way("a dump restored", size, write, &restored)?);
                } else {
                    missing = Some("mariadb-dump");
                }
            }
            _ => {}
        }
        server.stop()?;
        Ok(SuiteRows { rows, missing })
    }

    /// A server of the worker's own, with a mark.
    fn server(&self) -> Result<Box<dyn Worker + '_>, BenchError> {
        let owned = self.start(None)?;
        calve_db::mark(self.home, &owned.record.name, MARK)?;
        Ok(Box::new(Marked { owned, supervisor: self.supervisor }))
    }

    fn way<'w>(
        &self,
        way: &'static str,
        size: SuiteSize,
        write: &str,
        worker: &dyn Fn(u32) -> Result<Box<dyn Worker + 'w>, BenchError>,
    ) -> Result<SuiteRow, BenchError> {
        check_cancelled(self.setup.cancel)?;
        let workers: Vec<_> = (0..size.workers).map(worker).collect::<Result<_, _>>()?;
        let (cancel, query) = (self.setup.cancel, self.query);
        let began = Instant::now();
        let done: Vec<Result<Vec<f64>, BenchError>> = std::thread::scope(|scope| {
            let threads: Vec<_> = workers
                .into_iter()
                .map(|mut worker| {
                    scope.spawn(move || {
                        let mut times = Vec::new();
                        while times.len() < size.tests as usize && (times.is_empty() || began.elapsed() < LIMIT) {
                            check_cancelled(cancel)?;
                            let asked = Instant::now();
                            let mut session = worker.fresh()?;
                            session.run(query)?;
                            times.push(asked.elapsed().as_secs_f64() * 1000.0);
                            test(&mut session, write)?;
                        }
                        Ok(times)
                    })
                })
                .collect();
            let panicked = || Err(io::Error::other("a worker panicked").into());
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| panicked())).collect()
        });
        let seconds = began.elapsed().as_secs_f64();
        let fresh_ms: Vec<f64> = done.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
        let side = if way.starts_with("calve ") { Side::Calve } else { Side::Peer };
        (self.setup.say)(&format!("{} tests in {seconds:.1} s  {way}", fresh_ms.len()));
        Ok(SuiteRow { way, side, seconds, fresh_ms })
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
        succeeded(&process::measure_command(&mut command, self.setup.cancel)?, "mariadb-dump")?;
        Ok(file)
    }
}

/// Looks that no other test was here, and writes what none may see.
fn test(session: &mut Session, write: &str) -> Result<(), BenchError> {
    let found = session.run("SELECT count(*) FROM information_schema.tables WHERE table_name = 'calve_suite'")?;
    if found.as_deref() != Some("0") {
        return Err(io::Error::other("a test saw what another one has written").into());
    }
    session.run("CREATE TABLE calve_suite (a int)")?;
    session.run("INSERT INTO calve_suite VALUES (1)")?;
    session.run(write)?;
    Ok(())
}

fn succeeded(result: &process::ProcessResult, program: &str) -> Result<(), BenchError> {
    match result.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("{program} failed ({})", result.in_words())).into()),
    }
}

struct Marked<'a> {
    owned: OwnedServer,
    supervisor: &'a [PathBuf],
}

impl Worker for Marked<'_> {
    fn fresh(&mut self) -> Result<Session, BenchError> {
        program(self.supervisor, &["reset", &self.owned.record.name, "--to", MARK, "-q"])?;
        Ok(Session::open(&self.owned.record)?)
    }
}

/// A database in a server that all workers use.
struct Database {
    record: Record,
    name: String,
    strategy: &'static str,
}

impl Database {
    fn remake(&self) -> io::Result<()> {
        // Nobody may be connected to the database that is the template.
        let mut session = Session::open_database(&self.record, "template1")?;
        let Self { name, strategy, .. } = self;
        session.run(&format!("DROP DATABASE IF EXISTS {name}"))?;
        session.run(&format!("CREATE DATABASE {name} TEMPLATE {}{strategy}", self.record.address.database))?;
        Ok(())
    }
}

impl Worker for Database {
    fn fresh(&mut self) -> Result<Session, BenchError> {
        self.remake()?;
        Ok(Session::open_database(&self.record, &self.name)?)
    }
}

/// Two databases that take turns: one is made while the other is used.
struct Ahead {
    record: Record,
    ready: Receiver<io::Result<Database>>,
    used: Sender<Database>,
    in_use: Option<Database>,
}

impl Ahead {
    fn begin(record: &Record, number: u32) -> Self {
        let (tell, ready) = channel();
        let (used, remake) = channel::<Database>();
        for letter in ["a", "b"] {
            let name = format!("w{number}{letter}");
            let _ = used.send(Database { record: record.clone(), name, strategy: "" });
        }
        std::thread::spawn(move || {
            for database in remake {
                let made = database.remake().map(|()| database);
                if tell.send(made).is_err() {
                    return;
                }
            }
        });
        Self { record: record.clone(), ready, used, in_use: None }
    }
}

impl Worker for Ahead {
    fn fresh(&mut self) -> Result<Session, BenchError> {
        if let Some(database) = self.in_use.take() {
            let _ = self.used.send(database);
        }
        let database = self.ready.recv().map_err(io::Error::other)??;
        let session = Session::open_database(&self.record, &database.name)?;
        self.in_use = Some(database);
        Ok(session)
    }
}

/// A server of its own, whose databases are dropped and restored.
struct Restored {
    owned: OwnedServer,
    client: PathBuf,
    file: PathBuf,
}

impl Worker for Restored {
    fn fresh(&mut self) -> Result<Session, BenchError> {
        let mut command = std::process::Command::new(&self.client);
        command.args(["--no-defaults", "-uroot", "-S"]).arg(&self.owned.record.address.socket);
        command.stdin(fs_err::File::open(&self.file)?.into_parts().0).stdout(Stdio::null());
        succeeded(&process::measure_command(&mut command, &calve_core::Cancel::default())?, "mariadb")?;
        Ok(Session::open(&self.owned.record)?)
    }
}
