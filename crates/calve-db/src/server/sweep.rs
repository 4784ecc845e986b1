//! Removes servers' resources, and leftovers of killed supervisors.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use calve_core::internal::{if_there, sweep_records};
use calve_core::{CancelToken, RemovalWait};
use fs_err as fs;
use rustix::fs::FlockOperation;
use rustix::process::Signal;

use crate::engine::{self, Engine, container, memory};
use crate::error::{AtPath as _, Error, Result};
use crate::files::directory::Directory;
use crate::files::trash;
use crate::registry::{self, Ending, Home, Record, SOCKETS, SocketsNote, lock_all, template};
use crate::sys;

/// A killed process ends at once, unless it has much to release.
const ENDING: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerSweepReport {
    /// Servers whose supervisor was killed.
    pub servers: Vec<String>,
    /// Templates whose build was killed.
    pub builds: Vec<String>,
    /// Containers that could not be removed, and why. The next sweep tries again.
    pub kept: Vec<(String, String)>,
    /// Directories with trash for [`calve_core::reap`].
    pub trash: Vec<PathBuf>,
}

/// Removes leftovers of killed supervisors: files, sockets, and processes and memory that the kernel left.
pub fn sweep(home: &Home) -> Result<ServerSweepReport> {
    let mut swept = ServerSweepReport::default();
    if !home.root.is_dir() {
        return Ok(swept);
    }
    home.prepare()?;
    let guard = lock_all(home)?;
    let mut in_containers = Vec::new();
    for slot in registry::slots(home)? {
        // Skips a slot that its supervisor is removing.
        let Some(lock) = found(registry::open_lock(&slot))? else { continue };
        if !try_lock(&lock, &slot) || !registry::is_lock_at(&lock, &slot.join(registry::LOCK)) {
            continue;
        }
        match container::is_noted(&slot) {
            true => {
                // Otherwise other sweeps would take it for a dead process's.
                registry::sign(&lock);
                in_containers.push((slot, lock));
            }
            false => swept.take_away(home, &slot),
        }
    }
    remove_dead_links(home);
    // Leftovers of killed clones. A clone in progress holds its lock, or begins after this.
    for slot in beginning_with(registry::NEW_SERVICE, &home.services)?.filter(|slot| !registry::is_held(slot)) {
        trash::remove(&slot, RemovalWait::No)?;
    }
    move_old_templates_to_trash(&home.templates)?;
    registry::sweep_endings(home);
    for directory in [&home.pools, &home.logs] {
        sweep_records(&Directory::open(directory)?);
    }
    // Others need not wait for a container runtime.
    drop(guard);
    in_containers.iter().for_each(|(slot, _lock)| swept.take_away(home, slot));
    let all = [&home.servers, &home.services, &home.templates, &home.runtime].into_iter();
    swept.trash.extend(all.filter(|directory| trash::is_in(directory)).cloned());
    Ok(swept)
}

impl ServerSweepReport {
    fn take_away(&mut self, home: &Home, slot: &Path) {
        let name = slot.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let record = registry::read(slot).ok().flatten();
        let name = record.as_ref().map_or(name, |record| record.server.name.clone());
        if let Some(record) = record.filter(|record| !record.waits)
            && let Some(reason) = SocketsNote::read(slot).end_reason(home, slot)
        {
            Ending::keep(&record.files(home), &name, reason, &home.logs);
        }
        match (take_away(home, slot, RemovalWait::No), registry::built_template(&name)) {
            (Err(error), _) => self.kept.push((format!("the container of `{name}`"), error.to_string())),
            (Ok(()), Some(template)) => self.builds.push(template.to_owned()),
            (Ok(()), None) => self.servers.push(name),
        }
    }
}

fn beginning_with(prefix: &str, directory: &Path) -> Result<impl Iterator<Item = PathBuf>> {
    let begins = move |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix));
    Ok(registry::directories(directory)?.into_iter().filter(begins))
}

