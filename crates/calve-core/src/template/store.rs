//! Where templates are kept.
//!
//! ```text
//! CALVE_HOME/templates/           mode 0700
//!   NAME.template                 the record: renaming another one over it swaps the template in one step
//!   .lock                         held (flock) while a record is written or removed
//!   versions/VERSION              the place of a version (`Whereabouts`), locked by its builder or (shared) readers
//!   trees/VERSION/                one version, when the directory is CALVE_HOME
//!     tree, manifest
//!   arrivals/                     parts of incoming templates; locked while they are fetched
//!   images/                       notes of images that templates were sent to or came from
//! PLACE/.calve-templates-UID/     mode 0700; versions of templates that are kept elsewhere
//! ```
//!
//! An unlocked version that no record names was left by a killed process, or has been refreshed or removed.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::manifest::key;
use super::record::{FrozenState, Stamp, Template};
use crate::error::{Error, IoContext, TemplateError};
use crate::home::{from_home, in_home};
use crate::options::RemoveOptions;
use crate::remove::place::remove_place;
use crate::remove::remove_tree;
use crate::sys;
use crate::tree::held_lock::HeldLock;
use crate::tree::location::{DIRECTORY, is_at, is_mounted};
use crate::tree::own::{OwnDirectory, read_file, sweep_records};
use crate::tree::stable::Moment;
use crate::vocabulary::hidden_name::templates_directory;
use crate::vocabulary::operation::Operation;

/// The result of a sweep.
#[derive(Debug, Default)]
pub struct SweptTemplates {
    /// Directories with trash for [`crate::reap`].
    pub trash: Vec<PathBuf>,
    /// Why an unused version could not be removed.
    pub failure: Option<Error>,
}

const RECORD: &str = ".template";
const VERSIONS: &str = "versions";
const TREES: &str = "trees";
pub(super) const ARRIVALS: &str = "arrivals";
pub(super) const IMAGES: &str = "images";

#[derive(Debug, Clone)]
pub(super) struct Store {
    pub(super) path: PathBuf,
}

impl Store {
    pub(super) fn trees(&self) -> PathBuf {
        self.path.join(TREES)
    }

    fn home(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    fn versions(&self) -> PathBuf {
        self.path.join(VERSIONS)
    }

    pub(super) fn record_path(&self, name: &str) -> PathBuf {
        self.path.join(record_of(name))
    }

    pub(super) fn prepare(&self) -> Result<(), Error> {
        let mut above = std::fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(above.recursive(true), 0o700);
        above.create(self.home()).io(Operation::CreateDirectory, self.home())?;
        for directory in [&self.path, &self.versions(), &self.trees()] {
            make_own(directory)?;
        }
        Ok(())
    }

    /// Returns `None` if no template was ever made here.
    pub(super) fn records(&self) -> Result<Option<OwnDirectory>, Error> {
        open_own(&self.path)
    }

    pub(super) fn lock(&self) -> Result<LockedRecords<'_>, Error> {
        let records = self.records()?.ok_or(Errno::NOENT).io(Operation::LockTemplates, &self.path)?;
        let lock = records.lock(".lock", FlockOperation::LockExclusive);
        let lock = lock.and_then(|lock| lock.ok_or(Errno::WOULDBLOCK)).io(Operation::LockTemplates, &self.path)?;
        sweep_records(&records);
        Ok(LockedRecords { store: self, records, _lock: lock })
    }

    pub(super) fn read(&self, name: &str) -> Result<Option<Template>, Error> {
        let Some(records) = self.records()? else { return Ok(None) };
        let Some(bytes) = records.read(&record_of(name))? else { return Ok(None) };
        let damaged =
            || TemplateError::Damaged { name: name.into(), path: self.record_path(name), what: "cannot be read" };
        Ok(Some(Template::decode(name, &bytes, &self.trees(), self.home()).ok_or_else(damaged)?))
    }

