//! The process that looks after one server: it starts it, and takes it away when its time has come.
//!
//! Its first thread starts the server, which the kernel ends with that thread: so the server ends with this process and not before.

mod claim;
mod durable;
mod mark;
mod prepared;
mod requests;
mod reset;

use std::io::BufReader;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use calve_core::{CancelToken, RemovalWait};

use crate::address::Address;
use crate::container;
use crate::end_reason::EndReason;
use crate::engine::{self, Engine};
use crate::error::{Error, Result};
use crate::files::directory::Directory;
use crate::files::random;
use crate::files::{private, trash};
use crate::launch::data::DataClone;
use crate::launch::{LaunchRequest, Owners, Port, ResetData, RunningServer, launch, unless_left};
use crate::log;
use crate::messages::{Answer, Origin, Owner, Request, Spec, receive, send};
use crate::operation::Operation;
use crate::registry::{self, EarlyRecord, Ending, Record, unix_now};
use crate::runtime;
use crate::service::{self, UnsavedDataRule};
use crate::supervise::mark::is_closed;
use crate::supervise::requests::Requests;
use crate::sweep;
use crate::sys::{self, Isolation, ProcessHandle};

/// How long a server may take to write everything and end.
const ORDERLY_END: Duration = Duration::from_secs(600);
/// How long a first connection to a standby may take.
const WARM_IN: Duration = Duration::from_secs(2);
/// How often what has no descriptor is looked at.
const TICK: Duration = Duration::from_secs(1);

/// Looks after one server until it is gone.
///
/// `lock`: the lock on its place in the registry. `talk`: a socket whose other end has the process that wants the server;
/// the specification comes from there. Meant for a process that does nothing else, with one thread.
pub fn supervise(lock: OwnedFd, talk: OwnedFd, cancel: &CancelToken) -> Result<()> {
    // Away from the terminal and its signals.
    let _ = rustix::process::setsid();
    let mut talk = UnixStream::from(talk);
    let failed = |error| Error::io(Operation::Talk, "a socket", error);
    let mut reader = BufReader::new(talk.try_clone().map_err(failed)?);
    let Some(spec) = receive::<Spec>(&mut reader).map_err(failed)? else { return Ok(()) };
    let isolated = if spec.isolate {
        match sys::isolate(&spec.needed()) {
            Ok(isolation) => isolation == Isolation::Full,
            Err(_) => return send(&mut talk, &Answer::NoNamespaces).map_err(failed),
        }
    } else {
        false
    };
    sys::adopt_orphans();
    registry::sign(&lock);
    let begun = Supervisor::begin(&spec, isolated, &talk, cancel);
    let (mut supervisor, ready) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            let error = log::added_to(error, spec.files());
            clear(&spec, isolated);
            send(&mut talk, &Answer::failed(error)).map_err(failed)?;
            return Ok(());
        }
    };
    // Nobody may be left who wants it.
    let end = match send(&mut talk, &Answer::Ready(Box::new(ready))) {
        Ok(()) => supervisor.serve(&mut talk, reader, cancel),
        Err(_) => End::Unasked(EndReason::OwnerEnded),
    };
    supervisor.end(end, &mut talk);
    drop(lock);
    Ok(())
}

/// Removes what a start that failed has made.
fn clear(spec: &Spec, isolated: bool) {
    if let Ok(engine) = engine::named(&spec.engine) {
        sweep::end_children(engine, spec.files(), None, isolated);
    }
    runtime::remove(&spec.directory, RemovalWait::Yes);
    // Otherwise the place tells the next sweep which container is left.
    if container::remove_left(&spec.place).is_ok() {
        let _ = trash::remove(&spec.place, RemovalWait::Yes);
    }
}

struct Supervisor<'a> {
    spec: &'a Spec,
    engine: &'static dyn Engine,
    address: Address,
    isolated: bool,
    launched: RunningServer,
    record: Record,
    requests: Requests,
    owner: Owner,
    watched: Vec<ProcessHandle>,
    /// The command that the starter runs, which ends with it.
    command: Option<ProcessHandle>,
    deadline: Option<Instant>,
    port: Option<Port>,
    /// The template that the present data was cloned from.
    origin: Origin,
    /// Where it is, and the runtime directory of the server on it: the first ones, or those of a server that was prepared.
    files: PathBuf,
    directory: PathBuf,
    prepared: prepared::Preparations,
    /// Deletes what a reset has put out of sight.
    reaper: trash::Reaper,
    /// Its second name, which is a link: a standby keeps its place when it is handed over.
    link: Option<PathBuf>,
    /// Why a reset or a mark could not start the server again. It is down until a reset can.
    down: Option<Failure>,
    /// The process that claimed it just now.
    claimant: Option<UnixStream>,
    /// The lock on data that outlives it.
    _held: Option<std::fs::File>,
}

