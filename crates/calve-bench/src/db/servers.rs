//! The servers that are compared: Calve's, by each strategy, and those started without Calve.

use std::time::{Duration, Instant};

use calve_db::{Address, BaselineServer, BaselineServers, EngineKind, Error, OwnedServer};

use super::bench::DatabaseBench;
use super::client::Session;
use crate::error::BenchError;
use crate::scratch::Scratch;

/// Limit for a server to answer.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) struct Servers<'a> {
    pub(super) bench: &'a DatabaseBench<'a>,
    pub(super) scratch: &'a Scratch<'a>,
    pub(super) write: &'a str,
    engine: EngineKind,
    pub(super) baseline: BaselineServers<'a>,
}

pub(super) enum Server {
    Calve(Box<OwnedServer>),
    Baseline(Box<BaselineServer>),
}

impl<'a> Servers<'a> {
    pub(super) fn new(
        bench: &'a DatabaseBench<'a>,
        scratch: &'a Scratch<'a>,
        write: &'a str,
        engine: EngineKind,
    ) -> Result<Self, BenchError> {
        let baseline = BaselineServers::new(bench.home, bench.template)?;
        Ok(Self { bench, scratch, write, engine, baseline })
    }

    /// Opens a session, as soon as the server answers.
    pub(super) fn open(&self, server: &mut Server) -> Result<Session, BenchError> {
        let began = Instant::now();
        loop {
            let opened = Session::open_at(self.engine, server.address());
            let Server::Baseline(baseline) = &mut *server else { return Ok(opened?) };
            match opened {
                Ok(session) => return Ok(session),
                Err(error) if began.elapsed() > PATIENCE => return Err(error.into()),
                Err(_) => baseline.check()?,
            }
            self.bench.setup.cancel.check()?;
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(super) fn delete_trash(&self) -> Result<(), Error> {
        calve_db::delete_trash(&calve_db::sweep(self.bench.home)?, self.bench.setup.cancel)
    }
}

impl Server {
    pub(super) fn address(&self) -> &Address {
        match self {
            Self::Calve(owned) => &owned.record.server.address,
            Self::Baseline(baseline) => &baseline.address,
        }
    }

    /// Ends the server. A baseline is returned with its files, to be removed untimed: Calve too removes its own later.
    pub(super) fn stop(self) -> Result<Option<Box<BaselineServer>>, Error> {
        match self {
            Self::Calve(owned) => owned.stop().map(|_| None),
            Self::Baseline(mut baseline) => baseline.stop().map(|()| Some(baseline)),
        }
    }
}
