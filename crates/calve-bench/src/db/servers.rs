//! The servers that are compared: Calve's, by each strategy and in containers, and those started without Calve.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use calve_core::{CancelToken, Strategy};
use calve_db::{
    Address, BareData, BareServer, BareServers, Caller, CreateOptions, DatabaseTemplate, EngineKind, Error, Home,
    OwnedServer, PreparedBareServer,
};
use calve_receipt::bench::Side;

use super::client::Session;
use super::{DatabaseBench, start};
use crate::error::BenchError;
use crate::scratch::Scratch;

/// An image to run servers of the template from too.
pub struct ContainerImage<'a> {
    /// The image, which the runtime has.
    pub name: &'a str,
    /// The runtime; the first one that has the image, if none is named.
    pub runtime: Option<PathBuf>,
    /// The names of those that are looked for, the best first.
    pub runtimes: Vec<String>,
    /// The directories to look for them in.
    pub search: Vec<PathBuf>,
}

/// A way to a server with data of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Calve, by a strategy.
    Strategy(Strategy),
    /// Calve in a container of this runtime, beside local servers.
    Container(&'static str),
    /// Without Calve: on this machine, or in a container.
    Bare(Option<&'static str>, BareData),
}

/// In the order of the report.
const STRATEGIES: [Strategy; 4] = [Strategy::Copy, Strategy::Overlay, Strategy::Reflink, Strategy::Snapshot];

/// How long a server may take until it answers.
const PATIENCE: Duration = Duration::from_secs(120);

impl Way {
    pub(super) fn name(self) -> String {
        let (runtime, data) = match self {
            Self::Strategy(strategy) => return strategy.to_string(),
            Self::Container(runtime) => return format!("{runtime}: Calve"),
            Self::Bare(runtime, data) => (runtime, data),
        };
        let data = match data {
            BareData::Directory => "an existing directory",
            BareData::Image => "the data in the image",
            BareData::OverlayVolume => "a volume of type=overlay",
            BareData::OverlayBind => "--volume DIR:DIR:O",
        };
        format!("{}: {data}", runtime.unwrap_or("the server alone"))
    }

    pub(super) fn side(self) -> Side {
        if matches!(self, Self::Bare(..)) { Side::Peer } else { Side::Calve }
    }

    /// Returns whether the server writes to the file system of the templates, and not to the runtime's storage.
    pub(super) fn writes_here(self) -> bool {
        !matches!(self, Self::Bare(_, BareData::Image | BareData::OverlayBind))
    }

    pub(super) fn strategy(self) -> Option<Strategy> {
        match self {
            Self::Strategy(strategy) => Some(strategy),
            _ => None,
        }
    }
}

/// The sources of all servers.
pub(super) struct Servers<'a> {
    bench: &'a DatabaseBench<'a>,
    engine: EngineKind,
    bare: BareServers<'a>,
    contained: Option<ContainerServers<'a>>,
}

/// The same template for servers in containers.
struct ContainerServers<'a> {
    home: Home,
    runtime: &'static str,
    bare: BareServers<'a>,
}

/// A server that only has to be started.
pub(super) enum PreparedServer {
    /// Calve prepares it while it starts it.
    Calve(Way),
    Bare(Box<PreparedBareServer>),
}

pub(super) enum Server {
    Calve(Box<OwnedServer>),
    Bare(Box<BareServer>),
}

impl<'a> Servers<'a> {
    /// Makes the template for containers too, if they are wanted.
    pub(super) fn new(
        bench: &'a DatabaseBench<'a>,
        engine: EngineKind,
        template: &DatabaseTemplate,
        scratch: &Scratch<'_>,
    ) -> Result<Self, BenchError> {
        let bare = BareServers::new(bench.home, bench.home, bench.template)?;
        let contained =
            bench.image.as_ref().map(|image| ContainerServers::new(bench, image, template, scratch)).transpose()?;
        Ok(Self { bench, engine, bare, contained })
    }

    /// Returns the ways that there are, in the order of the report.
    pub(super) fn ways(&self) -> Vec<Way> {
        let bare = |servers: &BareServers<'_>| {
            let runtime = servers.runtime();
            servers.ways().iter().map(move |data| Way::Bare(runtime, *data)).collect::<Vec<Way>>()
        };
        let mut ways: Vec<Way> = STRATEGIES.into_iter().map(Way::Strategy).collect();
        ways.extend(bare(&self.bare));
        if let Some(contained) = &self.contained {
            ways.push(Way::Container(contained.runtime));
            ways.extend(bare(&contained.bare));
        }
        ways
    }

    /// Prepares a server, which is not timed.
    pub(super) fn prepare(&mut self, way: Way) -> Result<PreparedServer, Error> {
        let Way::Bare(runtime, data) = way else { return Ok(PreparedServer::Calve(way)) };
        let servers = match &mut self.contained {
            Some(contained) if runtime.is_some() => &mut contained.bare,
            _ => &mut self.bare,
        };
        Ok(PreparedServer::Bare(Box::new(servers.prepare(data, self.bench.setup.cancel)?)))
    }

    pub(super) fn start(&self, prepared: PreparedServer) -> Result<Server, Error> {
        match prepared {
            PreparedServer::Calve(way) => {
                let contained = self.contained.as_ref().filter(|_| matches!(way, Way::Container(_)));
                let home = contained.map_or(self.bench.home, |contained| &contained.home);
                start(self.bench, home, way.strategy()).map(|owned| Server::Calve(Box::new(owned)))
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

    /// Removes what was made for all of them.
    pub(super) fn finish(self) -> Result<(), Error> {
        self.contained.map_or(Ok(()), |contained| contained.bare.finish())?;
        self.bare.finish()
    }

    /// Deletes what earlier servers have left to be deleted.
    pub(super) fn delete_trash(&self) -> Result<(), Error> {
        let homes = std::iter::once(self.bench.home).chain(self.contained.as_ref().map(|contained| &contained.home));
        for home in homes {
            calve_db::delete_trash(&calve_db::sweep(home)?)?;
        }
        Ok(())
    }
}

impl<'a> ContainerServers<'a> {
    /// Takes the template's data over, for an image, in a home in `scratch`.
    fn new(
        bench: &'a DatabaseBench<'a>,
        image: &ContainerImage<'_>,
        template: &DatabaseTemplate,
        scratch: &Scratch<'_>,
    ) -> Result<Self, BenchError> {
        let home = bench.home.elsewhere(&scratch.path().join("home"));
        let mut options = CreateOptions::default();
        options.name = template.name.clone();
        options.engine = Some(template.engine.clone());
        options.from = Some(template.data_directory());
        options.image = Some(image.name.to_owned());
        options.runtime.clone_from(&image.runtime);
        options.runtimes.clone_from(&image.runtimes);
        options.search.clone_from(&image.search);
        options.directory = scratch.path().to_path_buf();
        let cancel: &CancelToken = bench.setup.cancel;
        let mut caller = Caller { say: &mut |_| (), run: &mut |_| Ok(None), cancel };
        calve_db::create_template(&home, &options, bench.supervisor, &mut caller)?;
        let bare = BareServers::new(bench.home, &home, &template.name)?;
        let runtime = bare.runtime().ok_or_else(|| io::Error::other("the template is in no container"))?;
        Ok(Self { home, runtime, bare })
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