/// Why a server could not be started again.
struct Failure {
    text: String,
    /// The path on a full disk, if that is why.
    full: Option<PathBuf>,
}

/// Why a supervisor stops to serve.
enum End {
    /// Everything goes; whoever asked for it waits for the answer.
    Asked(UnixStream),
    /// Everything goes, for this reason.
    Unasked(EndReason),
    Leave(Answer),
}

/// Returns the facts that are known of a server before it is told how it was started, which [`Supervisor::write_record`] adds.
fn first_record(spec: &Spec, address: &Address, isolated: bool, template_identity: String) -> Record {
    let now = unix_now();
    Record {
        name: spec.name.clone(),
        engine: spec.engine.clone(),
        template: spec.template.clone(),
        address: address.clone(),
        started_unix_s: now,
        expires_unix_s: spec.ttl.map(|ttl| now + ttl.as_secs()),
        owner_pid: spec.owner.first_pid(),
        waits: spec.waits,
        durable: spec.durable.is_some(),
        template_identity,
        supervisor: std::process::id(),
        supervisor_started: sys::start_time(std::process::id()),
        boot: sys::boot(),
        directory: spec.directory.clone(),
        control: spec.control.clone(),
        isolated,
        image: spec.container.as_ref().map(|container| container.image.name.clone()),
        ..Record::default()
    }
}

impl<'a> Supervisor<'a> {
    fn begin(spec: &'a Spec, isolated: bool, talk: &UnixStream, cancel: &CancelToken) -> Result<(Self, Record)> {
        let engine = engine::named(&spec.engine)?;
        let watched = spec.owner.processes()?;
        let held = unless_left(&(Some(talk.as_fd()), Vec::new()), cancel, || service::hold(spec, engine, cancel))?;
        let port = spec.tcp.map(Port::take).transpose()?;
        let password = port.as_ref().map(|_| random::letters(24)).transpose()?;
        runtime::make(&spec.directory, spec.account)?;
        let requests = Requests::listen(&spec.control)?;
        let number = port.as_ref().map(|port| port.number);
        let address = engine.address(&spec.directory, number, password.as_deref());
        let wanted = LaunchRequest {
            is_ahead: spec.waits,
            port: port.as_ref(),
            starter: Some(talk.as_fd()),
            owners: (Some(talk.as_fd()), watched.iter().filter_map(ProcessHandle::end).collect()),
            ..LaunchRequest::new(spec, engine, &address, isolated, cancel)
        };
        if !spec.is_left_to_the_kernel(isolated) {
            registry::write_begun(&spec.place, &EarlyRecord::now(&spec.engine, None))?;
        }
        let template_identity = spec.origin.template_identity();
        let launched = durable::launch_unseen(wanted)?;
        if spec.waits {
            engine.warm(&address, WARM_IN);
        }
        let record = first_record(spec, &address, isolated, template_identity);
        let deadline = spec.ttl.and_then(|ttl| Instant::now().checked_add(ttl));
        let owner = spec.owner.clone();
        let mut supervisor = Self {
            spec,
            engine,
            address,
            isolated,
            launched,
            record,
            requests,
            owner,
            watched,
            command: None,
            deadline,
            port,
            origin: spec.origin.clone(),
            files: spec.files().to_path_buf(),
            directory: spec.directory.clone(),
            prepared: prepared::Preparations::default(),
            reaper: trash::Reaper::default(),
            link: None,
            down: None,
            claimant: None,
            _held: held,
        };
        supervisor.write_record()?;
        let neutralised = std::mem::take(&mut supervisor.launched.neutralised);
        let ready = Record { neutralised, ..supervisor.record.clone() };
        Ok((supervisor, ready))
    }

    fn write_record(&mut self) -> Result<()> {
        let launched = &self.launched;
        // The number of a process that has ended may be another one's by now.
        if self.down.is_none() {
            self.record.pid = launched.server.pid();
            self.record.pid_started = sys::start_time(self.record.pid);
        }
        self.record.is_down = self.down.is_some();
        let placed = launched.placed.as_ref();
        self.record.strategy = placed.map(|placed| placed.strategy).or(self.spec.strategy);
        self.record.refused = placed.map(DataClone::reasons).unwrap_or_default();
        self.record.copy_up.clone_from(&launched.copy_up);
        self.record.clone_ms = milliseconds(placed.map_or(Duration::ZERO, |placed| placed.took));
        self.record.ready_ms = milliseconds(launched.ready_took);
        self.record.notifies = launched.notifies;
        self.record.data_directory = self.files.join("data");
        self.record.prepared = self.prepared.is_ready();
        registry::write(&self.spec.place, &self.record)
    }

