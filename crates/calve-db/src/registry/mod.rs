//! The servers that there are: a directory for each, with a lock that its supervisor holds for as long as it lives.

mod ending;
mod home;
pub(crate) mod name;

pub use ending::{Ending, Log, endings, log};
pub(crate) use ending::{forget as forget_ending, sweep as sweep_endings};
pub use home::Home;
pub(crate) use home::POOL_SUFFIX;

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use calve_core::{CancelToken, Strategy};
use fs_err as fs;
use rustix::fs::{FlockOperation, Mode};
use rustix::io::Errno;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::address::Address;
use crate::copy_up::LargeFile;
use crate::engine::EngineKind;
use crate::error::{Error, Result};
use crate::files::directory::Directory;
use crate::files::private;
use crate::operation::Operation;
use crate::sys;

pub(crate) const LOCK: &str = "lock";
const RECORD: &str = "server.json";
const BEGUN: &str = "begun.json";
/// The file that names a server's container, so that it can be found without a record.
pub(crate) const CONTAINER: &str = "container.json";
/// The entries in a place beside the server's own files.
const FILES: &[&str] = &[LOCK, RECORD, BEGUN, "sockets", CONTAINER, "log"];
/// Directories of templates that are being built. No server has such a name.
pub(crate) const BUILDING: &str = ".building-";
/// Directories of data that is only being cloned. No service has such a name.
pub(crate) const NEW_SERVICE: &str = ".new-";

/// Returns the name of the template that is built in a place of this name.
pub(crate) fn built_template(place: &str) -> Option<&str> {
    Some(place.strip_prefix(BUILDING)?.rsplit_once('-')?.0)
}

/// A server, as it is written down.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub name: String,
    pub engine: String,
    /// The template that it was cloned from; none while a template is built.
    pub template: Option<String>,
    pub address: Address,
    /// Where its files are, as seen from outside of its namespace.
    pub data_directory: PathBuf,
    /// The server's first process.
    pub pid: u32,
    /// How the files were cloned; `None` when they were made anew, or in a way that this version does not know.
    #[serde(serialize_with = "write_strategy", deserialize_with = "read_strategy")]
    pub strategy: Option<Strategy>,
    /// Better strategies, and why they were not used.
    pub refused: Vec<String>,
    /// The files that an overlay copies as a whole when the server first opens them for writing.
    #[serde(default)]
    pub copy_up: Vec<LargeFile>,
    /// How long that took.
    pub clone_ms: f64,
    /// From the start of cloning until it answered.
    pub ready_ms: f64,
    pub started_unix_s: u64,
    /// `None` when it may stay for good.
    pub expires_unix_s: Option<u64>,
    /// The process that owns it, if processes do: the first that was named.
    pub owner_pid: Option<u32>,
    /// Whether it was started ahead of time, and only handed over when somebody wanted it.
    #[serde(default)]
    pub standby: bool,
    /// Whether the server for its next reset waits.
    #[serde(default)]
    pub prepared: bool,
    /// It is down, because a reset or a mark could not start it again.
    #[serde(default)]
    pub is_down: bool,
    /// Nobody has it yet.
    #[serde(default)]
    pub(crate) waits: bool,
    /// Whether its data is kept when it ends.
    #[serde(default)]
    pub durable: bool,
    /// The state of its template when it was cloned.
    #[serde(default)]
    pub(crate) template_identity: String,
    pub(crate) pid_started: Option<u64>,
    /// The process that looks after it.
    pub supervisor: u32,
    pub(crate) supervisor_started: Option<u64>,
    pub(crate) boot: String,
    pub(crate) directory: PathBuf,
    pub(crate) control: PathBuf,
    pub(crate) notifies: bool,
    /// Settings and files that were taken away from a data directory that was taken over: only in the answer to its starter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) neutralised: Vec<String>,
    pub(crate) isolated: bool,
    /// The image that it runs from, if that is in a container.
    #[serde(default)]
    pub image: Option<String>,
}

impl Record {
    /// Returns the directory of the server's data, its temporary files and its log.
    pub(crate) fn files(&self, home: &Home) -> PathBuf {
        match self.data_directory.parent() {
            Some(files) if self.durable => files.to_path_buf(),
            _ => place_of(home, &self.name),
        }
    }

    /// Returns whether a second server can be prepared for its next reset: one that costs no disk space, and needs no port.
    pub fn can_prepare(&self) -> bool {
        let is_cheap = self.strategy != Some(Strategy::Copy);
        self.isolated && self.image.is_none() && self.address.tcp_port.is_none() && is_cheap
    }