/// Removes the links of standbys that were handed over and have ended since.
fn remove_dead_links(home: &Home) {
    for entry in fs::read_dir(&home.servers).into_iter().flatten().flatten() {
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        if is_link && !registry::is_held(&entry.path()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Removes a slot without a supervisor, and its server's remains. Fails, and keeps the slot, if its container stays.
pub(crate) fn take_away(home: &Home, slot: &Path, wait: RemovalWait) -> Result<()> {
    let note = SocketsNote::read(slot);
    if note.end_reason(home, slot).is_none() {
        return trash::remove(slot, wait);
    }
    end_leftovers(home, slot);
    remove_container(slot)?;
    if let Some(directory) = note.directory(home) {
        let _ = trash::remove(&directory, wait);
    }
    trash::remove(slot, wait)
}

fn move_old_templates_to_trash(templates: &Path) -> Result<()> {
    for old in beginning_with(template::OLD, templates)? {
        // A damaged one may have no lock.
        let lock = registry::open_lock(&old).ok();
        if lock.is_none_or(|lock| rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()) {
            let _ = trash::remove(&old, RemovalWait::No);
        }
    }
    Ok(())
}

pub(crate) fn delete_old_templates(templates: &Path) {
    if move_old_templates_to_trash(templates).is_ok() && trash::is_in(templates) {
        let _ = trash::reap(templates);
    }
}

/// Turns the error of a missing file into `None`.
pub(crate) fn found<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// Locks a slot, unless it has a supervisor.
fn try_lock(lock: &std::fs::File, slot: &Path) -> bool {
    let started = Instant::now();
    while rustix::fs::flock(lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        if !registry::is_signed_by_the_dead(slot) || started.elapsed() > Duration::from_secs(2) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Deletes the trash that a sweep found, and returns when it is gone.
pub fn delete_trash(swept: &ServerSweepReport, cancel: &CancelToken) -> Result<()> {
    swept.trash.iter().try_for_each(|directory| trash::reap_all(directory, cancel))
}

/// Removes the notes of a run, which a template does not need.
pub(crate) fn forget_run(slot: &Path) -> Result<()> {
    for name in [SOCKETS, container::NOTE, registry::RECORD, registry::BEGUN] {
        if_there(fs::remove_file(slot.join(name))).at("remove", slot.join(name))?;
    }
    trash::remove(&slot.join("tmp"), RemovalWait::Yes)
}

/// Removes all of a slot but its data and lock. Code that ran in its server may have put links there.
pub(crate) fn leave_data(slot: &Path) -> Result<()> {
    for entry in fs::read_dir(slot).at("list", slot)? {
        let entry = entry.at("list", slot)?;
        if entry.file_name() != registry::DATA && entry.file_name() != registry::LOCK {
            trash::remove(&entry.path(), RemovalWait::Yes)?;
        }
    }
    Ok(())
}

pub(crate) fn remove_container(slot: &Path) -> Result<()> {
    container::remove_left(slot, !matches!(registry::read(slot), Ok(None)))
}

/// Ends the remains of this process's server: without namespaces its children are inherited, and its memory stays.
pub(crate) fn end_children(engine: &dyn Engine, slot: Option<&Path>, server: Option<u32>, isolated: bool) {
    kill_children();
    if let Some(slot) = slot.filter(|_| !isolated) {
        memory::remove(engine, slot, server);
    }
}

/// Kills this process's children, and those that it inherits from them.
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

/// Ends the remains of a server whose supervisor was killed. Without namespaces, its children and memory may live on.
fn end_leftovers(home: &Home, slot: &Path) {
    let record = registry::read(slot).ok().flatten().filter(|record| record.boot == sys::boot());
    record.iter().for_each(|record| kill(&family(record), Instant::now() + Duration::from_secs(2)));
    // Written only without namespaces: in a namespace, a segment of that number was another one.
    if let Some(begun) = registry::read_begun(slot).ok().flatten().filter(|begun| begun.boot == sys::boot())
        && let Ok(engine) = engine::named(&begun.server.engine)
    {
        end_session(&begun);
        // A container's memory goes with it.
        if !container::is_noted(slot) {
            let durable = record.as_ref().filter(|record| record.durable).map(|record| record.files(home));
            memory::remove(
                engine,
                durable.as_deref().unwrap_or(slot),
                record.as_ref().and_then(|record| record.server.pid).or(begun.server.pid),
            );
        }
    }
}

/// Ends the session of a supervisor that was killed before its server was ready. No record has these processes, and the
/// kernel ends only the first one, a moment after it frees the lock. Until their end they may make memory.
fn end_session(begun: &Record) {
    let until = Instant::now() + ENDING;
    let mut rounds_without = 0;
    // A process may start another one behind a round that is under way.
    while rounds_without < 2 && Instant::now() < until {
        let processes = begun.processes();
        rounds_without = if processes.is_empty() { rounds_without + 1 } else { 0 };
        kill(&processes, until);
    }
}

fn kill(processes: &[sys::ProcessHandle], until: Instant) {
    processes.iter().for_each(|process| process.signal(Signal::KILL));
    while processes.iter().any(sys::ProcessHandle::lives) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn family(record: &Record) -> Vec<sys::ProcessHandle> {
    let Some(pid) = record.server.pid else { return Vec::new() };
    let Some(first) = sys::ProcessHandle::open(pid, record.pid_started) else { return Vec::new() };
    let children = sys::children(pid).into_iter().filter_map(|pid| sys::ProcessHandle::open(pid, None));
    children.chain([first]).collect()
}
