//! The supervisor: a process that starts one server, and removes it when its time has come. Its first thread starts the
//! server, because the kernel ends the server with the thread that started it.

mod claim;
mod directories;
mod durable;
mod mark;
mod prepared;
mod requests;
mod reset;

use std::fs::File;
use std::io::BufReader;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use calve_core::{CancelToken, RemovalWait};

use crate::engine::address::Address;
use crate::engine::{self, Engine, Refusal};
use crate::error::{AtPath as _, EndReason, Error, Remedy, Result};
use crate::files::directory::Directory;
use crate::files::{log, private, random, runtime, trash};
use crate::registry::{self, Ending, Record, Server, unix_now};
use crate::server::launch::{HeldPort, LaunchRequest, Owners, ResetData, RunningServer, launch, unless_left};
use crate::server::messages::{Answer, Order, Origin, Ownership, Request, Spec, receive, send};
use crate::server::sweep;
use crate::service::{self, LossRule};
use crate::supervise::directories::{OwnSlot, Preparations, ServerDirectories, moved};
use crate::supervise::requests::{Requests, is_closed};
use crate::sys::{self, ProcessHandle};

/// The longest time for a server to write everything and end.
const ORDERLY_END: Duration = Duration::from_secs(600);
/// The longest time on a full disk, where MariaDB waits until there is space.
const END_ON_A_FULL_DISK: Duration = Duration::from_secs(5);
/// The longest wait for the end of a server that takes no clients.
const SHUTTING_DOWN: Duration = Duration::from_secs(10);
const WARM_IN: Duration = Duration::from_secs(2);
/// The interval of looks at things without a descriptor.
const TICK: Duration = Duration::from_secs(1);

/// Supervises one server until it is gone.
///
/// `lock`: the lock on its slot in the registry. `talk`: a socket to the process that wants the server, which sends the
/// specification. For a process with one thread that does nothing else.
pub fn supervise(lock: OwnedFd, talk: OwnedFd, cancel: &CancelToken) -> Result<()> {
    // Leaves the terminal and its signals.
    let _ = rustix::process::setsid();
    let mut starter = UnixStream::from(talk);
    let failed = |error| Error::io("talk on", "a socket", error);
    let mut talk = BufReader::new(starter.try_clone().map_err(failed)?);
    let mut spec = match receive::<Order<'_>>(&mut talk).map_err(failed)? {
        None => return Ok(()),
        Some(Order::Sync(path)) => {
            let synced = sys::sync_file_system(&path).at("sync", &*path);
            return send(&mut starter, &synced.map_or_else(Answer::failed, |()| Answer::Done)).map_err(failed);
        }
        Some(Order::Serve(spec)) => spec.into_owned(),
    };
    let left_mounts = match spec.record.isolated.then(|| sys::isolate(&spec.needed())).transpose() {
        Ok(left) => left.flatten(),
        Err(_) => return send(&mut starter, &Answer::NoNamespaces).map_err(failed),
    };
    spec.record.isolated = left_mounts.is_some();
    sys::adopt_orphans();
    let lock = File::from(lock);
    registry::sign(&lock);
    let directory = Directory::open(&spec.slot);
    let begun = match &directory {
        Ok(directory) => Supervisor::begin(&spec, directory, talk, cancel),
        Err(_) => Err(moved(&spec.slot)),
    };
    let (mut supervisor, ready) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            let error = log::added_to(error, spec.files());
            clear(&spec);
            return send(&mut starter, &Answer::failed(error)).map_err(failed);
        }
    };
    // The starter may be gone.
    let end = match send(&mut starter, &Answer::Ready(Box::new(ready))) {
        Ok(()) => supervisor.serve(left_mounts),
        Err(_) => End::Unasked(EndReason::OwnerEnded),
    };
    supervisor.end(end);
    Ok(())
}

/// Removes the remains of a failed start.
fn clear(spec: &Spec) {
    if let Ok(engine) = engine::named(&spec.record.server.engine) {
        sweep::end_children(engine, Some(spec.files()), None, spec.record.isolated);
    }
    let _ = trash::remove(&spec.record.directory, RemovalWait::Yes);
    // Otherwise the slot tells the next sweep which container is left.
    if sweep::remove_container(&spec.slot).is_ok() {
        let _ = trash::remove(&spec.slot, RemovalWait::Yes);
    }
}

