//! A server as its starter sees it: the connection to its supervisor, which this starts.

use std::io::BufReader;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use calve_core::CancelToken;
use rustix::process::{Pid, Signal, kill_process};

use crate::container::Container;
use crate::engine::Purpose;
use crate::error::{Error, Result};
use crate::files::account::Account;
use crate::files::random;
use crate::messages::{Answer, Origin, Owner, Request, Spec, receive, send};
use crate::operation::Operation;
use crate::registry::{self, Home, Record, RegistryPlace};
use crate::template::DatabaseTemplate;
use crate::{runtime, sweep, sys};

/// Returns the memory of a process and of its descendants, what they share with each other counted once; `None` if that cannot be told.
pub fn memory_bytes(process: u32) -> Option<u64> {
    let own = sys::memory_bytes(process)?;
    // Others may end meanwhile.
    Some(own + sys::tree(process).into_iter().skip(1).filter_map(sys::memory_bytes).sum::<u64>())
}

/// Returns the first process of the server at the other end of a socket, also of one in a container; `None` if that cannot be told.
pub fn first_process(socket: &UnixStream) -> Option<u32> {
    sys::listener(socket)
}

/// A server that was started, and the connection to its supervisor.
///
/// With [`crate::Ownership::Caller`] the server ends when this is dropped, or when the process that has it ends in any way.
#[derive(Debug)]
pub struct OwnedServer {
    pub record: Record,
    pub(crate) talk: BufReader<UnixStream>,
    /// `None` when it was a standby: its supervisor is no child of this process.
    pub(crate) supervisor: Option<Child>,
}

impl OwnedServer {
    /// Leaves the server running on its own.
    pub fn keep(mut self) -> Result<Record> {
        self.ask(Request::Keep)?;
        Ok(self.record)
    }

    /// Ends the server, and returns when it is gone.
    pub fn stop(mut self) -> Result<()> {
        self.ask(Request::Stop).map(drop)
    }