    pub(super) fn names(&self) -> Result<Vec<String>, Error> {
        let Some(records) = self.records()? else { return Ok(Vec::new()) };
        let mut names: Vec<String> = records
            .names()?
            .iter()
            .filter_map(|name| Some(name.to_str().ok()?.strip_suffix(RECORD)?.to_owned()))
            .filter(|name| super::name::check(name).is_ok())
            .collect();
        names.sort();
        Ok(names)
    }

    /// Makes a new version's directory in `directory`, open as `place`, after taking the version's lock.
    pub(super) fn reserve(
        &self,
        name: &str,
        directory: &Path,
        place: BorrowedFd<'_>,
    ) -> Result<ReservedVersion, Error> {
        loop {
            let version = format!("{name}-{:016x}", sys::random());
            let path = self.versions().join(&version);
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
            let lock = HeldLock::take(CWD, &*path, flags, FlockOperation::NonBlockingLockExclusive);
            // A sweeper may have seen it before it was locked.
            let Some(lock) = lock.io(Operation::Create, &path)? else { continue };
            let mount_point = sys::mount_point(place).unwrap_or_default();
            let whereabouts = Whereabouts { directory, claim: &path, mount_point: &mount_point };
            let file = lock.as_fd().try_clone_to_owned();
            let written = file.and_then(|file| File::from(file).write_all(&whereabouts.encode(self)));
            let directory = directory.join(&version);
            let reserved = ReservedVersion { name: name.to_owned(), version, directory, _lock: lock, path };
            written.io(Operation::Write, &reserved.path)?;
            if let Err(errno) = rustix::fs::mkdirat(place, &*reserved.version, Mode::RWXU) {
                let error = Error::io(Operation::CreateDirectory, &reserved.directory, errno);
                reserved.discard();
                return Err(error);
            }
            return Ok(reserved);
        }
    }

    /// Keeps the files of a version while the lock is held. `None` if they are gone or about to go.
    pub(super) fn hold(&self, version: &str) -> Result<Option<HeldLock>, Error> {
        let path = self.versions().join(version);
        let taken = sys::unless_missing(HeldLock::take(CWD, &*path, OFlags::RDONLY, FlockOperation::LockShared));
        Ok(taken.io(Operation::Open, &path)?.flatten())
    }

    pub(super) fn missing(&self, template: &Template) -> Error {
        let name = template.name.clone();
        match self.away(&template.version) {
            Ok(Some(path)) => TemplateError::NotMounted { record: self.record_path(&name), name, path }.into(),
            Ok(None) => TemplateError::Gone { name, path: template.tree.clone() }.into(),
            Err(error) => error,
        }
    }

    /// Returns the mount point of a version's file system, if that is not mounted.
    pub(super) fn away(&self, version: &str) -> Result<Option<PathBuf>, Error> {
        let path = self.versions().join(version);
        let bytes = read_file(CWD, &path, &path)?.unwrap_or_default();
        Whereabouts::decode(&bytes).away(self.home())
    }

    /// Removes the versions that no record names and no process uses.
    pub(super) fn sweep(&self) -> Result<SweptTemplates, Error> {
        let mut swept = SweptTemplates { failure: self.sweep_arrivals().err(), ..SweptTemplates::default() };
        let Some(versions) = open_own(&self.versions())? else { return Ok(swept) };
        for name in versions.names()? {
            let path = versions.path().join(sys::path(&name));
            let taken = HeldLock::take(CWD, &*path, OFlags::RDONLY, FlockOperation::NonBlockingLockExclusive);
            let Ok(Some(lock)) = taken else { continue };
            // With the lock held: the builder has published it by now, or never will.
            let name = name.to_string_lossy();
            let Some((template, _)) = name.rsplit_once('-') else { continue };
            let is_named = |record: Option<Template>| record.is_some_and(|record| record.version == name);
            // An unreadable record may name it.
            if self.read(template).map_or(true, is_named) {
                continue;
            }
            match self.take_away(lock, &path, &name) {
                Ok(directory) => swept.trash.extend(directory),
                // The next command tries again.
                Err(error) => swept.failure = Some(error),
            }
        }
        swept.trash.sort();
        swept.trash.dedup();
        Ok(swept)
    }