struct Supervisor<'a> {
    own: OwnSlot<'a>,
    engine: &'static dyn Engine,
    launched: RunningServer,
    record: Record,
    requests: Requests,
    /// The connection to its starter or claimer, until that hangs up.
    talk: Option<BufReader<UnixStream>>,
    cancel: &'a CancelToken,
    owner: Ownership,
    watched: Vec<ProcessHandle>,
    /// The starter's command, which ends with the starter.
    command: Option<ProcessHandle>,
    deadline: Option<Instant>,
    port: Option<HeldPort>,
    /// The template that the present data was cloned from.
    origin: Origin,
    directories: ServerDirectories<'a>,
    prepared: Preparations<'a>,
    reaper: trash::Reaper,
    /// The link with the new name of a standby that was handed over, which keeps its slot.
    link: Option<PathBuf>,
    /// Why a reset or a mark could not start the server again. It is down until a reset can.
    down: Option<(String, Remedy, PresentData)>,
    /// The record on the disk is outdated, because the disk was full.
    is_record_old: bool,
    /// The lock on data that outlives it.
    _held: Option<File>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PresentData {
    Whole,
    Gone,
}

/// Why a supervisor stops serving.
enum End {
    /// Everything goes, and the client waits for the answer.
    Asked(UnixStream),
    Unasked(EndReason),
    Leave(Answer),
}

/// Starts the server. Until the position of kept data is noted, its sockets are hidden: clients know their path.
fn launch_unseen(wanted: LaunchRequest<'_>) -> Result<RunningServer> {
    let spec = wanted.spec;
    let must_note = |slot: &&PathBuf| wanted.engine.counts() || !service::was_started(slot);
    let Some(slot) = spec.durable.as_ref().filter(must_note) else { return launch(&wanted) };
    let address = wanted.address.unseen_in(&runtime::make_unseen(&spec.record.directory, spec.program.account)?);
    let launched = launch(&LaunchRequest { address: &address, ..wanted })?;
    service::note_start(slot, wanted.engine, &address)?;
    runtime::show(&spec.record.directory)?;
    Ok(launched)
}

/// Returns the record as known before the start. [`Supervisor::write_record`] adds the rest.
fn first_record(spec: &Spec, address: Address, template_identity: String) -> Record {
    let now = unix_now();
    let server = Server {
        address,
        started_unix_s: now,
        expires_unix_s: spec.ttl.map(|ttl| now + ttl.as_secs()),
        owner_pid: spec.owner.first_pid(),
        ..spec.record.server.clone()
    };
    Record {
        server,
        template_identity,
        supervisor: std::process::id(),
        supervisor_started: sys::start_time(std::process::id()),
        boot: sys::boot(),
        image: spec.container.as_ref().map(|container| container.image.name.clone()),
        ..spec.record.clone()
    }
}

/// Answers a request that could not be carried out. The server goes on.
fn failed(from: &mut UnixStream, error: Error) -> Option<End> {
    let _ = send(from, &Answer::failed(error));
    None
}

impl<'a> Supervisor<'a> {
    fn begin(
        spec: &'a Spec,
        directory: &'a Directory,
        talk: BufReader<UnixStream>,
        cancel: &'a CancelToken,
    ) -> Result<(Self, Record)> {
        let engine = engine::named(&spec.record.server.engine)?;
        let watched = spec.owner.processes()?;
        let starter = Some(talk.get_ref().as_fd());
        let held = unless_left(&(starter, Vec::new()), cancel, || service::hold(spec, engine, cancel))?;
        let port = spec.tcp.map(HeldPort::take).transpose()?;
        let password = port.as_ref().map(|_| random::letters(24)).transpose()?;
        runtime::make(&spec.record.directory, spec.program.account)?;
        let requests = Requests::listen(&spec.record.control)?;
        let number = port.as_ref().map(|port| port.number);
        let address = engine.address(&spec.record.directory, number, password.as_deref());
        let wanted = LaunchRequest {
            is_speculative: spec.record.waits,
            port: port.as_ref(),
            starter,
            owners: (starter, watched.iter().filter_map(ProcessHandle::end).collect()),
            ..LaunchRequest::new(spec, engine, &address, cancel)
        };
        if !spec.is_left_to_the_kernel() {
            registry::write_begun(&spec.slot, &spec.record.server.engine, None)?;
        }
        let template_identity = spec.origin.template_identity();
        let launched = launch_unseen(wanted)?;
        if spec.record.waits {
            engine.warm(&address, WARM_IN);
        }
        let record = first_record(spec, address, template_identity);
        let deadline = spec.ttl.and_then(|ttl| Instant::now().checked_add(ttl));
        let own = OwnSlot::new(spec, directory);
        let mut supervisor = Self {
            own,
            engine,
            launched,
            record,
            requests,
            talk: Some(talk),
            cancel,
            owner: spec.owner.clone(),
            watched,
            command: None,
            deadline,
            port,
            origin: spec.origin.clone(),
            directories: ServerDirectories::first(own, &spec.record.directory),
            prepared: Preparations::default(),
            reaper: trash::Reaper::default(),
            link: None,
            down: None,
            is_record_old: false,
            _held: held,
        };
        supervisor.write_record()?;
        let ready = Record { found: Some(supervisor.launched.found.clone()), ..supervisor.record.clone() };
        Ok((supervisor, ready))
    }