    /// Handles requests until something ends the server.
    fn serve(&mut self, talk: &mut UnixStream, mut reader: BufReader<UnixStream>, cancel: &CancelToken) -> End {
        let mut talks = true;
        loop {
            if let Some(claimant) = self.claimant.take()
                && let Ok(stream) = claimant.try_clone()
            {
                (reader, *talk, talks) = (BufReader::new(stream), claimant, true);
            }
            self.prepare_next(talk);
            if let Some(reason) = self.over(cancel) {
                return End::Unasked(reason);
            }
            // One message may have come with another.
            if !reader.buffer().is_empty() || self.wait(talks.then_some(&*talk)) {
                match (receive::<Request>(&mut reader), talk.try_clone()) {
                    (Ok(Some(Request::Command(pid))), _) => self.command = ProcessHandle::open(pid, None),
                    (Ok(Some(request)), Ok(from)) => {
                        if let Some(end) = self.handle(request, from, talk, cancel) {
                            return end;
                        }
                    }
                    _ if self.owner == Owner::Starter => {
                        self.command.iter().for_each(sys::end_tree);
                        return End::Unasked(EndReason::OwnerEnded);
                    }
                    _ => talks = false,
                }
            }
            // The process that has just claimed it is the one to talk to from then on.
            while self.claimant.is_none()
                && let Some((request, from)) = self.requests.next()
            {
                if let Some(end) = self.handle(request, from, talk, cancel) {
                    return end;
                }
            }
        }
    }

    /// Returns the reason to end the server, if there is one.
    fn over(&mut self, cancel: &CancelToken) -> Option<EndReason> {
        if cancel.is_cancelled() {
            return Some(EndReason::SupervisorStopped);
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) || self.is_idle() {
            return Some(EndReason::TimeOver);
        }
        if self.watched.iter().any(|owner| !owner.lives()) {
            return Some(EndReason::OwnerEnded);
        }
        if self.down.is_some() {
            return None;
        }
        self.launched.server.ended().map(EndReason::EndedByItself)
    }

    /// Waits until something happens. Whether it is the starter that says something.
    fn wait(&self, talk: Option<&UnixStream>) -> bool {
        let end = self.launched.server.end().filter(|_| self.down.is_none());
        let others = self.requests.descriptors().chain(end).chain(self.watched.iter().filter_map(ProcessHandle::end));
        let left = self.deadline.map_or(TICK, |deadline| deadline.saturating_duration_since(Instant::now()).min(TICK));
        // The caller looks at signals.
        let ready = sys::wait_for_any(talk.map(AsFd::as_fd).into_iter().chain(others), left);
        talk.is_some() && ready[0]
    }

    fn handle(
        &mut self,
        request: Request,
        mut from: UnixStream,
        talk: &UnixStream,
        cancel: &CancelToken,
    ) -> Option<End> {
        let changes_data = matches!(request, Request::Reset(_) | Request::Mark(_) | Request::Unmark(_));
        if changes_data && is_closed(&from) {
            // It was interrupted while this was busy with another one.
            return None;
        }
        let needs_server = matches!(
            request,
            Request::Mark(_)
                | Request::Copy(_)
                | Request::Written
                | Request::Keep
                | Request::Finish
                | Request::Claim(_)
        );
        if let (true, Some(down)) = (needs_server, self.down_error()) {
            let _ = send(&mut from, &Answer::failed(down));
            return None;
        }
        let answer = match request {
            Request::Reset(_) | Request::Mark(_) | Request::Unmark(_) if self.spec.durable.is_some() => {
                Answer::failed(Error::Durable(self.record.name.clone()))
            }
            Request::Stop if self.spec.durable.is_some() => match self.end_in_order(UnsavedDataRule::Refuse) {
                Ok(()) => return Some(End::Asked(from)),
                Err(error) => Answer::failed(error),
            },
            Request::Stop | Request::StopAnyway => return Some(End::Asked(from)),
            Request::Dismiss if self.record.waits => return Some(End::Asked(from)),
            Request::Dismiss => Answer::Taken,
            Request::Copy(to) => {
                service::copy_running(self.spec, &self.address, &to, cancel).map_or_else(Answer::failed, Answer::Copied)
            }
            Request::Written => Answer::Written(self.engine.written(&self.files.join("data"), Some(&self.address))),
            // Only the starter has one.
            Request::Command(_) => return None,
            Request::Keep => {
                if let Some(ended) = self.launched.server.ended() {
                    // Without an answer.
                    return Some(End::Unasked(EndReason::EndedByItself(ended)));
                }
                self.owner = Owner::Nobody;
                Answer::Done
            }
            Request::Finish => {
                return Some(match self.finish(&from) {
                    Ok(None) => End::Leave(Answer::Done),
                    Ok(Some(end)) => end,
                    Err(error) => End::Leave(Answer::failed(log::added_to(error, self.spec.files()))),
                });
            }
            Request::Claim(claim) => return self.claim(claim, from),
            Request::Mark(name) => {
                let ended = self.mark(&name, from, talk, cancel);
                self.reap();
                return ended;
            }
            Request::Unmark(name) => {
                let answer = self.unmark(&name).map_or_else(Answer::failed, |()| Answer::Done);
                self.reap();
                answer
            }
            Request::Reset(to) => {
                let ended = self.put_back(to.as_deref(), from, talk, cancel);
                self.reap();
                self.delete_old_templates();
                return ended;
            }
        };
        let _ = send(&mut from, &answer);
        None
    }

