//! The servers that are compared: Calve's, by each strategy, and those started without Calve.

use std::time::{Duration, Instant};

use calve_core::Strategy;
use calve_db::{Address, BareServer, BareServers, EngineKind, Error, OwnedServer, PreparedBareServer};
use calve_receipt::bench::Side;

use super::DatabaseBench;
use super::client::Session;
use crate::error::BenchError;

/// A way to a server with data of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Calve, by a strategy.
    Strategy(Strategy),
    /// Without Calve, on an existing directory: on this machine, or in a container of this runtime.
    Bare(Option<&'static str>),
}

/// In the order of the report.
const STRATEGIES: [Strategy; 4] = [Strategy::Copy, Strategy::Overlay, Strategy::Reflink, Strategy::Snapshot];

/// How long a server may take until it answers.
const PATIENCE: Duration = Duration::from_secs(120);

impl Way {
    pub(super) fn name(self) -> String {
        match self {
            Self::Strategy(strategy) => strategy.to_string(),
            Self::Bare(runtime) => format!("{}: an existing directory", runtime.unwrap_or("the server alone")),
        }
    }

    pub(super) fn side(self) -> Side {
        if matches!(self, Self::Bare(..)) { Side::Peer } else { Side::Calve }
    }

    pub(super) fn strategy(self) -> Option<Strategy> {
        match self {
            Self::Strategy(strategy) => Some(strategy),
            Self::Bare(_) => None,
        }
    }
}

/// The sources of all servers.
pub(super) struct Servers<'a> {
    bench: &'a DatabaseBench<'a>,
    engine: EngineKind,
    bare: BareServers<'a>,
}

/// A server that only has to be started.
pub(super) enum PreparedServer {
    /// Calve prepares it while it starts it.
    Calve(Strategy),
    Bare(Box<PreparedBareServer>),
}

pub(super) enum Server {
    Calve(Box<OwnedServer>),
    Bare(Box<BareServer>),
}

impl<'a> Servers<'a> {
    pub(super) fn new(bench: &'a DatabaseBench<'a>, engine: EngineKind) -> Result<Self, BenchError> {
        let bare = BareServers::new(bench.home, bench.template)?;
        Ok(Self { bench, engine, bare })
    }

    /// Returns the ways that there are, in the order of the report.
    pub(super) fn ways(&self) -> Vec<Way> {
        STRATEGIES.into_iter().map(Way::Strategy).chain([Way::Bare(self.bare.runtime())]).collect()
    }

    /// Prepares a server, which is not timed.
    pub(super) fn prepare(&self, way: Way) -> Result<PreparedServer, Error> {
        Ok(match way {
            Way::Strategy(strategy) => PreparedServer::Calve(strategy),
            Way::Bare(_) => PreparedServer::Bare(Box::new(self.bare.prepare(self.bench.setup.cancel)?)),
        })
    }

    pub(super) fn start(&self, prepared: PreparedServer) -> Result<Server, Error> {
        match prepared {
            PreparedServer::Calve(strategy) => {
                self.bench.start(Some(strategy)).map(|owned| Server::Calve(Box::new(owned)))
            }
            PreparedServer::Bare(prepared) => {
                prepared.start(self.bench.setup.cancel).map(|bare| Server::Bare(Box::new(bare)))
            }
        }
    }

    /// Opens a session, as soon as the server answers.
    pub(super) fn open(&self, server: &mut Server) -> Result<Session, BenchError> {
        let began = Instant::now();
        loop {
            let opened = Session::open_at(self.engine, server.address());
            let Server::Bare(bare) = &mut *server else { return Ok(opened?) };
            match opened {
                Ok(session) => return Ok(session),
                Err(error) if began.elapsed() > PATIENCE => return Err(error.into()),
                Err(_) => bare.check()?,
            }
            crate::setup::check_cancelled(self.bench.setup.cancel)?;
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Deletes what earlier servers have left to be deleted.
    pub(super) fn delete_trash(&self) -> Result<(), Error> {
        calve_db::delete_trash(&calve_db::sweep(self.bench.home)?)
    }
}

impl Server {
    pub(super) fn address(&self) -> &Address {
        match self {
            Self::Calve(owned) => &owned.record.address,
            Self::Bare(bare) => bare.address(),
        }
    }

    /// Returns the time of its clone in milliseconds, if Calve has made one.
    pub(super) fn clone_ms(&self) -> Option<f64> {
        match self {
            Self::Calve(owned) => Some(owned.record.clone_ms),
            Self::Bare(_) => None,
        }
    }

    /// Ends it. Returns a server whose files are still to be removed: Calve too removes those of its own servers later.
    pub(super) fn stop(self) -> Result<Option<Box<BareServer>>, Error> {
        match self {
            Self::Calve(owned) => owned.stop().map(|_| None),
            Self::Bare(mut bare) => bare.stop().map(|()| Some(bare)),
        }
    }
}