    fn write_record(&mut self) -> Result<()> {
        let launched = &self.launched;
        // The pid of an ended process may be another one's by now.
        let pid = self.down.is_none().then(|| launched.server.pid());
        self.record.pid_started = pid.and_then(sys::start_time);
        let server = &mut self.record.server;
        (server.pid, server.is_down, server.launch) = (pid, pid.is_none(), launched.report.clone());
        if let Ok(data) = self.directories.data() {
            server.data_directory = data;
        }
        self.record.prepared = self.prepared.next.is_some();
        let written = self.own.spec().and_then(|spec| registry::write(&spec.slot, &self.record));
        self.is_record_old = written.is_err();
        written
    }

    fn serve(&mut self, mut left_mounts: Option<sys::LeftMounts>) -> End {
        loop {
            left_mounts.iter_mut().for_each(sys::LeftMounts::follow);
            self.prepare_next();
            if self.is_record_old {
                let _ = self.write_record();
            }
            if let Some(reason) = self.over() {
                return End::Unasked(reason);
            }
            // Several messages may have come together.
            let has_more = self.talk.as_ref().is_some_and(|talk| !talk.buffer().is_empty());
            if (has_more || self.wait())
                && let Some(talk) = &mut self.talk
            {
                match (receive::<Request>(talk), talk.get_ref().try_clone()) {
                    (Ok(Some(Request::Command(pid))), _) => self.command = ProcessHandle::open(pid, None),
                    (Ok(Some(request)), Ok(from)) => {
                        if let Some(end) = self.handle(request, from) {
                            return end;
                        }
                    }
                    _ if self.owner == Ownership::Caller => {
                        self.command.iter().for_each(sys::end_tree);
                        return End::Unasked(EndReason::OwnerEnded);
                    }
                    _ => self.talk = None,
                }
            }
            while let Some((request, from)) = self.requests.next_of(|_| true) {
                if let Some(end) = self.handle(request, from) {
                    return end;
                }
            }
        }
    }

    fn over(&mut self) -> Option<EndReason> {
        if self.cancel.is_cancelled() {
            return Some(EndReason::SupervisorStopped);
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) || self.is_idle() {
            return Some(EndReason::TimeOver);
        }
        if self.watched.iter().any(|owner| !owner.lives()) {
            return Some(EndReason::OwnerEnded);
        }
        if self.own.is_replaced() {
            return Some(EndReason::HomeMoved);
        }
        if self.down.is_some() {
            return None;
        }
        self.launched.server.ended().map(EndReason::EndedByItself)
    }

    /// Waits for an event. Returns whether it is a message from the starter.
    fn wait(&self) -> bool {
        let talk = self.talk.as_ref().map(|talk| talk.get_ref().as_fd());
        let end = self.launched.server.end().filter(|_| self.down.is_none());
        let others = self.requests.descriptors().chain(end).chain(self.watched.iter().filter_map(ProcessHandle::end));
        let left = self.deadline.map_or(TICK, |deadline| deadline.saturating_duration_since(Instant::now()).min(TICK));
        // The caller checks for signals.
        let ready = sys::wait_for_any(talk.into_iter().chain(others), left);
        talk.is_some() && ready[0]
    }