    /// Leaves the server down: its marks and its template are there, for a reset. Returns the answer to the command that has failed.
    fn go_down(&mut self, cause: Error) -> Answer {
        self.kill();
        let full = cause.full_disk().map(Path::to_path_buf);
        self.down = Some(Failure { text: cause.to_string(), full });
        // The record is for others.
        let _ = self.write_record();
        Answer::failed(self.down_error().unwrap_or(cause))
    }

    /// Returns the error of commands that need the server, if it is down.
    fn down_error(&self) -> Option<Error> {
        let Failure { text, full } = self.down.as_ref()?;
        Some(Error::ServerDown { name: self.record.name.clone(), cause: text.clone(), full: full.clone() })
    }

    /// Deletes, beside other work, what was put out of sight.
    fn reap(&mut self) {
        self.reaper.reap([self.spec.place.clone(), self.spec.directory.clone()]);
    }

    /// Deletes templates and marks that were removed or made again while this server used them.
    fn delete_old_templates(&self) {
        for origin in [&self.spec.origin, &self.origin] {
            if let Origin::Template(template) = origin
                && let Some(templates) = template.parent()
            {
                sweep::delete_old_templates(templates);
            }
        }
    }

    /// Starts a server in the first directories.
    fn launch(
        &self,
        origin: &Origin,
        reset: &ResetData,
        talk: &UnixStream,
        cancel: &CancelToken,
    ) -> Result<RunningServer> {
        launch(&LaunchRequest {
            origin,
            files: &self.files,
            reset: Some(reset),
            port: self.port.as_ref(),
            owners: self.owners(talk),
            ..LaunchRequest::new(self.spec, self.engine, &self.address, self.isolated, cancel)
        })
    }

    /// Returns the descriptors whose end is the server's.
    fn owners<'t>(&'t self, talk: &'t UnixStream) -> Owners<'t> {
        let starter = (self.owner == Owner::Starter).then(|| talk.as_fd());
        (starter, self.watched.iter().filter_map(ProcessHandle::end).collect())
    }

    /// Ends the server and all its children.
    fn kill(&mut self) {
        self.launched.server.kill();
        let _ = self.launched.server.wait();
        self.end_children();
    }

    fn end_children(&self) {
        let server = Some(self.launched.server.pid());
        sweep::end_children(self.engine, &self.files, server, self.isolated);
    }

    fn end(&mut self, end: End, talk: &mut UnixStream) {
        self.prepared.forget();
        self.reaper = trash::Reaper::default();
        if let Some(link) = self.link.take() {
            let _ = fs_err::remove_file(link);
        }
        match end {
            End::Leave(answer) => {
                self.end_children();
                self.launched.seen.hide();
                // The files become somebody else's business, and not the account's any more.
                let _ = Directory::open(&self.spec.place).and_then(|place| private::close(&place));
                runtime::remove(&self.spec.directory, RemovalWait::Yes);
                let _ = send(talk, &answer);
            }
            end => {
                self.shut_down();
                self.launched.seen.hide();
                if let Some(overlay) = self.launched.placed.as_mut().and_then(|placed| placed.overlay.take()) {
                    let _ = overlay.unmount();
                }
                // The process that waits for the answer may want to remove the template, or the port.
                self.launched.template = None;
                self.port = None;
                runtime::remove(&self.spec.directory, RemovalWait::Yes);
                if let (End::Unasked(reason), true) = (&end, self.spec.template.is_some() && !self.record.waits) {
                    Ending::of(self.spec.files(), &self.record.name, *reason).keep(&self.spec.logs);
                }
                let removed = self.launched.server.check_removed();
                match &removed {
                    Ok(()) => _ = trash::remove(&self.spec.place, RemovalWait::No),
                    // The place tells the next sweep which container is left.
                    Err(_) => registry::forget(&self.spec.place),
                }
                if let End::Asked(mut asked) = end {
                    let answer = removed.map_or_else(Answer::failed, |()| Answer::Stopped {});
                    let _ = send(&mut asked, &answer);
                }
                let _ = self.spec.place.parent().map(trash::reap);
                self.delete_old_templates();
            }
        }
    }
}

fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e5).round() / 100.0
}
