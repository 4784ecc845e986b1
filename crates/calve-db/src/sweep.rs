//! Taking away: what a server used, and what was left by supervisors that were killed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use calve_core::RemovalWait;
use fs_err as fs;
use rustix::fs::FlockOperation;
use rustix::process::Signal;

use crate::container;
use crate::end_reason::EndReason;
use crate::engine::memory;
use crate::engine::{self, Engine};
use crate::error::{Error, Result};
use crate::files::{private, trash};
use crate::operation::Operation;
use crate::registry::Home;
use crate::registry::{self, EarlyRecord, Ending, Record, lock_all};
use crate::runtime;
use crate::sys;
use crate::template;

/// The file in a place that names its directory of sockets, so that it can be found without a record.
const SOCKETS: &str = "sockets";

/// A killed process ends at once, unless it has much to give back.
const ENDING: Duration = Duration::from_secs(10);

/// The places that were found and taken away.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ServerSweepReport {
    /// Servers whose supervisor was killed.
    pub servers: Vec<String>,
    /// Templates whose build was killed.
    pub builds: Vec<String>,
    /// The containers of servers that could not be removed, and why not. The next sweep tries again.
    pub kept: Vec<(String, String)>,
    /// Directories in which trash waits for [`calve_core::reap`].
    pub trash: Vec<PathBuf>,
}

/// Takes away what killed supervisors left: files, sockets, and where the kernel did not, processes and memory.
pub fn sweep(home: &Home) -> Result<ServerSweepReport> {
    let mut swept = ServerSweepReport::default();
    if !home.exists() {
        return Ok(swept);
    }
    home.prepare()?;
    let guard = lock_all(home)?;
    let mut in_containers = Vec::new();
    for place in registry::places(home)? {
        // A place that its supervisor takes away at the same time is none of this process's business.
        let Some(lock) = found(registry::open_lock(&place))? else { continue };
        registry::tighten(&place);
        if !try_lock(&lock, &place) || !registry::is_lock_of(&lock, &place) {
            continue;
        }
        match container::is_noted(&place) {
            true => {
                // So that other sweeps do not take it for a dead process's.
                registry::sign(&lock);
                in_containers.push((place, lock));
            }
            false => swept.take_away(home, &place),
        }
    }
    remove_dead_links(home);
    remove_new_services(home)?;
    move_old_templates_to_trash(&home.templates())?;
    registry::sweep_endings(home);
    container::sweep_looks(home);
    // Others need not wait for what a runtime says.
    drop(guard);
    in_containers.iter().for_each(|(place, _lock)| swept.take_away(home, place));
    for directory in [home.servers(), home.services(), home.templates(), home.runtime().to_path_buf()] {
        if trash::is_in(&directory) {
            swept.trash.push(directory);
        }
    }
    Ok(swept)
}

impl ServerSweepReport {
    fn take_away(&mut self, home: &Home, place: &Path) {
        let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = registry::read(place).map_or(name, |record| record.name);
        keep_ending(home, place);
        match (take_away(home, place, RemovalWait::No), registry::built_template(&name)) {
            (Err(error), _) => self.kept.push((format!("the container of `{name}`"), error.to_string())),
            (Ok(()), Some(template)) => self.builds.push(template.to_owned()),
            (Ok(()), None) => self.servers.push(name),
        }
    }
}

/// Takes away the data that killed clones left. Whoever makes some now holds its lock, or makes it when this is done.
fn remove_new_services(home: &Home) -> Result<()> {
    for place in template::directories(&home.services())? {
        let is_new = place.file_name().is_some_and(|name| name.to_string_lossy().starts_with(registry::NEW_SERVICE));
        if is_new && !registry::is_held(&place) {
            trash::remove(&place, RemovalWait::No)?;
        }
    }
    Ok(())
}

/// Keeps what is known of a server whose supervisor was killed.
fn keep_ending(home: &Home, place: &Path) {
    if let Some(record) = registry::read(place).filter(|record| !record.waits) {
        let ending = Ending::of(&record.files(home), &record.name, EndReason::SupervisorKilled);
        ending.keep(&home.logs());
    }
}

