//! Where spares are kept.
//!
//! ```text
//! HOME/                      mode 0700; locked (flock) by the builder or sweeper
//!   KEY-OPTIONS/             one source, one set of options, one directory
//!     set                    what the set is: fields, each with a NUL behind it
//!     paused                 there if no more are to be built
//!     watched                there if clones start the watcher
//!     mount                  where the file system of PLACE is mounted
//!     TIME-RANDOM/           one spare, when the directory is HOME; locked by its builder or claimer
//!       tree, record         the spare; it is ready when it has a record
//! PLACE/.calve-spares-UID/   the spares of sets that need another file system
//!   .gitignore
//!   KEY-OPTIONS/TIME-RANDOM/
//! ```
//!
//! A directory of a spare whose lock is free and that has no record is what a killed process left.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::record::{Head, Record};
use crate::error::{Error, IoContext};
use crate::json::{FromReport, ReceiptPath};
use crate::options::{CloneOptions, Mounts, UnreadableEntry};
use crate::remove::place::{fill_place, remove_place};
use crate::sys;
use crate::tree::held_lock::HeldLock;
use crate::tree::location::DIRECTORY;
use crate::tree::mounted::is_mounted;
use crate::tree::own::{self, NEW, make_directory, read_file, remove_files};
use crate::vocabulary::operation::Operation;

const SET: &CStr = c"set";
const PAUSED: &CStr = c"paused";
const WATCHED: &CStr = c"watched";
const AWAITED: &CStr = c"awaited";
/// The mount point of the file system that the spares are on, which tells spares that are gone from those that can be there again.
const MOUNT: &CStr = c"mount";
pub(super) const TREE: &CStr = c"tree";
const VERSION: &str = "calve-spares-3";
/// The first version, without `staged`. The second had only absolute paths.
const VERSION_1: &str = "calve-spares-1";
const VERSION_2: &str = "calve-spares-2";
/// The beginning of a path relative to CALVE_HOME, which may move with the spares in it.
const IN_HOME: &[u8] = b"./";

/// The options of a clone that decide on its contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) exclude: Vec<String>,
    pub(crate) mounts: Mounts,
    pub(crate) unreadable: UnreadableEntry,
    /// See [`crate::spares::SpareOptions::staged`].
    pub(crate) staged: bool,
}

impl Shape {
    /// Returns `None` for a plain copy, and for a selection by a function, which cannot be compared with another one.
    pub(crate) fn from_options(options: &CloneOptions, staged: bool) -> Option<Self> {
        let (exclude, mounts, unreadable) = (options.exclude.clone(), options.mounts, options.unreadable);
        let is_comparable = options.select.is_none() && options.internal.plain.is_none();
        is_comparable.then_some(Self { exclude, mounts, unreadable, staged })
    }

    /// Returns the shape of spares for the root of an assembled tree, or, if nothing is left out, of all that is in a directory.
    pub(crate) fn of_root(made_without: &[String]) -> Self {
        let CloneOptions { mounts, unreadable, .. } = CloneOptions::default();
        Self { exclude: made_without.to_vec(), mounts, unreadable, staged: !made_without.is_empty() }
    }

