//! Where spares are kept.
//!
//! ```text
//! HOME/                      mode 0700
//!   .lock                    held (flock) by the builder or sweeper
//!   .awaited, .waiting       held while a user, or one builder in the background, waits for that
//!   KEY-OPTIONS/             one source, one set of options, one directory
//!     set                    the definition: NUL-terminated fields
//!     paused                 present if no more are to be built
//!     watched                present if clones start the watcher
//!     mount                  where the file system of PLACE is mounted
//!     TIME-RANDOM/           one spare, when the directory is HOME; locked by its builder or claimer
//!       tree, record         the spare; it is ready when it has a record
//! PLACE/.calve-spares-UID/   the spares of sets that need another file system
//!   .gitignore
//!   KEY-OPTIONS/TIME-RANDOM/
//! ```
//!
//! A spare's directory without a record, whose lock is free, was left by a killed process.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode};
use rustix::io::Errno;

use super::record::{Head, Record};
use crate::error::{Error, IoContext};
use crate::home::{from_home, in_home};
use crate::json::{FromReport, ReceiptPath};
use crate::options::{CloneOptions, Mounts, UnreadableEntry};
use crate::remove::place::{fill_place, remove_place};
use crate::sys;
use crate::tree::held_lock::HeldLock;
use crate::tree::location::{DIRECTORY, is_at, is_mounted};
use crate::tree::own::{OwnDirectory, remove_records};
use crate::vocabulary::operation::Operation;

const SET: &str = "set";
const PAUSED: &str = "paused";
pub(crate) const WATCHED: &str = "watched";
const LOCK: &str = ".lock";
const AWAITED: &str = ".awaited";
/// The mount point of the spares' file system: it tells deleted spares from unmounted ones.
const MOUNT: &str = "mount";
pub(super) const TREE: &CStr = c"tree";
const VERSION: &str = "calve-spares-3";

/// The options that decide a clone's contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) exclude: Vec<String>,
    pub(crate) mounts: Mounts,
    pub(crate) unreadable: UnreadableEntry,
    /// See [`crate::spares::SpareOptions::staged`].
    pub(crate) staged: bool,
}

impl Shape {
    /// Returns `None` for a plain copy, and for a selection by a function, because functions cannot be compared.
    pub(crate) fn from_options(options: &CloneOptions, staged: bool) -> Option<Self> {
        let (exclude, mounts, unreadable) = (options.exclude.clone(), options.mounts, options.unreadable);
        let is_comparable = options.select.is_none() && options.internal.plain.is_none();
        is_comparable.then_some(Self { exclude, mounts, unreadable, staged })
    }

    /// Returns the shape of spares for the root of an assembled tree, or of a whole directory if nothing is left out.
    pub(crate) fn of_root(made_without: &[String]) -> Self {
        let CloneOptions { mounts, unreadable, .. } = CloneOptions::default();
        Self { exclude: made_without.to_vec(), mounts, unreadable, staged: !made_without.is_empty() }
    }

    pub(super) fn serves(&self, options: &CloneOptions) -> bool {
        match (&options.spares, &options.select) {
            // A spare lacks only what its patterns leave out, so nothing was skipped as unreadable.
            (Some(using), Some(_)) => {
                let exclude = options.exclude.iter().chain(&using.made_without);
                let is_like = self.mounts == options.mounts && self.exclude.iter().eq(exclude);
                let is_whole = self.staged || self.unreadable == UnreadableEntry::default();
                is_like && is_whole && self.staged != using.made_without.is_empty() && options.internal.plain.is_none()
            }
            _ => Self::from_options(options, false).as_ref() == Some(self),
        }
    }