    fn handle(&mut self, request: Request, mut from: UnixStream) -> Option<End> {
        if request.changes_data() && is_closed(&from) {
            // The caller gave up while this was busy with another request.
            return None;
        }
        if let Some(error) = self.refusal(&request) {
            return failed(&mut from, error);
        }
        let needs_clients = matches!(request, Request::Keep | Request::Claim(_) | Request::Copy(_));
        let patience = match request {
            // A kill needs no server that answers.
            Request::Stop if !self.record.durable => None,
            Request::Stop => Some(SHUTTING_DOWN),
            Request::Written => Some(Duration::ZERO),
            _ => needs_clients.then_some(SHUTTING_DOWN),
        };
        // Without an answer, the caller waits for the end, or takes the next standby.
        match patience.map_or(Ok(None), |patience| self.end_of_server(patience)) {
            Ok(None) => {}
            Ok(end) => return end,
            Err(error) if needs_clients => return failed(&mut from, error),
            Err(_) => {}
        }
        let answer = match request {
            Request::Reset(_) | Request::Mark(_) | Request::Unmark(_) if self.record.durable => {
                let name = &self.record.server.name;
                let text = format!("the server `{name}` has durable data, so it cannot be marked or reset");
                Answer::failed(Error::failed(text, Remedy::StartThrowaway))
            }
            Request::Stop if self.record.durable => match self.end_in_order(LossRule::Refuse) {
                Ok(()) => return Some(End::Asked(from)),
                Err(error) => Answer::failed(error),
            },
            Request::Stop | Request::StopAnyway => return Some(End::Asked(from)),
            Request::Dismiss if self.record.waits => return Some(End::Asked(from)),
            Request::Dismiss => Answer::Taken,
            Request::Copy(to) => {
                let copied = |spec| service::copy_running(spec, &self.record.server.address, &to, self.cancel);
                self.own.spec().and_then(copied).map_or_else(Answer::failed, Answer::Copied)
            }
            Request::Written => {
                let data = self.directories.data().ok();
                Answer::Written(data.and_then(|data| self.engine.written(&data, Some(&self.record.server.address))))
            }
            // Only the starter has one.
            Request::Command(_) => return None,
            Request::Keep => {
                self.owner = Ownership::Nobody;
                Answer::Done
            }
            Request::Finish => {
                return Some(match self.finish(&from) {
                    Ok(None) => End::Leave(Answer::Done),
                    Ok(Some(end)) => end,
                    Err(error) => End::Leave(Answer::failed(self.with_log(error))),
                });
            }
            Request::Claim(claim) => return self.claim(claim, from),
            Request::Mark(name) => {
                let ended = self.mark(&name, &mut from).unwrap_or_else(|error| failed(&mut from, error));
                self.reap();
                return ended;
            }
            Request::Unmark(name) => {
                let answer = self.unmark(&name).map_or_else(Answer::failed, |()| Answer::Done);
                self.reap();
                answer
            }
            Request::Reset(to) => {
                let reset = self.put_back(to.as_deref(), &mut from);
                let ended = reset.unwrap_or_else(|error| failed(&mut from, error));
                self.reap();
                let _ = self.own.spec().map(|spec| self.delete_old_templates(spec));
                return ended;
            }
        };
        let _ = send(&mut from, &answer);
        None
    }

