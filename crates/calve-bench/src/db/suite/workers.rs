//! The ways of a worker to a clean state.

use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use calve_db::{OwnedServer, Record};

use super::super::client::Session;
use super::super::{DatabaseBench, program};
use super::{SuiteWorker, contents, succeeded};
use crate::error::BenchError;
use crate::process;

const MARK: &str = "bench";

/// A server of its own, which goes back to its mark.
pub(super) struct MarkWorker<'a> {
    owned: OwnedServer,
    supervisor: &'a [PathBuf],
}

impl<'a> MarkWorker<'a> {
    pub(super) fn begin(bench: &'a DatabaseBench<'_>) -> Result<Box<dyn SuiteWorker + 'a>, BenchError> {
        let owned = bench.start(None)?;
        contents::prepare(&mut Session::open(&owned.record)?)?;
        calve_db::mark(bench.home, &owned.record.name, MARK)?;
        Ok(Box::new(Self { owned, supervisor: bench.supervisor }))
    }
}

impl SuiteWorker for MarkWorker<'_> {
    fn fresh(&mut self) -> Result<Session, BenchError> {
        program(self.supervisor, &["reset", &self.owned.record.name, "--to", MARK, "-q"])?;
        Ok(Session::open(&self.owned.record)?)
    }
}

/// A database in a server that all workers use.
pub(super) struct Database {
    record: Record,
    name: String,
    strategy: &'static str,
}

impl Database {
    pub(super) fn named(record: &Record, name: String, strategy: &'static str) -> Self {
        Self { record: record.clone(), name, strategy }
    }

    fn remake(&self) -> io::Result<()> {
        // Nobody may be connected to the database that is the template.
        let mut session = Session::open_database(&self.record, "template1")?;
        let Self { name, strategy, .. } = self;
        session.run(&format!("DROP DATABASE IF EXISTS {name}"))?;
        session.run(&format!("CREATE DATABASE {name} TEMPLATE {}{strategy}", self.record.address.database))?;
        Ok(())
    }
}

impl SuiteWorker for Database {
    fn fresh(&mut self) -> Result<Session, BenchError> {
        self.remake()?;
        Ok(Session::open_database(&self.record, &self.name)?)
    }
}

impl Drop for Database {
    /// Drops the database, so that the next way has the room that this one took.
    fn drop(&mut self) {
        let session = Session::open_database(&self.record, "template1");
        let _ =
            session.and_then(|mut session| session.run(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name)));
    }
}

/// Two databases that take turns: one is made while the other is used.
pub(super) struct PreparedWorker {
    record: Record,
    ready: Receiver<io::Result<Database>>,
    /// `None` from the end on.
    used: Option<Sender<Database>>,
    in_use: Option<Database>,
    maker: Option<JoinHandle<()>>,
}

impl PreparedWorker {
    pub(super) fn begin(record: &Record, number: u32) -> Self {
        let (tell, ready) = channel();
        let (used, remake) = channel::<Database>();
        for letter in ["a", "b"] {
            let name = format!("w{number}{letter}");
            let _ = used.send(Database::named(record, name, ""));
        }
        let maker = std::thread::spawn(move || {
            for database in remake {
                let made = database.remake().map(|()| database);
                if tell.send(made).is_err() {
                    return;
                }
            }
        });
        Self { record: record.clone(), ready, used: Some(used), in_use: None, maker: Some(maker) }
    }
}

impl Drop for PreparedWorker {
    /// Ends the thread that makes databases: it ends when nobody gives it a database any more.
    fn drop(&mut self) {
        self.used = None;
        let _ = self.maker.take().map(JoinHandle::join);
    }
}

impl SuiteWorker for PreparedWorker {
    fn fresh(&mut self) -> Result<Session, BenchError> {
        if let (Some(database), Some(used)) = (self.in_use.take(), &self.used) {
            let _ = used.send(database);
        }
        let database = self.ready.recv().map_err(io::Error::other)??;
        let session = Session::open_database(&self.record, &database.name)?;
        self.in_use = Some(database);
        Ok(session)
    }
}

/// A server of its own, whose databases are dropped and restored.
pub(super) struct RestoreWorker {
    pub(super) owned: OwnedServer,
    pub(super) client: PathBuf,
    pub(super) file: PathBuf,
}

impl SuiteWorker for RestoreWorker {
    fn fresh(&mut self) -> Result<Session, BenchError> {
        let mut command = std::process::Command::new(&self.client);
        command.args(["--no-defaults", "-uroot", "-S"]).arg(&self.owned.record.address.socket);
        command.stdin(fs_err::File::open(&self.file)?.into_parts().0).stdout(Stdio::null());
        succeeded(&process::measure_command(&mut command, &calve_core::CancelToken::default())?, "mariadb")?;
        Ok(Session::open(&self.owned.record)?)
    }
}