    /// Moves a version to the trash, then removes its lock. Returns the directory with the trash.
    fn take_away(&self, lock: HeldLock, path: &Path, version: &str) -> Result<Option<PathBuf>, Error> {
        let bytes = read_file(CWD, path, path)?.unwrap_or_default();
        let whereabouts = Whereabouts::decode(&bytes);
        let directory = match whereabouts.directory {
            own if own == Path::new(TREES) => self.trees(),
            other => in_home(other, self.home()),
        };
        let trash = match open_own(&directory) {
            // The builder was killed before it made anything.
            _ if bytes.is_empty() => None,
            _ if whereabouts.is_anothers(&lock) => None,
            // Its file system may be mounted again.
            Ok(None) if whereabouts.away(self.home())?.is_some() => return Ok(None),
            // An earlier version of Calve did not note the mount point, so the file system may only be unmounted.
            Ok(None)
                if whereabouts.mount_point.as_os_str().is_empty() && !directory.parent().is_some_and(Path::is_dir) =>
            {
                return Ok(None);
            }
            Ok(None) => None,
            // Another builder's now.
            Err(_) => return Ok(None),
            Ok(Some(_)) => match remove_tree(&directory.join(version), &RemoveOptions::default()) {
                Ok(report) => report.trashed.map(|_| directory),
                Err(Error::Missing(_)) => None,
                Err(error) => return Err(error),
            },
        };
        let _ = rustix::fs::unlink(path);
        drop(lock);
        Ok(trash)
    }
}

/// The records of all templates, while no other process writes or removes any.
pub(super) struct LockedRecords<'s> {
    store: &'s Store,
    records: OwnDirectory,
    _lock: HeldLock,
}

impl LockedRecords<'_> {
    pub(super) fn write(&self, template: &Template) -> Result<(), Error> {
        self.records.write(&record_of(&template.name), &template.encode(&self.store.trees(), self.store.home()))
    }

    pub(super) fn remove(&self, name: &str) -> Result<(), Error> {
        let was_there = self.records.remove(&record_of(name))?;
        if was_there { Ok(()) } else { Err(TemplateError::Unknown(name.into()).into()) }
    }
}

fn record_of(name: &str) -> String {
    format!("{name}{RECORD}")
}

/// A version that is being built, and locked until this is dropped.
pub(super) struct ReservedVersion {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) directory: PathBuf,
    _lock: HeldLock,
    path: PathBuf,
}

impl ReservedVersion {
    pub(super) fn discard(self) {
        let options = RemoveOptions { wait: crate::options::RemovalWait::Yes, ..RemoveOptions::default() };
        match remove_tree(&self.directory, &options) {
            Ok(_) | Err(Error::Missing(_)) => {
                let _ = rustix::fs::unlink(&self.path);
                if let Some(Ok(Some(place))) = self.directory.parent().map(open_own) {
                    remove_place(place.as_fd(), &templates_directory());
                }
            }
            // The next command tries again.
            Err(_) => {}
        }
    }
}

/// The place of a version: `trees` or another directory relative to CALVE_HOME, or a directory elsewhere; then, after a
/// NUL each: this file's own path if elsewhere, which tells a copied CALVE_HOME (it does not own the directory) from a
/// moved one; and the mount point of the directory's file system, which tells deleted files from unmounted ones.
struct Whereabouts<'a> {
    directory: &'a Path,
    claim: &'a Path,
    mount_point: &'a Path,
}

impl<'a> Whereabouts<'a> {
    fn encode(&self, store: &Store) -> Vec<u8> {
        if self.directory == store.trees() {
            return TREES.into();
        }
        let directory = from_home(self.directory, store.home());
        let claim = if directory.is_relative() { Path::new("") } else { self.claim };
        let mount_point = from_home(self.mount_point, store.home());
        [&*directory, claim, &*mount_point].map(|path| path.as_os_str().as_bytes()).join(&0)
    }