    /// Returns the end without an answer if the server has ended. Waits for one that takes no clients any more, and
    /// fails if that still runs after `patience`.
    fn end_of_server(&mut self, patience: Duration) -> Result<Option<End>> {
        let asked = Instant::now();
        loop {
            if let Some(ended) = self.launched.server.ended() {
                return Ok(Some(End::Unasked(EndReason::EndedByItself(ended))));
            }
            if asked.elapsed() >= patience {
                let name = &self.record.server.name;
                let text = format!("the server `{name}` is running but accepts no clients: it may be shutting down");
                return Err(Error::failed(text, Remedy::EndServer(name.clone())));
            }
            if !matches!(self.engine.probe(&self.record.server.address, TICK), Err(Refusal::NotYet)) {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns why a request is impossible now. Restarts a server that a mark left down, if there is room by now.
    fn refusal(&mut self, request: &Request) -> Option<Error> {
        use Request::{Claim, Copy, Finish, Keep, Mark, Written};
        let needs_home = request.changes_data() || matches!(request, Copy(_) | Finish);
        if needs_home && let Err(moved) = self.own.spec() {
            return Some(moved);
        }
        if !matches!(request, Mark(_) | Copy(_) | Written | Keep | Finish | Claim(_)) {
            return None;
        }
        if matches!(self.down, Some((.., PresentData::Whole))) {
            let _ = self.resume();
        }
        let (text, remedy, _) = self.down.as_ref()?;
        Some(Error::failed(text, remedy.clone()))
    }

    fn with_log(&self, error: Error) -> Error {
        match self.own.spec() {
            Ok(spec) => log::added_to(error, spec.files()),
            Err(_) => error,
        }
    }

    /// Leaves the server down, with its marks and its template for a reset. Returns the failed command's error.
    fn go_down(&mut self, cause: &Error, data: PresentData) -> Error {
        self.kill();
        let name = &self.record.server.name;
        let text = format!("the server `{name}` is down, because it could not be started again: {cause}");
        let free = cause.full_disk().map(|path| Remedy::FreeSpace(path.to_path_buf()));
        let remedy = free.unwrap_or_else(|| Remedy::ResetServer(name.clone()));
        let error = Error::failed(&text, remedy.clone());
        self.down = Some((text, remedy, data));
        // The record is only for others, and is tried again.
        let _ = self.write_record();
        error
    }

    fn reap(&mut self) {
        if let Ok(spec) = self.own.spec() {
            self.reaper.reap([spec.slot.clone(), spec.record.directory.clone()]);
        }
    }

    /// Deletes templates and marks that were removed or rebuilt while this server used them.
    fn delete_old_templates(&self, spec: &Spec) {
        for origin in [&spec.origin, &self.origin] {
            if let Origin::Template(template) = origin
                && let Some(templates) = template.parent()
            {
                sweep::delete_old_templates(templates);
            }
        }
    }

    /// Starts a server on the present files, in the first runtime directory.
    fn launch(&self, origin: &Origin, reset: &ResetData) -> Result<RunningServer> {
        let spec = self.own.spec()?;
        launch(&LaunchRequest {
            origin,
            files: &self.directories.files()?,
            reset: Some(reset),
            port: self.port.as_ref(),
            owners: self.owners(),
            ..LaunchRequest::new(spec, self.engine, &self.record.server.address, self.cancel)
        })
    }

    fn owners(&self) -> Owners<'_> {
        let starter = self.talk.as_ref().filter(|_| self.owner == Ownership::Caller);
        (starter.map(|talk| talk.get_ref().as_fd()), self.watched.iter().filter_map(ProcessHandle::end).collect())
    }

    fn kill(&mut self) {
        self.launched.server.kill();
        let _ = self.launched.server.wait();
        self.end_children();
    }

    fn end_children(&self) {
        let server = Some(self.launched.server.pid());
        sweep::end_children(self.engine, self.directories.files().ok().as_deref(), server, self.record.isolated);
    }

    fn end(&mut self, end: End) {
        self.prepared.forget();
        self.reaper = trash::Reaper::default();
        if let (Some(link), Ok(_)) = (self.link.take(), self.own.spec()) {
            let _ = fs_err::remove_file(link);
        }
        match end {
            End::Leave(answer) => {
                self.end_children();
                self.launched.seen.hide();
                // Locks the account out again.
                let _ = self.own.spec().and_then(|spec| private::close(&Directory::open(&spec.slot)?));
                let _ = trash::remove(&self.record.directory, RemovalWait::Yes);
                let _ = self.talk.as_mut().map(|talk| send(talk.get_mut(), &answer));
            }
            end => {
                self.shut_down();
                self.launched.seen.hide();
                if let Some(overlay) = self.launched.overlay.take() {
                    let _ = overlay.unmount();
                }
                // The caller may want the template, or the port, as soon as it has the answer.
                self.launched.template = None;
                self.port = None;
                let _ = trash::remove(&self.record.directory, RemovalWait::Yes);
                let removed = self.launched.server.check_removed();
                // If the home was moved, the next sweep keeps the ending, and removes the slot.
                let spec = self.own.spec().ok();
                if let Some(spec) = spec {
                    self.leave_slot(spec, &end, removed.is_ok());
                }
                if let End::Asked(mut asked) = end {
                    let answer = removed.map_or_else(Answer::failed, |()| Answer::Stopped {});
                    let _ = send(&mut asked, &answer);
                    self.requests.refuse_changes(&self.record.server.name);
                }
                if let Some(spec) = spec {
                    let _ = spec.slot.parent().map(trash::reap);
                    self.delete_old_templates(spec);
                }
            }
        }
    }

    fn leave_slot(&self, spec: &Spec, end: &End, is_removed: bool) {
        if let End::Unasked(reason) = end
            && self.record.server.template.is_some()
            && !self.record.waits
        {
            Ending::keep(spec.files(), &self.record.server.name, *reason, &spec.logs);
        }
        if is_removed {
            let _ = trash::remove(&spec.slot, RemovalWait::No);
        } else {
            // The slot tells the next sweep which container is left.
            let _ = fs_err::remove_file(spec.slot.join(registry::RECORD));
        }
    }
}
