//! Starting a server: a place in the registry, a supervisor, and its answer.

use std::io::BufReader;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use calve_core::Strategy;

use crate::copy_up::Copied;
use crate::engine::Purpose;
use crate::error::{Error, Result};
use crate::home::Home;
use crate::registry::{self, Place, Record};
use crate::spec::{Answer, Origin, Owner, Ready, Request, Spec, Starting, answer, send};
use crate::{name, sweep, template};

/// How a server is to be started.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct StartOptions {
    /// Its name; one is made up when there is none.
    pub name: Option<String>,
    /// A port on 127.0.0.1 too: this one, or any that is free (0).
    pub tcp: Option<u16>,
    /// How long it may stay; `None` is for good.
    pub ttl: Option<Duration>,
    /// Whose end is its end.
    pub owner: Ownership,
    /// Use this strategy or none.
    pub strategy: Option<Strategy>,
    /// Watch the copies of an overlay also where they cost nothing, because blocks are shared.
    pub trace: bool,
}

/// Whose end is a server's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ownership {
    /// Nobody's.
    #[default]
    Nobody,
    /// The end of the returned [`Owned`].
    Caller,
    /// The end of this process.
    Process(u32),
}

/// A server that was started, and the connection to its supervisor.
///
/// With [`Ownership::Caller`] the server ends when this is dropped, or when the process that has it ends in any way.
#[derive(Debug)]
pub struct Owned {
    /// The server.
    pub record: Record,
    pub(crate) neutralised: Vec<String>,
    talk: BufReader<UnixStream>,
    supervisor: Child,
}

impl Owned {
    /// Leaves the server running on its own.
    pub fn keep(mut self) -> Result<Record> {
        self.ask(Request::Keep)?;
        Ok(self.record)
    }

    /// Ends the server, and returns when it is gone. Says what its overlay has copied as a whole.
    pub fn stop(mut self) -> Result<Vec<Copied>> {
        match self.ask(Request::Stop)? {
            Answer::Stopped { copied } => Ok(copied),
            _ => Ok(Vec::new()),
        }
    }

    /// Stops the server in order and leaves its files.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.ask(Request::Finish)?;
        let _ = self.supervisor.wait();
        Ok(())
    }

    fn ask(&mut self, request: Request) -> Result<Answer> {
        let gone = || Error::SupervisorGone(self.record.name.clone());
        send(self.talk.get_mut(), &request).map_err(|_| gone())?;
        answer(&mut self.talk, &mut |_| ()).ok().flatten().ok_or_else(gone)?.into_result()
    }
}

/// Starts a server on a clone of the template. `supervisor` is the command that calls [`crate::supervise`] with its standard input
/// and output. `tell` is called before the server is started, should files be copied as a whole when it opens them.
pub fn start(
    home: &Home,
    template: &str,
    options: &StartOptions,
    supervisor: &[PathBuf],
    tell: &mut dyn FnMut(&Starting),
) -> Result<Owned> {
    let template = template::load(home, template)?;
    let name = match &options.name {
        Some(name) => {
            name::check(name)?;
            name.clone()
        }
        None => format!("{}-{}", template.name.chars().take(40).collect::<String>(), name::random(6)?),
    };
    home.prepare()?;
    let place = registry::reserve(home, &name)?;
    let mut spec = Spec {
        template: Some(template.name.clone()),
        purpose: Purpose::Serve,
        strategy: options.strategy.map(|strategy| strategy.to_string()),
        tcp: options.tcp,
        ttl: options.ttl,
        owner: match options.owner {
            Ownership::Nobody => Owner::Nobody,
            Ownership::Caller => Owner::Starter,
            Ownership::Process(pid) => Owner::Process(pid),
        },
        notifies: template.notifies,
        trace: options.trace,
        ..new_spec(home, &name, &place.path, &template.engine, &template.program, template.account)?
    };
    spec.origin = Origin::Template(template.place);
    run(home, &mut spec, place, supervisor, tell)
}

/// What all servers have in common.
pub(crate) fn new_spec(
    home: &Home,
    name: &str,
    place: &Path,
    engine: &str,
    program: &Path,
    account: crate::account::Account,
) -> Result<Spec> {
    let directory = home.runtime().join(name::random(8)?);
    Ok(Spec {
        name: name.to_owned(),
        template: None,
        engine: engine.to_owned(),
        program: program.to_path_buf(),
        account,
        place: place.to_path_buf(),
        logs: home.logs(),
        control: sweep::control_path(&directory),
        directory,
        origin: Origin::Init,
        purpose: Purpose::Build,
        strategy: None,
        tcp: None,
        ttl: None,
        owner: Owner::Starter,
        isolate: true,
        whole: false,
        trace: false,
        notifies: false,
    })
}

/// Runs a supervisor, and waits until its server is ready.
pub(crate) fn run(
    home: &Home,
    spec: &mut Spec,
    place: Place,
    supervisor: &[PathBuf],
    tell: &mut dyn FnMut(&Starting),
) -> Result<Owned> {
    let noted = sweep::note_sockets(&place.path, &spec.directory);
    match noted.and_then(|()| attempt(spec, &place, supervisor, tell)) {
        Ok(Some(owned)) => Ok(owned),
        Ok(None) => {
            spec.isolate = false;
            attempt(spec, &place, supervisor, tell)?.ok_or_else(|| Error::SupervisorGone(spec.name.clone()))
        }
        Err(error) => {
            drop(place);
            // A supervisor that could not even start has removed nothing.
            let _ = sweep::sweep(home);
            Err(error)
        }
    }
}

/// `None`: again, without namespaces.
fn attempt(
    spec: &Spec,
    place: &Place,
    supervisor: &[PathBuf],
    tell: &mut dyn FnMut(&Starting),
) -> Result<Option<Owned>> {
    let [program, arguments @ ..] = supervisor else { return Err(Error::Usage("no supervisor is named".into())) };
    let failed = |error| Error::io("start", program, error);
    let (mut here, there) = UnixStream::pair().map_err(failed)?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir("/");
    command.stdin(Stdio::from(place.lock.try_clone().map_err(failed)?));
    command.stdout(Stdio::from(OwnedFd::from(there))).stderr(Stdio::null());
    let child = command.spawn().map_err(failed)?;
    // The child's end must be closed here, or its end would not be noticed.
    drop(command);
    let gone = |_| Error::SupervisorGone(spec.name.clone());
    send(&mut here, spec).map_err(gone)?;
    let mut talk = BufReader::new(here);
    let answer = answer(&mut talk, tell).map_err(gone)?;
    match answer.ok_or_else(|| Error::SupervisorGone(spec.name.clone()))?.into_result()? {
        Answer::Ready(ready) => {
            let Ready { record, neutralised, .. } = *ready;
            Ok(Some(Owned { record, neutralised, talk, supervisor: child }))
        }
        _ => Ok(None),
    }
}
