//! A directory for each server, with a lock that its supervisor holds while it lives.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use calve_core::CancelToken;
use calve_core::internal::{if_there, is_at};
use fs_err as fs;
use rustix::fs::{CWD, FlockOperation, Mode};
use rustix::io::Errno;

use crate::error::{AtPath as _, EndReason, Error, Result, unless_cancelled};
use crate::files::home::Home;
use crate::files::private;
use crate::files::random;
use crate::sys;

pub(crate) const LOCK: &str = "lock";
pub(crate) const RECORD: &str = "server.json";
/// The record of a server that is ending, and may yet go on.
pub(crate) const HIDDEN: &str = "ending.json";
pub(crate) const BEGUN: &str = "begun.json";
/// The data directory of a server, a template, a mark or a service.
pub(crate) const DATA: &str = "data";
pub(crate) const SOCKETS: &str = "sockets";
/// Directories of templates under construction. No server has such a name.
const BUILDING: &str = ".building-";
/// Directories of data being cloned. No service has such a name.
pub(crate) const NEW_SERVICE: &str = ".new-";

pub(crate) fn built_template(slot: &str) -> Option<&str> {
    Some(slot.strip_prefix(BUILDING)?.rsplit_once('-')?.0)
}

#[derive(Debug)]
pub(crate) struct RegistrySlot {
    pub(crate) path: PathBuf,
    pub(crate) lock: File,
}

/// Takes a new slot. Sweeps wait meanwhile: a lock that is not held yet would look like a leftover.
pub(crate) fn reserve(home: &Home, name: &str) -> Result<RegistrySlot> {
    let _guard = lock_all(home)?;
    let path = home.servers.join(name);
    match rustix::fs::mkdir(&path, Mode::RWXU) {
        Err(Errno::EXIST) => return Err(Error::ServerExists(name.into())),
        made => made.at("create directory", &path)?,
    }
    // Waits: a process that tests the lock holds it for a moment.
    let lock = take_lock(&path.join(LOCK))?;
    sign(&lock);
    Ok(RegistrySlot { path, lock })
}

pub(crate) fn reserve_build(home: &Home, template: &str) -> Result<RegistrySlot> {
    reserve(home, &format!("{BUILDING}{template}-{}", random::letters(6)?))
}

/// Keeps others from making and sweeping slots while it is held, which must be short.
pub(crate) fn lock_all(home: &Home) -> Result<File> {
    take_lock(&home.servers.join(".lock"))
}

pub(crate) fn take_lock(path: &Path) -> Result<File> {
    let file = private::open(path)?;
    sys::retry(|| rustix::fs::flock(&file, FlockOperation::LockExclusive)).at("lock", path)?;
    Ok(file)
}