    /// Returns whether a spare of this shape serves a clone with these options.
    pub(super) fn serves(&self, options: &CloneOptions) -> bool {
        match (&options.spares, &options.select) {
            // Nothing is missing in a spare but what its patterns leave out, so nothing had to be passed over as unreadable.
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

/// The source of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpareSource {
    /// A directory, by its path without links.
    Directory(PathBuf),
    Template(String),
}

impl SpareSource {
    /// Returns it as a command line names it.
    pub fn name(&self) -> PathBuf {
        match self {
            Self::Directory(path) => path.clone(),
            Self::Template(name) => format!("@{name}").into(),
        }
    }

    fn key(&self) -> Vec<u8> {
        // No path without links begins with anything but a slash.
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
    /// The directory beside or in which the spares are; `None` for the store itself.
    pub(crate) parent: Option<PathBuf>,
    pub(crate) count: usize,
    pub(crate) shape: Shape,
}

impl Definition {
    /// Returns the name of the set's directory.
    fn id(&self, home: &Path) -> String {
        let mut rest = blake3::Hasher::new();
        rest.update(format!("{:?}", self.shape).as_bytes()).update(&[0]).update(&self.encoded_parent(home));
        format!("{}-{}", prefix(&self.source), &rest.finalize().to_hex()[..8])
    }

    /// `home`: CALVE_HOME, without links.
    fn encoded_parent(&self, home: &Path) -> Vec<u8> {
        let Some(parent) = &self.parent else { return Vec::new() };
        match parent.strip_prefix(home) {
            Ok(inside) => [IN_HOME, inside.as_os_str().as_bytes()].concat(),
            Err(_) => parent.as_os_str().as_bytes().to_vec(),
        }
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
        let version = fields.next()?;
        if ![VERSION, VERSION_2, VERSION_1].map(str::as_bytes).contains(&version) {
            return None;
        }
        let source = SpareSource::of_key(fields.next()?);
        let parent = Some(fields.next()?).filter(|parent| !parent.is_empty());
        let parent = parent.map(|parent| match parent.strip_prefix(IN_HOME) {
            Some(inside) => home.join(OsStr::from_bytes(inside)).components().collect(),
            None => PathBuf::from(OsStr::from_bytes(parent)),
        });
        let count = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
        let staged = version != VERSION_1.as_bytes() && fields.next()? == b"1";
        let mounts = if fields.next()? == b"1" { Mounts::Stay } else { Mounts::Cross };
        let unreadable = if fields.next()? == b"1" { UnreadableEntry::Skip } else { UnreadableEntry::Fail };
        let exclude = fields.map(|field| String::from_utf8_lossy(field).into_owned()).collect();
        Some(Self { source, parent, count, shape: Shape { exclude, mounts, unreadable, staged } })
    }
}

/// Returns the beginning of the names of a source's sets.
fn prefix(source: &SpareSource) -> String {
    blake3::hash(&source.key()).to_hex()[..16].to_owned()
}

pub(crate) struct Home {
    directory: OwnedFd,
    path: PathBuf,
}

impl Home {
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, Error> {
        Ok(open_own(CWD, path, path)?.map(|directory| Self { directory, path: path.to_path_buf() }))
    }

    /// Opens the store, and makes it if it is missing. The directory above it must exist.
    pub(crate) fn create(path: &Path) -> Result<Self, Error> {
        make_directory(CWD, path, path)?;
        Self::open(path)?.ok_or_else(|| Error::io(Operation::OpenDirectory, path, Errno::NOENT))
    }

    /// Returns the sets of the store at `path`, if there is one: of one source, or all.
    pub(crate) fn sets_at(path: &Path, source: Option<&SpareSource>) -> Result<Vec<Set>, Error> {
        Self::open(path)?.map_or_else(|| Ok(Vec::new()), |home| home.sets(source))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Returns the directory that the store is in, without links.
    fn calve_home(&self) -> PathBuf {
        let above = self.path.parent().unwrap_or(&self.path);
        above.canonicalize().unwrap_or_else(|_| above.to_path_buf())
    }

    /// Waits for the lock that builders and sweepers hold.
    pub(crate) fn lock(&self) -> Result<Option<HeldLock>, Error> {
        lock(self.directory.as_fd(), c".", &self.path, FlockOperation::LockExclusive)
    }

    /// Waits for that lock on behalf of a user who waits too: a builder in the background gives up.
    pub(crate) fn lock_soon(&self) -> Result<Option<HeldLock>, Error> {
        if let Some(held) = lock(self.directory.as_fd(), c".", &self.path, FlockOperation::NonBlockingLockExclusive)? {
            return Ok(Some(held));
        }
        let _awaited = self.lock_inside(AWAITED, FlockOperation::LockShared)?;
        self.lock()
    }

    /// Returns whether another process is in [`Self::lock_soon`].
    pub(crate) fn is_awaited(&self) -> bool {
        let path = self.path.join("awaited");
        let free = lock(self.directory.as_fd(), AWAITED, &path, FlockOperation::NonBlockingLockExclusive);
        matches!(free, Ok(None))
    }

    /// Takes the place of the one process that waits for the lock. `None` if another one has it.
    pub(crate) fn wait_in_line(&self) -> Result<Option<HeldLock>, Error> {
        self.lock_inside(c"waiting", FlockOperation::NonBlockingLockExclusive)
    }

    /// Takes the lock of a directory in the store, which is made if it is missing.
    fn lock_inside(&self, name: &CStr, operation: FlockOperation) -> Result<Option<HeldLock>, Error> {
        let path = self.path.join(sys::path(name));
        make_directory(self.directory.as_fd(), sys::path(name), &path)?;
        lock(self.directory.as_fd(), name, &path, operation)
    }

    /// Returns the name of the set's directory. One that is there keeps its name, which other versions made of the absolute path.
    fn id_of(&self, definition: &Definition) -> Result<String, Error> {
        let is_same =
            |set: &Set| set.definition.parent == definition.parent && set.definition.shape == definition.shape;
        let there = self.sets(Some(&definition.source))?.into_iter().find(is_same);
        Ok(there.map_or_else(|| definition.id(&self.calve_home()), |set| set.id))
    }

    /// Returns whether such a set is written down.
    pub(crate) fn has(&self, definition: &Definition) -> Result<bool, Error> {
        let name = CString::new(self.id_of(definition)?).unwrap_or_default();
        Ok(Set::open(self, &name)?.is_some())
    }

    /// Makes it no set any more, and removes its directories that are empty.
    pub(crate) fn undefine(&self, set: &Set) -> Result<(), Error> {
        set.say(SET, false)?;
        let name = Path::new(&set.id);
        if let Some(parent) = &set.definition.parent {
            let above = parent.join(directory_name());
            let _ = rustix::fs::unlinkat(CWD, above.join(name), AtFlags::REMOVEDIR);
            if let Ok(Some(directory)) = open_own(CWD, &above, &above) {
                remove_place(directory.as_fd(), &directory_name());
            }
        }
        remove_files(set.directory.as_fd(), &set.path, &[PAUSED, WATCHED, MOUNT]);
        let _ = rustix::fs::unlinkat(&self.directory, name, AtFlags::REMOVEDIR);
        Ok(())
    }

    pub(crate) fn sets(&self, source: Option<&SpareSource>) -> Result<Vec<Set>, Error> {
        let prefix = source.map(prefix).unwrap_or_default();
        let mut sets = Vec::new();
        for name in names(self.directory.as_fd(), &self.path)? {
            if name.to_bytes().starts_with(prefix.as_bytes())
                && let Some(set) = Set::open(self, &name)?
                && source.is_none_or(|source| set.definition.source == *source)
            {
                sets.push(set);
            }
        }
        Ok(sets)
    }

    pub(crate) fn unreadable_sets(&self) -> Result<Vec<PathBuf>, Error> {
        let mut found = Vec::new();
        for name in names(self.directory.as_fd(), &self.path)? {
            let path = self.path.join(sys::path(&name)).join("set");
            if rustix::fs::lstat(&path).is_ok() && Set::open(self, &name)?.is_none() {
                found.push(path);
            }
        }
        Ok(found)
    }

    /// Writes a set down, which from then on is one.
    pub(crate) fn define(&self, definition: &Definition) -> Result<Set, Error> {
        let home = self.calve_home();
        let id = self.id_of(definition)?;
        let name = CString::new(id.as_str()).unwrap_or_default();
        let path = self.path.join(&id);
        make_directory(self.directory.as_fd(), Path::new(&id), &path)?;
        let directory = open_own(self.directory.as_fd(), Path::new(&id), &path)?
            .ok_or_else(|| Error::io(Operation::OpenDirectory, &path, Errno::NOENT))?;
        write_file(directory.as_fd(), SET, &definition.encode(&home), &path)?;
        Set::open(self, &name)?.ok_or_else(|| Error::io(Operation::OpenDirectory, &path, Errno::NOENT))
    }
}

pub(crate) struct Set {
    pub(crate) definition: Definition,
    pub(crate) id: String,
    pub(crate) paused: bool,
    pub(crate) watched: bool,
    directory: OwnedFd,
    path: PathBuf,
}

impl Set {
    fn open(home: &Home, name: &CStr) -> Result<Option<Self>, Error> {
        let relative = sys::path(name);
        let path = home.path.join(relative);
        let Ok(Some(directory)) = open_own(home.directory.as_fd(), relative, &path) else { return Ok(None) };
        let Some(bytes) = read_file(directory.as_fd(), Path::new("set"), &path.join("set"))? else { return Ok(None) };
        let Some(definition) = Definition::decode(&bytes, &home.calve_home()) else { return Ok(None) };
        let has = |name| sys::stat_at(&directory, name).is_ok();
        let (paused, watched) = (has(PAUSED), has(WATCHED));
        Ok(Some(Self { definition, id: relative.to_string_lossy().into_owned(), paused, watched, directory, path }))
    }

    pub(crate) fn pause(&self, paused: bool) -> Result<(), Error> {
        self.say(PAUSED, paused)
    }

    /// Says whether clones start the watcher.
    pub(crate) fn keep_watched(&self, watched: bool) -> Result<(), Error> {
        self.say(WATCHED, watched)
    }

    fn say(&self, name: &CStr, is_so: bool) -> Result<(), Error> {
        if is_so {
            return write_file(self.directory.as_fd(), name, b"", &self.path);
        }
        let removed = sys::unless_missing(rustix::fs::unlinkat(&self.directory, name, AtFlags::empty()));
        removed.map(drop).io(Operation::Remove, self.path.join(sys::path(name)))
    }

    pub(crate) fn is_defined(&self) -> bool {
        sys::stat_at(&self.directory, SET).is_ok()
    }

    pub(crate) fn directory_path(&self) -> PathBuf {
        match &self.definition.parent {
            None => self.path.clone(),
            Some(parent) => parent.join(directory_name()).join(&self.id),
        }
    }

    pub(crate) fn open_directory(&self) -> Result<Option<OwnedFd>, Error> {
        let path = self.directory_path();
        let Some(parent) = &self.definition.parent else { return open_own(CWD, &path, &path) };
        let above = parent.join(directory_name());
        let above = open_own(CWD, &above, &above)?;
        above.map_or(Ok(None), |above| open_own(above.as_fd(), Path::new(&self.id), &path))
    }

    /// Returns its spares, the newest first, ready or not.
    pub(crate) fn spares(&self) -> Result<Vec<SpareDirectory>, Error> {
        self.open_directory()?.map_or_else(|| Ok(Vec::new()), |directory| self.spares_in(directory))
    }

    /// Returns the spares that are in its directory, which is open.
    pub(crate) fn spares_in(&self, directory: OwnedFd) -> Result<Vec<SpareDirectory>, Error> {
        let (directory, path) = (Arc::new(directory), self.directory_path());
        let mut names = names(directory.as_fd(), &path)?;
        names.retain(|name| is_spare_name(name));
        names.sort_by(|a, b| b.cmp(a));
        Ok(names.into_iter().filter_map(|name| SpareDirectory::open(&directory, name, &path)).collect())
    }

    /// Fails if the file system of the spares is not mounted.
    pub(crate) fn check_mounted(&self) -> Result<(), Error> {
        let point = read_file(self.directory.as_fd(), Path::new("mount"), &self.path.join("mount"))?;
        let point = point.filter(|point| !point.is_empty() && matches!(self.open_directory(), Ok(None)));
        let Some(point) = point.map(|point| PathBuf::from(OsString::from_vec(point))) else { return Ok(()) };
        if is_mounted(&point)? {
            return Ok(());
        }
        let (source_path, record) = (self.definition.source.name(), self.path.join("mount"));
        Err(Error::SparesNotMounted { source_path, path: point, record })
    }

    pub(crate) fn create_directory(&self) -> Result<OwnedFd, Error> {
        self.check_mounted()?;
        let path = self.directory_path();
        if let Some(parent) = &self.definition.parent {
            let above = parent.join(directory_name());
            let make = || {
                make_directory(CWD, &above, &above)?;
                open_own(CWD, &above, &above)
            };
            let point = fill_place(&above, make, |opened| match rustix::fs::mkdirat(opened, &self.id, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => Ok(sys::mount_point(opened).unwrap_or_default()),
                Err(errno) => Err(Error::io(Operation::CreateDirectory, &path, errno)),
            })?;
            write_file(self.directory.as_fd(), MOUNT, point.as_os_str().as_bytes(), &self.path)?;
        }
        self.open_directory()?.ok_or_else(|| Error::io(Operation::OpenDirectory, &path, Errno::NOENT))
    }
}

/// Returns the name of this user's directory for spares that are not in the store.
fn directory_name() -> String {
    format!(".calve-spares-{}", rustix::process::geteuid().as_raw())
}

/// Returns the directories in which sets of the store `home` keep spares, of those that are in `directory`, relative to it.
pub(crate) fn places_below(home: &Path, directory: &Path) -> Vec<PathBuf> {
    // A store that cannot be used is no reason not to clone.
    let sets = Home::sets_at(home, None).unwrap_or_default();
    let Ok(directory) = directory.canonicalize() else { return Vec::new() };
    let places = sets.into_iter().filter_map(|set| set.definition.parent);
    places.filter_map(|place| Some(place.strip_prefix(&directory).ok()?.to_path_buf())).collect()
}

pub(crate) struct SpareDirectory {
    /// The directory that it is in.
    pub(crate) parent: Arc<OwnedFd>,
    pub(crate) directory: OwnedFd,
    pub(crate) name: CString,
    pub(crate) path: PathBuf,
}

/// Makes a name for a new spare. Names sort by age.
pub(crate) fn new_spare_name(built_ns: u64) -> CString {
    CString::new(format!("{built_ns:016x}-{:016x}", sys::random())).unwrap_or_default()
}

fn is_spare_name(name: &CStr) -> bool {
    let name = name.to_bytes();
    name.len() == 33
        && name.iter().enumerate().all(|(at, byte)| if at == 16 { *byte == b'-' } else { byte.is_ascii_hexdigit() })
}

impl SpareDirectory {
    /// Opens the spare of that name in the directory of a set, at `above`. `None` if it is not this user's own.
    pub(crate) fn open(parent: &Arc<OwnedFd>, name: CString, above: &Path) -> Option<Self> {
        let path = above.join(sys::path(&name));
        let directory = open_own(parent.as_fd(), sys::path(&name), &path).ok()??;
        Some(Self { parent: Arc::clone(parent), directory, name, path })
    }

    /// Returns the name of the spare for the watcher.
    pub(crate) fn id(&self, set: &Set) -> String {
        format!("{}/{}", set.id, self.name.to_string_lossy())
    }

    /// Takes the spare's lock. `None` if another process has it, or had it and took the spare away.
    pub(crate) fn lock(&self) -> Result<Option<HeldLock>, Error> {
        let lock = lock(self.directory.as_fd(), c".", &self.path, FlockOperation::NonBlockingLockExclusive)?;
        let Some(lock) = lock else { return Ok(None) };
        let named = sys::stat_at(&self.parent, &*self.name);
        let mine = rustix::fs::fstat(&lock).io(Operation::Stat, &self.path)?;
        Ok(named.is_ok_and(|named| named.st_ino == mine.st_ino).then_some(lock))
    }

    pub(crate) fn record(&self) -> Result<Option<Record>, Error> {
        Record::open(self.directory.as_fd()).io(Operation::Open, self.path.join("record"))
    }

    pub(crate) fn head(&self) -> Result<Option<Head>, Error> {
        let has_tree = self.has_tree();
        Ok(self.record()?.filter(|_| has_tree).map(|record| record.head))
    }

    /// Returns whether it was finished. Without a record it was found to be of no use since.
    pub(crate) fn has_tree(&self) -> bool {
        sys::stat_at(&self.directory, TREE).is_ok()
    }

    /// Makes it one that is not ready: the next sweep deletes it.
    pub(super) fn discard(&self) {
        let _ = rustix::fs::unlinkat(&self.directory, super::record::NAME, AtFlags::empty());
    }

    /// Removes the rest when the tree is gone.
    pub(super) fn remove_empty(&self) {
        self.discard();
        let _ = rustix::fs::unlinkat(&self.parent, &*self.name, AtFlags::REMOVEDIR);
    }
}

/// Locks the entry `name` of a directory. Returns `None` if another process has the lock and the operation does not wait.
fn lock(
    directory: BorrowedFd<'_>,
    name: &CStr,
    path: &Path,
    operation: FlockOperation,
) -> Result<Option<HeldLock>, Error> {
    // A description of its own: a lock belongs to one.
    let opened = sys::open_at(directory, name, DIRECTORY).io(Operation::LockSpares, path)?;
    HeldLock::take(opened, operation).io(Operation::LockSpares, path)
}

/// Opens a directory that is this user's own, if it exists. Refuses one that another user owns or may write to.
fn open_own(at: BorrowedFd<'_>, name: &Path, path: &Path) -> Result<Option<OwnedFd>, Error> {
    own::open_directory(at, name, path, |errno| Error::io(Operation::OpenDirectory, path, errno))
}

fn names(directory: BorrowedFd<'_>, path: &Path) -> Result<Vec<CString>, Error> {
    own::names(directory, Path::new("."), path)
}

/// Writes a file that is there whole or not at all.
fn write_file(directory: BorrowedFd<'_>, name: &CStr, bytes: &[u8], path: &Path) -> Result<(), Error> {
    let shown = || path.join(sys::path(name));
    let new = CString::new([NEW, format!("{:016x}", sys::random()).as_bytes()].concat()).unwrap_or_default();
    let file =
        sys::create_at(directory, &*new, OFlags::WRONLY, Mode::RUSR | Mode::WUSR).io(Operation::Create, shown())?;
    let written =
        File::from(file).write_all(bytes).and_then(|()| Ok(rustix::fs::renameat(directory, &*new, directory, name)?));
    written.io(Operation::Write, shown()).inspect_err(|_| {
        let _ = rustix::fs::unlinkat(directory, &*new, AtFlags::empty());
    })
}