    pub(crate) fn options(&self) -> CloneOptions {
        let (exclude, mounts, unreadable) = (self.exclude.clone(), self.mounts, self.unreadable);
        CloneOptions { exclude, mounts, unreadable, ..CloneOptions::default() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpareSource {
    /// A directory, by its path without links.
    Directory(PathBuf),
    Template(String),
}

impl SpareSource {
    /// Returns the source as a command line names it.
    pub fn name(&self) -> PathBuf {
        match self {
            Self::Directory(path) => path.clone(),
            Self::Template(name) => format!("@{name}").into(),
        }
    }

    fn key(&self) -> Vec<u8> {
        // Unambiguous: a template's key begins with `@`, a path without links with a slash.
        self.name().into_os_string().into_encoded_bytes()
    }

    fn of_key(key: &[u8]) -> Self {
        match key.strip_prefix(b"@") {
            Some(name) => Self::Template(String::from_utf8_lossy(name).into_owned()),
            None => Self::Directory(OsString::from_vec(key.to_vec()).into()),
        }
    }
}

impl FromReport<SpareSource> for ReceiptPath {
    fn from_report(source: &SpareSource) -> Self {
        Self::new(&source.name())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Definition {
    pub(crate) source: SpareSource,
    /// The directory that holds `.calve-spares-UID`; `None` for spares in the store.
    pub(crate) parent: Option<PathBuf>,
    pub(crate) count: usize,
    pub(crate) shape: Shape,
}

impl Definition {
    fn id(&self, home: &Path) -> String {
        let mut rest = blake3::Hasher::new();
        rest.update(format!("{:?}", self.shape).as_bytes()).update(&[0]).update(&self.encoded_parent(home));
        format!("{}-{}", prefix(&self.source), &rest.finalize().to_hex()[..8])
    }

    fn encoded_parent(&self, home: &Path) -> Vec<u8> {
        self.parent.as_ref().map_or_else(Vec::new, |parent| from_home(parent, home).into_os_string().into_vec())
    }

    fn encode(&self, home: &Path) -> Vec<u8> {
        let flag = |is_set: bool| if is_set { "1" } else { "0" }.as_bytes().to_vec();
        let mut fields = vec![
            VERSION.as_bytes().to_vec(),
            self.source.key(),
            self.encoded_parent(home),
            self.count.to_string().into_bytes(),
            flag(self.shape.staged),
            flag(self.shape.mounts == Mounts::Stay),
            flag(self.shape.unreadable == UnreadableEntry::Skip),
        ];
        fields.extend(self.shape.exclude.iter().map(|pattern| pattern.as_bytes().to_vec()));
        // Each field ends in a NUL.
        fields.push(Vec::new());
        fields.join(&0)
    }

    fn decode(bytes: &[u8], home: &Path) -> Option<Self> {
        let mut fields = bytes.strip_suffix(b"\0")?.split(|&byte| byte == 0);
        if fields.next()? != VERSION.as_bytes() {
            return None;
        }
        let source = SpareSource::of_key(fields.next()?);
        let parent = Some(fields.next()?).filter(|parent| !parent.is_empty());
        let parent = parent.map(|parent| in_home(Path::new(OsStr::from_bytes(parent)), home));
        let count = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
        let staged = fields.next()? == b"1";
        let mounts = if fields.next()? == b"1" { Mounts::Stay } else { Mounts::Cross };
        let unreadable = if fields.next()? == b"1" { UnreadableEntry::Skip } else { UnreadableEntry::Fail };
        let exclude = fields.map(|field| String::from_utf8_lossy(field).into_owned()).collect();
        Some(Self { source, parent, count, shape: Shape { exclude, mounts, unreadable, staged } })
    }
}

/// Returns the common prefix of the ids of a source's sets.
fn prefix(source: &SpareSource) -> String {
    blake3::hash(&source.key()).to_hex()[..16].to_owned()
}

pub(crate) struct Home {
    pub(crate) directory: OwnDirectory,
}

impl Home {
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, Error> {
        Ok(OwnDirectory::open(path)?.map(|directory| Self { directory }))
    }

    /// Opens the store, or creates it. Its parent must exist.
    pub(crate) fn create(path: &Path) -> Result<Self, Error> {
        Ok(Self { directory: OwnDirectory::create(path)?.ok_or_else(|| gone(path))? })
    }

    /// Returns the sets of one source, or all; none if there is no store at `path`.
    pub(crate) fn sets_at(path: &Path, source: Option<&SpareSource>) -> Result<Vec<Set>, Error> {
        Self::open(path)?.map_or_else(|| Ok(Vec::new()), |home| home.sets(source))
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    fn calve_home(&self) -> PathBuf {
        let above = self.path().parent().unwrap_or(self.path());
        above.canonicalize().unwrap_or_else(|_| above.to_path_buf())
    }

    /// Returns `None` if another process has the lock and `operation` does not wait.
    pub(crate) fn take(&self, lock: &str, operation: FlockOperation) -> Result<Option<HeldLock>, Error> {
        self.directory.lock(lock, operation).io(Operation::LockSpares, self.path().join(lock))
    }

    /// Waits for the lock that builders and sweepers hold.
    pub(crate) fn lock(&self) -> Result<Option<HeldLock>, Error> {
        self.take(LOCK, FlockOperation::LockExclusive)
    }

    /// Waits for that lock on behalf of a waiting user: a builder in the background gives up.
    pub(crate) fn lock_soon(&self) -> Result<Option<HeldLock>, Error> {
        if let Some(held) = self.take(LOCK, FlockOperation::NonBlockingLockExclusive)? {
            return Ok(Some(held));
        }
        let _awaited = self.take(AWAITED, FlockOperation::LockShared)?;
        self.lock()
    }

    pub(crate) fn is_awaited(&self) -> bool {
        matches!(self.take(AWAITED, FlockOperation::NonBlockingLockExclusive), Ok(None))
    }

    pub(crate) fn find(&self, definition: &Definition) -> Result<Option<Set>, Error> {
        let is_same =
            |set: &Set| set.definition.parent == definition.parent && set.definition.shape == definition.shape;
        Ok(self.sets(Some(&definition.source))?.into_iter().find(is_same))
    }

    /// Deletes the record of a set, and its directories if they are empty.
    pub(crate) fn undefine(&self, set: &Set) -> Result<(), Error> {
        set.records.remove(SET)?;
        if let Some(parent) = &set.definition.parent {
            let above = parent.join(directory_name());
            let _ = rustix::fs::unlinkat(CWD, above.join(&set.id), AtFlags::REMOVEDIR);
            if let Ok(Some(directory)) = OwnDirectory::open(&above) {
                remove_place(directory.as_fd(), &directory_name());
            }
        }
        remove_records(set.records.as_fd(), &[PAUSED, WATCHED, MOUNT].map(str::as_bytes));
        let _ = rustix::fs::unlinkat(&self.directory, &*set.id, AtFlags::REMOVEDIR);
        Ok(())
    }

    pub(crate) fn sets(&self, source: Option<&SpareSource>) -> Result<Vec<Set>, Error> {
        let prefix = source.map(prefix).unwrap_or_default();
        let mut sets = Vec::new();
        for name in self.directory.names()? {
            if name.to_bytes().starts_with(prefix.as_bytes())
                && let Some(set) = Set::open(self, sys::path(&name))?
                && source.is_none_or(|source| set.definition.source == *source)
            {
                sets.push(set);
            }
        }
        Ok(sets)
    }

    pub(crate) fn unreadable_sets(&self) -> Result<Vec<PathBuf>, Error> {
        let mut found = Vec::new();
        for name in self.directory.names()? {
            let path = self.path().join(sys::path(&name)).join(SET);
            if rustix::fs::lstat(&path).is_ok() && Set::open(self, sys::path(&name))?.is_none() {
                found.push(path);
            }
        }
        Ok(found)
    }

    /// Writes the record of a set. An existing set keeps its id, which derives from its first place.
    pub(crate) fn define(&self, definition: &Definition) -> Result<Set, Error> {
        let home = self.calve_home();
        let there = self.find(definition)?;
        let id = PathBuf::from(there.map_or_else(|| definition.id(&home), |set| set.id));
        let gone = || gone(&self.path().join(&id));
        let records = self.directory.create_in(&id)?.ok_or_else(gone)?;
        records.write(SET, &definition.encode(&home))?;
        Set::open(self, &id)?.ok_or_else(gone)
    }
}

fn gone(directory: &Path) -> Error {
    Error::io(Operation::OpenDirectory, directory, Errno::NOENT)
}

pub(crate) struct Set {
    pub(crate) definition: Definition,
    pub(crate) id: String,
    pub(crate) paused: bool,
    pub(crate) watched: bool,
    pub(crate) records: OwnDirectory,
}

impl Set {
    fn open(home: &Home, name: &Path) -> Result<Option<Self>, Error> {
        let Ok(Some(records)) = home.directory.open_in(name) else { return Ok(None) };
        let Some(bytes) = records.read(SET)? else { return Ok(None) };
        let Some(definition) = Definition::decode(&bytes, &home.calve_home()) else { return Ok(None) };
        let (paused, watched) = (records.has(PAUSED), records.has(WATCHED));
        Ok(Some(Self { definition, id: name.to_string_lossy().into_owned(), paused, watched, records }))
    }

    pub(crate) fn pause(&self, paused: bool) -> Result<(), Error> {
        if paused { self.records.write(PAUSED, b"") } else { self.records.remove(PAUSED).map(drop) }
    }

    pub(crate) fn is_defined(&self) -> bool {
        self.records.has(SET)
    }

    pub(crate) fn directory_path(&self) -> PathBuf {
        match &self.definition.parent {
            None => self.records.path().to_path_buf(),
            Some(parent) => parent.join(directory_name()).join(&self.id),
        }
    }

    pub(crate) fn open_directory(&self) -> Result<Option<OwnDirectory>, Error> {
        let Some(parent) = &self.definition.parent else { return OwnDirectory::open(self.records.path()) };
        let above = OwnDirectory::open(&parent.join(directory_name()))?;
        above.map_or(Ok(None), |above| above.open_in(Path::new(&self.id)))
    }

    /// Returns the spares, newest first, ready or not.
    pub(crate) fn spares(&self) -> Result<Vec<SpareDirectory>, Error> {
        self.open_directory()?.map_or_else(|| Ok(Vec::new()), spares_in)
    }

    pub(crate) fn check_mounted(&self) -> Result<(), Error> {
        let point = self.records.read(MOUNT)?;
        let point = point.filter(|point| !point.is_empty() && matches!(self.open_directory(), Ok(None)));
        let Some(point) = point.map(|point| PathBuf::from(OsString::from_vec(point))) else { return Ok(()) };
        if is_mounted(&point)? {
            return Ok(());
        }
        let (source_path, record) = (self.definition.source.name(), self.records.path().join(MOUNT));
        Err(Error::SparesNotMounted { source_path, path: point, record })
    }

    pub(crate) fn create_directory(&self) -> Result<OwnDirectory, Error> {
        self.check_mounted()?;
        let path = self.directory_path();
        if let Some(parent) = &self.definition.parent {
            let above = parent.join(directory_name());
            let make = || OwnDirectory::create(&above);
            let point = fill_place(&above, make, |opened| match rustix::fs::mkdirat(opened, &self.id, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => Ok(sys::mount_point(opened).unwrap_or_default()),
                Err(errno) => Err(Error::io(Operation::CreateDirectory, &path, errno)),
            })?;
            let point = point.as_os_str().as_bytes();
            if self.records.read(MOUNT)?.as_deref() != Some(point) {
                self.records.write(MOUNT, point)?;
            }
        }
        self.open_directory()?.ok_or_else(|| gone(&path))
    }
}

pub(crate) fn spares_in(directory: OwnDirectory) -> Result<Vec<SpareDirectory>, Error> {
    let mut names = directory.names()?;
    names.retain(|name| is_spare_name(name));
    names.sort_by(|a, b| b.cmp(a));
    let directory = Arc::new(directory);
    Ok(names.into_iter().filter_map(|name| SpareDirectory::open(&directory, name)).collect())
}

fn directory_name() -> String {
    format!(".calve-spares-{}", rustix::process::geteuid().as_raw())
}

/// Returns where below `directory`, relative to it, the sets of the store `home` keep spares.
pub(crate) fn places_below(home: &Path, directory: &Path) -> Vec<PathBuf> {
    // An unusable store must not prevent a clone.
    let sets = Home::sets_at(home, None).unwrap_or_default();
    let Ok(directory) = directory.canonicalize() else { return Vec::new() };
    let places = sets.into_iter().filter_map(|set| set.definition.parent);
    places.filter_map(|place| Some(place.strip_prefix(&directory).ok()?.to_path_buf())).collect()
}

pub(crate) struct SpareDirectory {
    pub(crate) parent: Arc<OwnDirectory>,
    pub(crate) directory: OwnDirectory,
    pub(crate) name: CString,
}

/// Names sort by age.
pub(crate) fn new_spare_name(built_ns: u64) -> CString {
    CString::new(format!("{built_ns:016x}-{:016x}", sys::random())).unwrap_or_default()
}

fn is_spare_name(name: &CStr) -> bool {
    let name = name.to_bytes();
    name.len() == 33
        && name.iter().enumerate().all(|(at, byte)| if at == 16 { *byte == b'-' } else { byte.is_ascii_hexdigit() })
}

impl SpareDirectory {
    /// Returns `None` if the directory is not this user's own.
    pub(crate) fn open(parent: &Arc<OwnDirectory>, name: CString) -> Option<Self> {
        let directory = parent.open_in(sys::path(&name)).ok()??;
        Some(Self { parent: Arc::clone(parent), directory, name })
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn id(&self, set: &Set) -> String {
        format!("{}/{}", set.id, self.name.to_string_lossy())
    }

    /// Returns `None` if another process has the lock, or had it and took the spare away.
    pub(crate) fn lock(&self) -> Result<Option<HeldLock>, Error> {
        // A lock belongs to an open file description, so this needs its own.
        let lock = HeldLock::take(&self.directory, c".", DIRECTORY, FlockOperation::NonBlockingLockExclusive);
        let lock = lock.io(Operation::LockSpares, self.path())?;
        Ok(lock.filter(|lock| is_at(lock, &self.parent, &*self.name)))
    }

    pub(crate) fn record(&self) -> Result<Option<Record>, Error> {
        Record::open(self.directory.as_fd()).io(Operation::Open, self.path().join("record"))
    }

    pub(crate) fn head(&self) -> Result<Option<Head>, Error> {
        let has_tree = self.has_tree();
        Ok(self.record()?.filter(|_| has_tree).map(|record| record.head))
    }

    /// Returns whether the spare was finished. If it has no record, it was discarded since.
    pub(crate) fn has_tree(&self) -> bool {
        sys::stat_at(&self.directory, TREE).is_ok()
    }

    /// Marks the spare as not ready: the next sweep deletes it.
    pub(super) fn discard(&self) {
        let _ = rustix::fs::unlinkat(&self.directory, super::record::NAME, AtFlags::empty());
    }

    /// Removes the rest of a spare whose tree was moved away.
    pub(super) fn remove_empty(&self) {
        self.discard();
        let _ = rustix::fs::unlinkat(&self.parent, &*self.name, AtFlags::REMOVEDIR);
    }
}