    fn decode(bytes: &'a [u8]) -> Self {
        let mut paths = bytes.splitn(3, |&byte| byte == 0).map(|path| Path::new(OsStr::from_bytes(path)));
        let mut next = || paths.next().unwrap_or(Path::new(""));
        Self { directory: next(), claim: next(), mount_point: next() }
    }

    fn away(&self, home: &Path) -> Result<Option<PathBuf>, Error> {
        if self.mount_point.as_os_str().is_empty() {
            return Ok(None);
        }
        let point = in_home(self.mount_point, home);
        Ok(if is_mounted(&point)? { None } else { Some(point) })
    }

    /// Returns whether `lock` is a copy of a file that another store still has.
    fn is_anothers(&self, lock: &HeldLock) -> bool {
        matches!(stat_of(self.claim), Ok(Some(_))) && !is_at(lock, CWD, self.claim)
    }
}

/// Opens a directory that only this user can enter, and creates it if it is missing.
pub(super) fn make_own(path: &Path) -> Result<Option<OwnDirectory>, Error> {
    OwnDirectory::create(path).map_err(|error| refused(error, path))
}

/// Opens a directory that is no symlink. Fails if it is another user's or writable by others. `None` if it is missing.
pub(super) fn open_own(path: &Path) -> Result<Option<OwnDirectory>, Error> {
    OwnDirectory::open(path).map_err(|error| refused(error, path))
}

fn refused(error: Error, path: &Path) -> Error {
    match error {
        Error::Io { operation: Operation::OpenDirectory, .. }
            if error.is_errno(Errno::PERM) || error.is_errno(Errno::LOOP) =>
        {
            TemplateError::NotOwn(path.into()).into()
        }
        error => error,
    }
}

pub(super) fn stat(opened: BorrowedFd<'_>, path: &Path) -> Result<Stat, Error> {
    rustix::fs::fstat(opened).io(Operation::Stat, path)
}

/// Does not follow a symlink. Returns `None` if the entry is missing.
pub(super) fn stat_of(path: &Path) -> Result<Option<Stat>, Error> {
    match sys::find_at(CWD, path) {
        Err(Errno::NOTDIR) => Ok(None),
        found => found.io(Operation::Stat, path),
    }
}

/// Fails with [`TemplateError::Damaged`] unless the manifest is the one that was written.
pub(super) fn read_manifest(template: &Template) -> Result<String, Error> {
    let path = &template.manifest;
    let text = read_file(CWD, path, path)?.filter(|text| key(text) == template.key);
    text.and_then(|text| String::from_utf8(text).ok()).ok_or_else(|| other_manifest(template))
}

pub(super) fn other_manifest(template: &Template) -> Error {
    let (name, path) = (template.name.clone(), template.manifest.clone());
    TemplateError::Damaged { name, path, what: "is not the manifest that was written" }.into()
}

pub(super) fn open_tree(tree: &Path) -> Result<OwnedFd, Error> {
    let opened = sys::open_at(CWD, tree, DIRECTORY);
    opened.io(Operation::OpenDirectory, tree)
}

pub(super) fn frozen_state(tree: &Path, manifest: &Path, moment: Moment) -> Result<FrozenState, Error> {
    let stamp = |path: &Path| -> Result<Stamp, Error> {
        let found = stat_of(path)?.ok_or_else(|| Error::Missing(path.to_path_buf()))?;
        Ok(Stamp::new(&found))
    };
    Ok(FrozenState { moment, root: stamp(tree)?, manifest: stamp(manifest)? })
}

/// Makes the change time of a subvolume's root durable: a rename sets it in memory only (`btrfs_rename2`). An inode
/// read again would have the earlier time, which looks like a change.
pub(super) fn persist_change_time(root: BorrowedFd<'_>, tree: &Path) -> Result<(), Error> {
    let stat = stat(root, tree)?;
    if sys::is_subvolume(root, &stat).io(Operation::Stat, tree)? {
        let mode = Mode::from_raw_mode(stat.st_mode);
        rustix::fs::fchmod(root, mode).io(Operation::SetMode, tree)?;
        sys::sync_file(root).io(Operation::Sync, tree)?;
    }
    Ok(())
}
