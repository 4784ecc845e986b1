//! A server as its starter sees it, by the connection to the supervisor that is started here.

use std::borrow::Cow;
use std::io::{self, BufReader};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use calve_core::CancelToken;
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use crate::engine::container::Container;
use crate::engine::{Purpose, ServerProgram};
use crate::error::{AtPath as _, Error, Result, unless_cancelled};
use crate::files::random;
use crate::files::runtime;
use crate::registry::template::{self, DatabaseTemplate};
use crate::registry::{self, Home, Record, RegistrySlot, Server};
use crate::server::messages::{Answer, Order, Origin, Ownership, Request, Spec, receive, send};
use crate::server::sweep;
use crate::sys;

/// Returns the memory of a process and its descendants. Memory that they share counts once. `None`: unknown.
pub fn memory_bytes(process: u32) -> Option<u64> {
    let own = sys::memory_bytes(process)?;
    // Descendants may end meanwhile.
    Some(own + sys::tree(process).into_iter().skip(1).filter_map(sys::memory_bytes).sum::<u64>())
}

/// Returns the first process of the server at the other end of a socket, even in a container. `None`: unknown.
pub fn first_process(socket: &UnixStream) -> Option<u32> {
    sys::listener(socket)
}

/// A started server, with the connection to its supervisor. With [`crate::Ownership::Caller`] the server ends when this
/// is dropped, or when its process ends in any way.
#[derive(Debug)]
pub struct OwnedServer {
    pub record: Record,
    pub(crate) home: Home,
    pub(crate) talk: BufReader<UnixStream>,
    /// `None` for a standby, whose supervisor is no child of this process.
    pub(crate) supervisor: Option<Child>,
}

impl OwnedServer {
    /// Leaves the server running on its own. Fails with the reason if it has ended.
    pub fn keep(mut self) -> Result<Record> {
        self.ask(Request::Keep)?;
        Ok(self.record)
    }

    /// Ends the server, and returns when it is gone. Fails with the reason if it had ended before.
    pub fn stop(mut self) -> Result<()> {
        self.ask(Request::Stop).map(drop)
    }

    /// Makes the supervisor end a command and its children if this process ends before them.
    pub fn tie(&self, command: &mut Command) -> Result<()> {
        let talk = self.talk.get_ref().try_clone().at("talk on", "a socket")?;
        sys::announce(command, talk, [r#"{"Command":"#, "}\n"]);
        Ok(())
    }

    pub(crate) fn finish(mut self, cancel: &CancelToken) -> Result<()> {
        let answer = converse(&mut self.talk, &Request::Finish, cancel)?;
        answer.ok_or_else(|| Error::SupervisorGone(self.record.server.name.clone()))?.into_result()?;
        let _ = self.supervisor.as_mut().map(Child::wait);
        Ok(())
    }

    fn ask(&mut self, request: Request) -> Result<Answer> {
        let answer = converse(&mut self.talk, &request, &CancelToken::default())?;
        answer.ok_or_else(|| registry::gone(&self.home, &self.record.server.name))?.into_result()
    }
}

pub(crate) fn spec_of(home: &Home, name: &str, slot: &RegistrySlot, template: DatabaseTemplate) -> Result<Spec> {
    let mut spec = new_spec(home, name, &slot.path, template.program)?;
    spec.container = template.image.as_ref().map(|image| Container::new(image, home, name)).transpose()?;
    spec.pool = Some(home.pool(&template.name));
    spec.purpose = Purpose::Serve;
    spec.origin = Origin::Template(template.slot);
    spec.record.server.template = Some(template.name);
    Ok(spec)
}

pub(crate) fn new_spec(home: &Home, name: &str, slot: &Path, program: ServerProgram) -> Result<Spec> {
    let directory = home.runtime.join(random::letters(8)?);
    let server = Server { name: name.to_owned(), engine: program.engine.clone(), ..Server::default() };
    Ok(Spec {
        record: Record { server, control: runtime::control(&directory), directory, ..Record::default() },
        program,
        slot: slot.to_path_buf(),
        logs: home.logs.clone(),
        owner: Ownership::Caller,
        ..Spec::default()
    })
}

pub(crate) struct Starter<'a> {
    /// The command that calls [`crate::supervise`].
    pub(crate) supervisor: &'a [PathBuf],
    pub(crate) cancel: &'a CancelToken,
}

impl Starter<'_> {
    fn spawn(&self, input: Stdio) -> Result<(Child, BufReader<UnixStream>)> {
        let [program, arguments @ ..] = self.supervisor else {
            return Err(Error::io("start", "", rustix::io::Errno::INVAL));
        };
        let (here, there) = UnixStream::pair().at("start", program)?;
        // Dropped on return, with its copy of the child's socket: that would hide the child's death.
        let mut command = Command::new(program);
        command.args(arguments).current_dir("/").stdin(input);
        command.stdout(Stdio::from(OwnedFd::from(there))).stderr(Stdio::null());
        Ok((command.spawn().at("start", program)?, BufReader::new(here)))
    }