    /// Returns its engine; `None` if this version does not know it.
    pub fn engine_kind(&self) -> Option<EngineKind> {
        self.engine.parse().ok()
    }

    /// Returns the name of the strategy; `init` when the files were made anew.
    pub fn strategy_name(&self) -> &'static str {
        strategy_name(self.strategy)
    }
}

fn strategy_name(strategy: Option<Strategy>) -> &'static str {
    strategy.map_or("init", Strategy::name)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn write_strategy<S: Serializer>(strategy: &Option<Strategy>, to: S) -> std::result::Result<S::Ok, S::Error> {
    to.serialize_str(strategy_name(*strategy))
}

fn read_strategy<'a, D: Deserializer<'a>>(from: D) -> std::result::Result<Option<Strategy>, D::Error> {
    String::deserialize(from).map(|name| name.parse().ok())
}

/// A place in the registry, and the lock on it.
#[derive(Debug)]
pub(crate) struct RegistryPlace {
    pub(crate) path: PathBuf,
    pub(crate) lock: File,
}

/// Takes a new place. Nobody sweeps meanwhile: a lock that is not held yet would look like one that was left.
pub(crate) fn reserve(home: &Home, name: &str) -> Result<RegistryPlace> {
    let _guard = lock_all(home)?;
    let path = home.servers().join(name);
    match rustix::fs::mkdir(&path, Mode::RWXU) {
        Ok(()) => {}
        Err(Errno::EXIST) => return Err(Error::ServerExists(name.into())),
        Err(errno) => return Err(Error::io(Operation::CreateDirectory, &path, errno)),
    }
    // A process that only looks whether somebody holds it has it for a moment.
    let lock = take_lock(&path.join(LOCK))?;
    sign(&lock);
    Ok(RegistryPlace { path, lock })
}

/// Keeps others from making and sweeping places for as long as it is held, which must be short.
pub(crate) fn lock_all(home: &Home) -> Result<File> {
    take_lock(&home.servers().join(".lock"))
}

/// Opens a lock, and waits until nobody else holds it.
pub(crate) fn take_lock(path: &Path) -> Result<File> {
    let file = private::open(path)?;
    wait_for(&file, FlockOperation::LockExclusive, path)?;
    Ok(file)
}

/// Opens a lock, and waits until nobody else holds it or `cancel` ends the wait. Calls `waiting` each time that somebody does.
pub(crate) fn take_lock_unless(path: &Path, cancel: &CancelToken, mut waiting: impl FnMut()) -> Result<File> {
    let file = private::open(path)?;
    loop {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            Err(errno) => return Err(Error::io(Operation::Lock, path, errno)),
        }
        if cancel.is_cancelled() {
            return Err(Error::Interrupted);
        }
        waiting();
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Opens the lock of a server's or a template's directory.
pub(crate) fn open_lock(place: &Path) -> Result<File> {
    private::open(&place.join(LOCK))
}

/// Takes from others what an older version let them read, and lock, in a place.
pub(crate) fn tighten(place: &Path) {
    if let Ok(directory) = Directory::open(place) {
        private::tighten(&directory, FILES);
    }
}

/// Returns whether a lock is still that of the directory, which its owner may have renamed away or removed meanwhile.
pub(crate) fn is_lock_of(lock: &File, place: &Path) -> bool {
    is_lock_at(lock, &place.join(LOCK))
}

/// The same, for the path of the lock itself.
pub(crate) fn is_lock_at(lock: &File, path: &Path) -> bool {
    let there = fs::metadata(path);
    let same = |there: std::fs::Metadata| {
        lock.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (there.dev(), there.ino()))
    };
    there.is_ok_and(same)
}

/// Says whose lock it is, which holds it open.
pub(crate) fn sign(lock: impl AsFd) {
    let pid = std::process::id();
    let text = format!("{pid} {}\n", sys::start_time(pid).unwrap_or_default());
    let _ = rustix::io::pwrite(lock, text.as_bytes(), 0);
}

/// Returns whether it was signed by a process that is no more. The kernel takes a while to let go of what it had open.
pub(crate) fn is_signed_by_the_dead(place: &Path) -> bool {
    let text = fs::read_to_string(place.join(LOCK)).unwrap_or_default();
    let mut words = text.split_ascii_whitespace().map(str::parse::<u64>);
    let (Some(Ok(pid)), Some(Ok(started))) = (words.next(), words.next()) else { return false };
    u32::try_from(pid).is_ok_and(|pid| sys::ProcessHandle::open(pid, Some(started)).is_none())
}