/// Waits for a lock, and calls `waiting` while it is held. `cancel`, or an error of `waiting`, ends the wait.
pub(crate) fn wait_unless(
    lock: impl AsFd,
    path: &Path,
    cancel: &CancelToken,
    mut waiting: impl FnMut() -> Result<()>,
) -> Result<()> {
    loop {
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            locked => return locked.at("lock", path),
        }
        unless_cancelled(cancel)?;
        waiting()?;
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn open_lock(slot: &Path) -> Result<File> {
    private::open(&slot.join(LOCK))
}

/// Returns whether a lock is still the one at its path: its directory may have been renamed or removed.
pub(crate) fn is_lock_at(lock: &File, path: &Path) -> bool {
    is_at(lock, CWD, path)
}

/// Signs a held lock with this process.
pub(crate) fn sign(lock: impl AsFd) {
    let pid = std::process::id();
    let text = format!("{pid} {}\n", sys::start_time(pid).unwrap_or_default());
    let _ = rustix::io::pwrite(lock, text.as_bytes(), 0);
}

pub(super) fn signature(slot: &Path) -> Option<(u32, u64)> {
    let text = fs::read_to_string(slot.join(LOCK)).ok()?;
    // The rest of a longer signature may follow: a lock is overwritten, not replaced.
    let mut words = text.split_ascii_whitespace();
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// Returns whether the signer is dead. The kernel takes a while to release the locks of a killed process.
pub(crate) fn is_signed_by_the_dead(slot: &Path) -> bool {
    signature(slot).is_some_and(|(pid, started)| sys::ProcessHandle::open(pid, Some(started)).is_none())
}

/// Returns whether a directory's lock is held. A directory without one is free.
pub(crate) fn is_held(slot: &Path) -> bool {
    is_locked(&slot.join(LOCK))
}

pub(crate) fn is_locked(path: &Path) -> bool {
    let Ok(lock) = fs::File::open(path) else { return false };
    matches!(rustix::fs::flock(&lock, FlockOperation::NonBlockingLockShared), Err(Errno::WOULDBLOCK))
}

pub(crate) fn slots(home: &Home) -> Result<Vec<PathBuf>> {
    let mut slots = directories(&home.servers)?;
    slots.retain(|slot| {
        let name = slot.file_name().unwrap_or_default().to_string_lossy();
        // A link is the name of a standby that was handed over.
        (!name.starts_with('.') || name.starts_with(BUILDING)) && !slot.is_symlink()
    });
    Ok(slots)
}

/// Lists the directories in `directory`, which may be missing, in order.
pub(crate) fn directories(directory: &Path) -> Result<Vec<PathBuf>> {
    let listed = if_there(fs::read_dir(directory)).at("list", directory)?;
    let entries = listed.into_iter().flatten().collect::<std::io::Result<Vec<_>>>().at("list", directory)?;
    let mut found: Vec<PathBuf> = entries.iter().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    found.sort();
    Ok(found)
}

/// Returns a server's slot. The name of a standby that was handed over is a link to it.
pub(crate) fn slot_of(home: &Home, name: &str) -> PathBuf {
    let slot = home.servers.join(name);
    match fs::read_link(&slot) {
        Ok(target) if target.parent() == Some(Path::new("")) => home.servers.join(target),
        _ => slot,
    }
}

/// A slot's note of its directory of sockets, found without a record, and of the slot itself on the next line.
pub(crate) struct SocketsNote {
    directory: PathBuf,
    slot: PathBuf,
}

impl SocketsNote {
    pub(crate) fn write(slot: &Path, directory: &Path) -> Result<()> {
        let noted = [directory, slot].map(Path::to_string_lossy).join("\n");
        private::replace(&slot.join(SOCKETS), noted.as_bytes())
    }

    /// Returns an empty note if it is missing.
    pub(crate) fn read(slot: &Path) -> Self {
        let noted = fs::read_to_string(slot.join(SOCKETS)).unwrap_or_default();
        let (directory, slot) = noted.split_once('\n').unwrap_or((&noted, ""));
        Self { directory: directory.into(), slot: slot.into() }
    }

    /// Returns the directory only if it is directly in this user's own, whatever the file says.
    pub(crate) fn directory(self, home: &Home) -> Option<PathBuf> {
        (self.directory.parent() == Some(&*home.runtime)).then_some(self.directory)
    }

    /// Returns why a server ended without a word in a slot with this note. `None`: the slot is in a copied home, and
    /// the original slot exists: the server belongs to that.
    pub(crate) fn end_reason(&self, home: &Home, slot: &Path) -> Option<EndReason> {
        let identity = |path: &Path| rustix::fs::stat(path).ok().map(|stat| (stat.st_dev, stat.st_ino));
        let is_there = identity(&self.slot) == identity(slot);
        if self.slot.as_os_str().is_empty() || self.slot.starts_with(&home.root) || is_there {
            return Some(EndReason::SupervisorKilled);
        }
        // Another home's slot in its place has other sockets.
        (Self::read(&self.slot).directory != self.directory).then_some(EndReason::HomeMoved)
    }
}

pub(crate) fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
