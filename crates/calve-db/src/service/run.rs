//! Servers on data that outlives them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use calve_core::{CancelToken, RemovalWait};
use rustix::fs::{Mode, OFlags};
use rustix::io::FdFlags;

use super::data::{LOCK, ON_DISK, Service, take_turn};
use super::position::is_written;
use crate::engine::{Engine, Purpose, memory, programs};
use crate::error::{AtPath as _, Error, Remedy, Result, UnusableData, unless_cancelled};
use crate::files::directory::Directory;
use crate::files::{private, runtime, trash};
use crate::registry::{self, DATA, Home, Record, RegistrySlot};
use crate::server::control;
use crate::server::messages::{Answer, Ownership, Request, Spec};
use crate::server::starter::{self, Starter};
use crate::server::sweep::sweep;
use crate::sys;

const ENDING: Duration = Duration::from_secs(60);
const A_MOMENT: Duration = Duration::from_millis(500);

/// The longest log that earlier servers may leave.
const LONGEST_LOG: i64 = 1 << 20;

/// Starts the service's server, unless it runs. Returns whether it did so.
pub fn start(home: &Home, name: &str, supervisor: &[PathBuf], cancel: &CancelToken) -> Result<bool> {
    home.prepare()?;
    let (_turn, service) = take_turn(home, name, cancel)?;
    let starter = Starter { supervisor, cancel };
    if service.ask(home, Request::Keep, cancel)?.map(Answer::into_result).transpose()?.is_some() {
        // Its starter may have been killed before this.
        write_to_disk(&service.slot, &starter)?;
        return Ok(false);
    }
    let slot = reserve(home, name, cancel)?;
    registry::forget_ending(home, name);
    let files = Directory::open(&service.slot)?;
    if files.stat("log")?.is_some_and(|found| found.st_size > LONGEST_LOG) {
        files.remove_file("log")?;
    }
    let mut spec = service.spec(home, name, &slot.path)?;
    let directory = home.runtime.join(&service.runtime);
    // Leftovers of a killed one.
    let _ = trash::remove(&directory, RemovalWait::Yes);
    spec.record.server.template = Some(service.template.clone());
    spec.record = Record { control: runtime::control(&directory), directory, durable: true, ..spec.record };
    let durable = Some(service.slot.clone());
    let mut spec = Spec { purpose: Purpose::Keep, owner: Ownership::Nobody, durable, ..spec };
    // Commits are worthless without their clone on the disk, so the server is not announced before that.
    let (started, written) = std::thread::scope(|scope| {
        let writing = scope.spawn(|| write_to_disk(&service.slot, &starter));
        let started = starter::run(home, &mut spec, slot, &starter);
        (started, writing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    started.map_err(|error| unless_of_other_version(&service, error))?;
    if let Err(error) = written {
        control::stop_by(home, name, Request::Stop, &CancelToken::default())?;
        return Err(error);
    }
    Ok(true)
}

/// Explains a failure by data of another version than the installed program's, as after an upgrade of the system.
fn unless_of_other_version(service: &Service, error: Error) -> Error {
    let examined = || {
        let engine = service.engine()?;
        let program = programs::find(engine, Some(&service.program.path), &[])?;
        engine.examine(&service.data_directory(), &program.version)
    };
    if matches!(error, Error::ServerFailed { .. })
        && let Err(Error::NotUsable { reason: reason @ UnusableData::OtherVersion { .. }, .. }) = examined()
    {
        return Error::ServiceNotUsable { reason };
    }
    error
}

fn write_to_disk(slot: &Path, starter: &Starter<'_>) -> Result<()> {
    let done = slot.join(ON_DISK);
    if !done.exists() {
        starter.sync(slot)?;
        private::open(&done)?;
    }
    Ok(())
}

/// The fate of data that is nowhere else, or that a server cannot write, as on a full disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossRule {
    /// The data stays, and its server goes on.
    Refuse,
    Accept,
}

impl LossRule {
    pub fn from_consent(may_be_lost: bool) -> Self {
        if may_be_lost { Self::Accept } else { Self::Refuse }
    }
}

/// Shuts the server down cleanly, and returns whether one ran. The data stays. A server that was asked to end does so
/// even if `cancel` ends the wait, unless it cannot write everything and may not lose it.
pub fn stop(home: &Home, name: &str, unsaved: LossRule, cancel: &CancelToken) -> Result<bool> {
    let (_turn, service) = take_turn(home, name, cancel)?;
    end(home, &service, unsaved, cancel)
}

/// Ends the server like [`stop`], for a caller that has the service's turn.
pub(super) fn end(home: &Home, service: &Service, unsaved: LossRule, cancel: &CancelToken) -> Result<bool> {
    let request = if unsaved == LossRule::Accept { Request::StopAnyway } else { Request::Stop };
    match control::stop_by(home, &service.name, request, cancel) {
        Err(Error::UnknownServer(_) | Error::ServerEnded { .. }) => Ok(false),
        stopped => stopped.map(|_| true),
    }
}

/// Fails if changed data may not be lost. It may have been written to until its server ended.
pub(super) fn check_written(home: &Home, service: &Service, written: LossRule) -> Result<()> {
    if written == LossRule::Accept || !is_written(home, service)? {
        return Ok(());
    }
    let worktree = service.worktree.root.clone().into();
    Err(Error::ServiceWritten { service: service.service.clone(), worktree })
}

/// Takes a slot. A present holder is ending, because no other process can start a server of this name now.
fn reserve(home: &Home, name: &str, cancel: &CancelToken) -> Result<RegistrySlot> {
    let started = Instant::now();
    loop {
        match registry::reserve(home, name) {
            Err(Error::ServerExists(_)) if started.elapsed() < ENDING => {
                unless_cancelled(cancel)?;
                sweep(home)?;
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return other,
        }
    }
}

pub(super) fn take_data(home: &Home, service: &Service, cancel: &CancelToken) -> Result<File> {
    // A supervisor may be about to end them itself.
    if !registry::is_held(&home.servers.join(&service.name)) {
        kill_orphans(&service.slot);
    }
    take_lock(&service.slot, &service.name, cancel)
}

/// Kills processes that still hold the data after a moment. A computing or stopped one misses its supervisor's end.
fn kill_orphans(slot: &Path) {
    let started = Instant::now();
    while registry::is_held(slot) {
        if started.elapsed() > A_MOMENT {
            return sys::kill_users(&slot.join(LOCK));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn take_lock(slot: &Path, name: &str, cancel: &CancelToken) -> Result<File> {
    let path = slot.join(LOCK);
    // Read-only, because processes that inherit it must not be able to write to it.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let lock = rustix::fs::open(&path, flags, Mode::empty()).at("open", &path)?;
    let started = Instant::now();
    registry::wait_unless(&lock, &path, cancel, || {
        let text = || format!("the data of `{name}` is still in use by a server that ended or is ending");
        if started.elapsed() < ENDING { Ok(()) } else { Err(Error::failed(text(), Remedy::TryAgain)) }
    })?;
    Ok(lock.into())
}

/// Takes the data for a server, whose processes inherit the lock. Removes leftovers of an earlier run.
pub(crate) fn hold(spec: &Spec, engine: &dyn Engine, cancel: &CancelToken) -> Result<Option<File>> {
    let Some(files) = &spec.durable else { return Ok(None) };
    kill_orphans(files);
    let lock = take_lock(files, &spec.record.server.name, cancel)?;
    rustix::io::fcntl_setfd(&lock, FdFlags::empty()).at("share the lock of", files)?;
    private::close(&Directory::open(files)?)?;
    memory::remove(engine, files, None);
    engine.scrub(&files.join(DATA))?;
    Ok(Some(lock))
}