/// Calls flock(2), again whenever a signal interrupts it.
pub(crate) fn wait_for(file: &File, operation: FlockOperation, path: &Path) -> Result<()> {
    sys::retry(|| rustix::fs::flock(file, operation)).map_err(|errno| Error::io(Operation::Lock, path, errno))
}

/// Returns whether somebody holds the lock of a directory. What has none is held by nobody.
pub(crate) fn is_held(place: &Path) -> bool {
    let Ok(lock) = fs::File::open(place.join(LOCK)) else { return false };
    matches!(rustix::fs::flock(&lock, FlockOperation::NonBlockingLockShared), Err(Errno::WOULDBLOCK))
}

/// Writes a record, which others see as a whole or not at all.
pub(crate) fn write(place: &Path, record: &Record) -> Result<()> {
    private::write_json(&place.join(RECORD), record)
}

/// Removes the record of a server that is ending.
pub(crate) fn forget(place: &Path) {
    let _ = fs::remove_file(place.join(RECORD));
}

/// The facts that are known of a server before it is ready, where nothing but this tells of the leftovers of a killed supervisor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct EarlyRecord {
    pub(crate) engine: String,
    pub(crate) boot: String,
    /// Its first process, as soon as there is one.
    #[serde(default)]
    pub(crate) server: Option<u32>,
    /// Its supervisor, whose session its processes belong to, and the process namespace in which that is its number.
    #[serde(default)]
    supervisor: u32,
    #[serde(default)]
    supervisor_started: Option<u64>,
    #[serde(default)]
    namespace: String,
}

impl EarlyRecord {
    /// Records a server of this supervisor, and the server's first process if it has one.
    pub(crate) fn now(engine: &str, server: Option<u32>) -> Self {
        let supervisor = std::process::id();
        Self {
            engine: engine.to_owned(),
            boot: sys::boot(),
            server,
            supervisor,
            supervisor_started: sys::start_time(supervisor),
            namespace: sys::process_namespace(),
        }
    }

    /// Returns the processes that run of it: its supervisor too, until that has ended.
    pub(crate) fn processes(&self) -> Vec<sys::ProcessHandle> {
        match self.supervisor_started {
            Some(began) if self.namespace == sys::process_namespace() => sys::members(self.supervisor, began),
            _ => Vec::new(),
        }
    }
}

pub(crate) fn write_begun(place: &Path, begun: &EarlyRecord) -> Result<()> {
    private::write_json(&place.join(BEGUN), begun)
}

pub(crate) fn read_begun(place: &Path) -> Option<EarlyRecord> {
    private::read_json(&place.join(BEGUN))
}

/// Reads the record of a place. `None` until its server is ready.
pub(crate) fn read(place: &Path) -> Option<Record> {
    private::read_json(&place.join(RECORD))
}

/// Lists the places that exist, whether or not somebody looks after them.
pub(crate) fn places(home: &Home) -> Result<Vec<PathBuf>> {
    let directory = home.servers();
    let listed = match fs::read_dir(&directory) {
        Ok(listed) => listed,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io(Operation::List, &directory, error)),
    };
    let mut places = Vec::new();
    for entry in listed {
        let entry = entry.map_err(|error| Error::io(Operation::List, &directory, error))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_place = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if (!name.starts_with('.') || name.starts_with(BUILDING)) && is_place {
            places.push(entry.path());
        }
    }
    places.sort();
    Ok(places)
}

/// Lists the running servers by name, without standbys that wait.
pub fn list(home: &Home) -> Result<Vec<Record>> {
    let places = places(home)?;
    let named = places.iter().filter(|path| !path.file_name().unwrap_or_default().to_string_lossy().starts_with('.'));
    let records = named.filter(|path| is_held(path)).filter_map(|path| read(path));
    Ok(records.filter(|record| !record.waits).collect())
}

/// Returns the place of the server of that name: its own, or, if it was a standby, the one that a link of its name leads to.
pub(crate) fn place_of(home: &Home, name: &str) -> PathBuf {
    let place = home.servers().join(name);
    match fs::read_link(&place) {
        Ok(target) if target.parent() == Some(Path::new("")) => home.servers().join(target),
        _ => place,
    }
}

/// Finds the running server of that name. Fails with the reason of its end if that is known.
pub fn find(home: &Home, name: &str) -> Result<Record> {
    crate::registry::name::check(name)?;
    let place = place_of(home, name);
    let record = is_held(&place).then(|| read(&place)).flatten();
    record.filter(|record| record.name == name && !record.waits).ok_or_else(|| ending::missing(home, name))
}

pub(crate) fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