    /// Syncs the file system of `path`. No signal ends that call, nor a process with a thread in it, so a child makes
    /// it, and is left behind if the wait is cancelled.
    pub(crate) fn sync(&self, path: &Path) -> Result<()> {
        let (mut child, mut talk) = self.spawn(Stdio::null())?;
        let answer = converse(&mut talk, &Order::Sync(path.into()), self.cancel)?;
        // The child may still wait for an order that could not be sent.
        drop(talk);
        let _ = child.wait();
        match answer {
            Some(answer) => answer.into_result().map(drop),
            // Ctrl-C at a terminal may have ended that process, too.
            None if self.cancel.is_cancelled() => Err(Error::Interrupted),
            None => Err(io::ErrorKind::UnexpectedEof).at("sync", path),
        }
    }
}

/// The interval of looks at a token, unless a cancelling signal interrupts the wait.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Runs a supervisor, and waits until its server is ready.
pub(crate) fn run(home: &Home, spec: &mut Spec, slot: RegistrySlot, starter: &Starter<'_>) -> Result<OwnedServer> {
    spec.record.isolated = spec.container.as_ref().is_none_or(Container::may_isolate);
    let made = registry::SocketsNote::write(&slot.path, &spec.record.directory).and_then(|()| {
        spec.container.as_ref().map_or(Ok(()), |container| container.note(&slot.path))?;
        if let Some(owned) = attempt(home, spec, &slot, starter)? {
            return Ok(owned);
        }
        spec.record.isolated = false;
        attempt(home, spec, &slot, starter)?.ok_or_else(|| Error::SupervisorGone(spec.record.server.name.clone()))
    });
    if made.is_err() {
        drop(slot);
        // A supervisor that could not even start has removed nothing.
        let _ = sweep::sweep(home);
        registry::forget_ending(home, &spec.record.server.name);
    }
    made.map_err(|error| match (error, &spec.record.server.template) {
        (Error::NoProgram { .. }, Some(template)) => Error::ProgramGone {
            program: spec.program.path.clone(),
            template: template.clone(),
            version: spec.program.version.clone(),
            origin: template::load(home, template).ok().and_then(|template| Some(template.origin?.reference)),
        },
        (error, _) => error,
    })
}

/// Starts a supervisor and its server. `None`: try again without namespaces.
fn attempt(home: &Home, spec: &Spec, slot: &RegistrySlot, starter: &Starter<'_>) -> Result<Option<OwnedServer>> {
    let lock = slot.lock.try_clone().at("lock", &slot.path)?;
    let (mut child, mut talk) = starter.spawn(Stdio::from(lock))?;
    let answered = converse(&mut talk, &Order::Serve(Cow::Borrowed(spec)), starter.cancel);
    let gone = || Error::SupervisorGone(spec.record.server.name.clone());
    let answered = answered.and_then(|answer| answer.ok_or_else(gone)?.into_result());
    if let Ok(Answer::Ready(ready)) = answered {
        return Ok(Some(OwnedServer { record: *ready, home: home.clone(), talk, supervisor: Some(child) }));
    }
    // A closed connection ends a supervisor, unless it just reported readiness. After its exit, all is cleaned up.
    drop(talk);
    if matches!(answered, Err(Error::Interrupted)) {
        let _ = kill_process(Pid::from_child(&child), Signal::TERM);
    }
    let _ = child.wait();
    answered.map(|_| None)
}

pub(crate) fn wait_for_word(talk: &BufReader<UnixStream>, cancel: &CancelToken) -> Result<()> {
    while talk.buffer().is_empty() && !sys::wait_for_any([talk.get_ref().as_fd()], LOOK_EVERY)[0] {
        unless_cancelled(cancel)?;
    }
    Ok(())
}

/// Sends a message to a supervisor, and waits for its answer. `None`: it hung up.
pub(crate) fn converse(
    talk: &mut BufReader<UnixStream>,
    message: &impl Serialize,
    cancel: &CancelToken,
) -> Result<Option<Answer>> {
    if send(talk.get_mut(), message).is_err() {
        return Ok(None);
    }
    wait_for_word(talk, cancel)?;
    Ok(receive(talk).ok().flatten())
}