/// Removes the names of standbys that were handed over, and have ended since.
fn remove_dead_links(home: &Home) {
    for entry in fs::read_dir(home.servers()).into_iter().flatten().flatten() {
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        if is_link && !registry::is_held(&entry.path()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Takes away a place that nobody looks after, and what is left of its server. Fails when its container cannot be removed: the place,
/// which stays, tells which one that is.
pub(crate) fn take_away(home: &Home, place: &Path, wait: RemovalWait) -> Result<()> {
    end_leftovers(place);
    container::remove_left(place)?;
    if let Ok(directory) = fs::read_to_string(place.join(SOCKETS)) {
        let directory = PathBuf::from(directory);
        // It is a name in this user's own directory, whatever the file says.
        if directory.parent() == Some(home.runtime()) {
            runtime::remove(&directory, wait);
        }
    }
    trash::remove(place, wait)
}

/// Moves templates that were replaced or removed, and that no server uses, to the trash.
fn move_old_templates_to_trash(templates: &Path) -> Result<()> {
    for old in template::replaced(templates)? {
        // One that is damaged may have none.
        let lock = registry::open_lock(&old).ok();
        if lock.is_none_or(|lock| rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()) {
            let _ = trash::remove(&old, RemovalWait::No);
        }
    }
    Ok(())
}

/// Deletes them, where nobody waits for it.
pub(crate) fn delete_old_templates(templates: &Path) {
    if move_old_templates_to_trash(templates).is_ok() && trash::is_in(templates) {
        let _ = trash::reap(templates);
    }
}

/// Turns the error of something that no longer exists into `None`.
fn found<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// Returns whether nobody looks after a place any more.
fn try_lock(lock: &std::fs::File, place: &Path) -> bool {
    let started = Instant::now();
    while rustix::fs::flock(lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        if !registry::is_signed_by_the_dead(place) || started.elapsed() > Duration::from_secs(2) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Deletes the trash that was found, and returns when it is gone.
pub fn delete_trash(swept: &ServerSweepReport) -> Result<()> {
    swept.trash.iter().try_for_each(|directory| trash::reap(directory))
}

/// Writes down where the sockets of a place will be.
pub(crate) fn note_sockets(place: &Path, directory: &Path) -> Result<()> {
    private::replace(&place.join(SOCKETS), directory.to_string_lossy().as_bytes())
}

/// Takes away the notes of a run that a template has no use for.
pub(crate) fn forget_run(place: &Path) -> Result<()> {
    for name in [SOCKETS, registry::CONTAINER, "server.json", "begun.json"] {
        match fs::remove_file(place.join(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io(Operation::Remove, place.join(name), error));
            }
            _ => {}
        }
    }
    trash::remove(&place.join("tmp"), RemovalWait::Yes)
}

/// Removes all of a place but its data and its lock. Whoever can run code in its server may have put links there.
pub(crate) fn leave_data(place: &Path) -> Result<()> {
    let failed = |error| Error::io(Operation::List, place, error);
    for entry in fs::read_dir(place).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name() != "data" && entry.file_name() != registry::LOCK {
            trash::remove(&entry.path(), RemovalWait::Yes)?;
        }
    }
    Ok(())
}

/// Ends what a server of this process's may have left: without a process namespace its children are this process's now, and
/// without one for memory that stays too.
pub(crate) fn end_children(engine: &dyn Engine, place: &Path, server: Option<u32>, isolated: bool) {
    kill_children();
    if !isolated {
        memory::remove(engine, place, server);
    }
}

/// Kills the children of this process, and those that are left to it when they die.
fn kill_children() {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(2) {
        let children = sys::children(std::process::id());
        if children.is_empty() {
            return;
        }
        for pid in children {
            if let Some(child) = sys::ProcessHandle::open(pid, None) {
                child.signal(Signal::KILL);
            }
            sys::collect_orphan(pid);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Ends what is left of a server whose supervisor was killed: where there are no namespaces, its children may live on, and its
/// memory too.
fn end_leftovers(place: &Path) {
    let record = registry::read(place).filter(|record| record.boot == sys::boot());
    if let Some(record) = &record {
        let family = family(record);
        for process in &family {
            process.signal(Signal::KILL);
        }
        let started = Instant::now();
        while family.iter().any(sys::ProcessHandle::lives) && started.elapsed() < Duration::from_secs(2) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    // Written only without namespaces: in one of its own, a segment of that number was another one.
    if let Some(begun) = registry::read_begun(place).filter(|begun| begun.boot == sys::boot())
        && let Ok(engine) = engine::named(&begun.engine)
    {
        end_session(&begun);
        // The place of a container goes with it.
        if !container::is_noted(place) {
            let files =
                record.as_ref().filter(|record| record.durable).and_then(|record| record.data_directory.parent());
            memory::remove(engine, files.unwrap_or(place), record.as_ref().map(|record| record.pid).or(begun.server));
        }
    }
}

/// Ends what a supervisor has started before its server was ready: it is not yet in a record, and the kernel ends no more than the
/// first process, and that one a moment later than it gives back the lock. Until they have ended they may make memory.
fn end_session(begun: &EarlyRecord) {
    let started = Instant::now();
    let mut rounds_without = 0;
    // One may start another one that an earlier part of a round would have found.
    while rounds_without < 2 && started.elapsed() < ENDING {
        let processes = begun.processes();
        rounds_without = if processes.is_empty() { rounds_without + 1 } else { 0 };
        for process in &processes {
            process.signal(Signal::KILL);
        }
        while processes.iter().any(sys::ProcessHandle::lives) && started.elapsed() < ENDING {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn family(record: &Record) -> Vec<sys::ProcessHandle> {
    let Some(first) = sys::ProcessHandle::open(record.pid, record.pid_started) else { return Vec::new() };
    let mut family: Vec<_> =
        sys::children(record.pid).into_iter().filter_map(|pid| sys::ProcessHandle::open(pid, None)).collect();
    family.push(first);
    family
}