    /// Makes the supervisor end a command and its children, should this process end before them.
    pub fn tie(&self, command: &mut Command) -> Result<()> {
        let failed = |error| Error::io(Operation::Talk, "a socket", error);
        let talk = self.talk.get_ref().try_clone().map_err(failed)?;
        sys::announce(command, talk, [r#"{"Command":"#, "}\n"]);
        Ok(())
    }

    /// Stops the server in order and leaves its files.
    pub(crate) fn finish(mut self, cancel: &CancelToken) -> Result<()> {
        let gone = || Error::SupervisorGone(self.record.name.clone());
        send(self.talk.get_mut(), &Request::Finish).map_err(|_| gone())?;
        wait_for_word(&self.talk, cancel)?;
        receive::<Answer>(&mut self.talk).ok().flatten().ok_or_else(gone)?.into_result()?;
        let _ = self.supervisor.as_mut().map(Child::wait);
        Ok(())
    }

    fn ask(&mut self, request: Request) -> Result<Answer> {
        let gone = || Error::SupervisorGone(self.record.name.clone());
        send(self.talk.get_mut(), &request).map_err(|_| gone())?;
        receive::<Answer>(&mut self.talk).ok().flatten().ok_or_else(gone)?.into_result()
    }
}

/// Returns the specification of a server of a template, with nothing special about it.
pub(crate) fn spec_of(home: &Home, name: &str, place: &RegistryPlace, template: DatabaseTemplate) -> Result<Spec> {
    let spec = new_spec(home, name, &place.path, &template.engine, &template.program, template.account)?;
    let container = template.image.as_ref().map(|image| Container::new(image, home, name)).transpose()?;
    Ok(Spec {
        container,
        pool: Some(home.pool(&template.name)),
        template: Some(template.name),
        version: template.version,
        purpose: Purpose::Serve,
        notifies: template.notifies,
        origin: Origin::Template(template.place),
        ..spec
    })
}

/// Returns the common part of all servers.
pub(crate) fn new_spec(
    home: &Home,
    name: &str,
    place: &Path,
    engine: &str,
    program: &Path,
    account: Account,
) -> Result<Spec> {
    let directory = home.runtime().join(random::letters(8)?);
    Ok(Spec {
        name: name.to_owned(),
        template: None,
        engine: engine.to_owned(),
        program: program.to_path_buf(),
        container: None,
        version: String::new(),
        account,
        place: place.to_path_buf(),
        logs: home.logs(),
        control: runtime::control(&directory),
        directory,
        origin: Origin::Init,
        purpose: Purpose::Build,
        strategy: None,
        tcp: None,
        ttl: None,
        owner: Owner::Starter,
        isolate: true,
        whole: false,
        notifies: false,
        pool: None,
        waits: false,
        durable: None,
    })
}

/// The process that wants a server.
pub(crate) struct Starter<'a> {
    /// The command that calls [`crate::supervise`].
    pub(crate) supervisor: &'a [PathBuf],
    pub(crate) cancel: &'a CancelToken,
}

/// How often a token is looked at, unless a signal that cancels interrupts the wait.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Runs a supervisor, and waits until its server is ready.
pub(crate) fn run(home: &Home, spec: &mut Spec, place: RegistryPlace, starter: &Starter<'_>) -> Result<OwnedServer> {
    spec.isolate = spec.container.as_ref().is_none_or(Container::may_isolate);
    let made = sweep::note_sockets(&place.path, &spec.directory).and_then(|()| {
        spec.container.as_ref().map_or(Ok(()), |container| container.note(&place.path))?;
        if let Some(owned) = attempt(spec, &place, starter)? {
            return Ok(owned);
        }
        spec.isolate = false;
        attempt(spec, &place, starter)?.ok_or_else(|| Error::SupervisorGone(spec.name.clone()))
    });
    if made.is_err() {
        drop(place);
        // A supervisor that could not even start has removed nothing.
        let _ = sweep::sweep(home);
        registry::forget_ending(home, &spec.name);
    }
    made
}

/// Starts a supervisor and its server once. `None`: it has to be tried again, without namespaces.
fn attempt(spec: &Spec, place: &RegistryPlace, starter: &Starter<'_>) -> Result<Option<OwnedServer>> {
    let [program, arguments @ ..] = starter.supervisor else {
        return Err(Error::io(Operation::Start, "", rustix::io::Errno::INVAL));
    };
    let failed = |error| Error::io(Operation::Start, program, error);
    let (here, there) = UnixStream::pair().map_err(failed)?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir("/");
    command.stdin(Stdio::from(place.lock.try_clone().map_err(failed)?));
    command.stdout(Stdio::from(OwnedFd::from(there))).stderr(Stdio::null());
    let mut child = command.spawn().map_err(failed)?;
    // The child's end must be closed here, or its end would not be noticed.
    drop(command);
    let mut talk = BufReader::new(here);
    let answered = converse(&mut talk, spec, starter).and_then(Answer::into_result);
    if let Ok(Answer::Ready(ready)) = answered {
        return Ok(Some(OwnedServer { record: *ready, talk, supervisor: Some(child) }));
    }
    // Closed, it knows that nobody wants the server, unless it has just said that this is ready. When it has ended, it has cleaned up.
    drop(talk);
    if matches!(answered, Err(Error::Interrupted)) {
        let _ = kill_process(Pid::from_child(&child), Signal::TERM);
    }
    let _ = child.wait();
    answered.map(|_| None)
}

/// Waits until the supervisor says something, or hangs up.
pub(crate) fn wait_for_word(talk: &BufReader<UnixStream>, cancel: &CancelToken) -> Result<()> {
    while talk.buffer().is_empty() && !sys::wait_for_any([talk.get_ref().as_fd()], LOOK_EVERY)[0] {
        if cancel.is_cancelled() {
            return Err(Error::Interrupted);
        }
    }
    Ok(())
}

/// Says what is wanted, and waits for the answer.
fn converse(talk: &mut BufReader<UnixStream>, spec: &Spec, starter: &Starter<'_>) -> Result<Answer> {
    let gone = || Error::SupervisorGone(spec.name.clone());
    send(talk.get_mut(), spec).map_err(|_| gone())?;
    wait_for_word(talk, starter.cancel)?;
    receive(talk).map_err(|_| gone())?.ok_or_else(gone)
}
