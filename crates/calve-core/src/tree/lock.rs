//! Hidden names beside a destination, and the locks that tell whether their maker is alive.
//!
//! A name is `.calve-<purpose>-<uid>-<machine>-<boot>-<random>`. Its lock is a directory of that name plus `.lock`,
//! under flock(2): a directory, because git's status shows empty files, but not directories without files. Directories
//! in it name the entries that the lock protects: a user who may rename entries of the parent could put something else
//! under the hidden name, and a sweeper must not delete that.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FlockOperation, Mode};
use rustix::io::Errno;

use super::held_lock::lock_file;
use super::location::{DIRECTORY, identity};
use crate::sys::{self};
pub(crate) use crate::vocabulary::hidden_name::Purpose;
use crate::vocabulary::hidden_name::{HiddenNameParts, LOCK_SUFFIX};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HiddenName {
    pub(crate) purpose: Purpose,
    /// Without the lock's suffix.
    pub(crate) name: CString,
}

/// The reach of a file system's locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// This machine: a free lock means that no process has it.
    Machine,
    /// Only this boot: the file system is shared with other machines, which may have the same name.
    Boot,
}

/// Parses a hidden name that this user made on this machine. The same boot counts as the same machine: containers on
/// one kernel have names of their own and share its locks.
pub(crate) fn recognise(name: &CStr, reach: Reach) -> Option<HiddenName> {
    let hidden = HiddenNameParts::parse(name.to_str().ok()?)?;
    let this_machine = reach == Reach::Machine && hidden.machine == sys::machine_identity();
    let here = this_machine || hidden.boot == sys::boot_identity();
    let mine = hidden.user == rustix::process::geteuid().as_raw();
    (here && mine).then(|| HiddenName { purpose: hidden.purpose, name: CString::new(hidden.name).unwrap_or_default() })
}

fn new_name(purpose: Purpose) -> CString {
    let user = rustix::process::geteuid().as_raw();
    let (machine, boot) = (sys::machine_identity(), sys::boot_identity());
    CString::new(crate::vocabulary::hidden_name::new_name(purpose, user, machine, boot, sys::random()))
        .unwrap_or_default()
}

fn lock_name(name: &CStr) -> CString {
    CString::new([name.to_bytes(), LOCK_SUFFIX.as_bytes()].concat()).unwrap_or_default()
}

const SUBVOLUME: &CStr = c"subvolume";
const FAILED: &CStr = c"failed";
const RECORD: &str = "inode-";

/// Returns the name of a record, without the device: a restart may change it, and it is the lock's or a subvolume's.
fn record_name((_, inode): (u64, u64)) -> CString {
    CString::new(format!("{RECORD}{inode:x}")).unwrap_or_default()
}

#[derive(Debug)]
pub(crate) struct Lock {
    directory: OwnedFd,
    name: CString,
    identity: (u64, u64),
}

impl Lock {
    /// Reserves a new hidden name in `parent`. The lock is held before anything of that name exists.
    pub(crate) fn reserve(parent: BorrowedFd<'_>, purpose: Purpose) -> sys::Result<Self> {
        // Losing to a sweeper is rare; losing every time is an attack.
        for _ in 0..64 {
            let name = new_name(purpose);
            match rustix::fs::mkdirat(parent, &*lock_name(&name), Mode::RWXU) {
                Ok(()) => {}
                Err(Errno::EXIST) => continue,
                Err(errno) => return Err(errno),
            }
            // A sweeper may have removed the new lock before it was held: take another name.
            match Self::take(parent, &name) {
                Ok(Some(lock)) => return Ok(lock),
                Ok(None) | Err(Errno::NOENT) => {}
                Err(errno) => {
                    let _ = rustix::fs::unlinkat(parent, &*lock_name(&name), AtFlags::REMOVEDIR);
                    return Err(errno);
                }
            }
        }
        Err(Errno::AGAIN)
    }

    /// Takes the lock of a found name. Returns `None` if its maker or another sweeper holds it.
    pub(crate) fn take(parent: BorrowedFd<'_>, name: &CStr) -> sys::Result<Option<Self>> {
        let operation = FlockOperation::NonBlockingLockExclusive;
        let Some(directory) = lock_file(parent, &*lock_name(name), DIRECTORY, operation)? else { return Ok(None) };
        let stat = rustix::fs::fstat(&directory)?;
        let mine = stat.st_uid == rustix::process::geteuid().as_raw();
        Ok(mine.then(|| Self { directory, name: name.to_owned(), identity: identity(&stat) }))
    }

    /// Records an entry that the hidden name may stand for.
    pub(crate) fn record(&self, protected: (u64, u64)) -> sys::Result<()> {
        self.note(&record_name(protected))
    }

    /// Records that the hidden name will stand for a subvolume, whose identity is unknown before it is made.
    pub(crate) fn record_subvolume(&self) -> sys::Result<()> {
        self.note(SUBVOLUME)
    }

    /// Records that deleting failed, for the next run to report.
    pub(crate) fn record_failure(&self) {
        let _ = self.note(FAILED);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.has(FAILED)
    }

    /// Returns whether the lock protects this directory, which was found under the hidden name.
    pub(crate) fn protects(&self, found: BorrowedFd<'_>) -> bool {
        let Ok(stat) = rustix::fs::fstat(found) else { return false };
        let is_subvolume = || sys::is_subvolume(found, &stat).unwrap_or(false);
        let found_as = identity(&stat);
        let is_recorded = self.has(&record_name(found_as)) && (found_as.0 == self.identity.0 || is_subvolume());
        is_recorded || self.has(SUBVOLUME) && is_subvolume()
    }

    /// Returns whether only a staged tree can be under the name, and never the user's tree that it was to replace.
    pub(crate) fn protects_a_clone_only(&self) -> bool {
        let is_staging =
            self.name.to_str().ok().and_then(HiddenNameParts::parse).is_some_and(|it| it.purpose == Purpose::Staging);
        let is_record = |(name, _): &(CString, _)| name.to_bytes().starts_with(RECORD.as_bytes());
        is_staging
            && sys::list(self.directory.as_fd()).is_ok_and(|noted| noted.into_iter().filter(is_record).count() == 1)
    }

    fn note(&self, record: &CStr) -> sys::Result<()> {
        match rustix::fs::mkdirat(&self.directory, record, Mode::RWXU) {
            Err(Errno::EXIST) => Ok(()),
            other => other,
        }
    }

    fn has(&self, record: &CStr) -> bool {
        sys::stat_at(&self.directory, record).is_ok()
    }

    /// Returns the lock's descriptor; a process with a copy of it holds the lock too.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    pub(crate) fn name(&self) -> &CStr {
        &self.name
    }

    /// Returns whether the lock still has its name, under which others look for it.
    pub(crate) fn is_held(&self, parent: BorrowedFd<'_>) -> bool {
        sys::stat_at(parent, &*lock_name(&self.name)).is_ok_and(|stat| identity(&stat) == self.identity)
    }

    pub(crate) fn remove(self, parent: BorrowedFd<'_>) {
        if self.is_held(parent) {
            self.erase();
            let _ = rustix::fs::unlinkat(parent, &*lock_name(&self.name), AtFlags::REMOVEDIR);
        }
    }

    /// Removes the lock, or leaves it and returns true while the hidden name is used: others may have moved the entry.
    pub(crate) fn remove_if_unused(self, parent: BorrowedFd<'_>) -> bool {
        let found = sys::stat_at(parent, &*self.name);
        let is_used = !matches!(found, Err(Errno::NOENT));
        if is_used {
            self.leave()
        } else {
            self.remove(parent)
        }
        is_used
    }

    fn erase(&self) {
        for (name, _) in sys::list(self.directory.as_fd()).unwrap_or_default() {
            let _ = rustix::fs::unlinkat(&self.directory, &*name, AtFlags::REMOVEDIR);
        }
    }

    /// Unlocks it and leaves it for a sweeper.
    pub(crate) fn leave(self) {
        let _ = rustix::fs::flock(self.directory.as_fd(), FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_user_and_machine_are_recognised() {
        let name = new_name(Purpose::Trash);
        let found = recognise(&name, Reach::Machine).unwrap();
        assert_eq!((found.purpose, &found.name), (Purpose::Trash, &name));
        assert_eq!(recognise(&lock_name(&name), Reach::Machine), Some(found));

        let text = name.to_str().unwrap();
        let user = rustix::process::geteuid().as_raw();
        let foreign_user = text.replacen(&format!("-{user}-"), &format!("-{}-", user + 1), 1);
        let foreign_machine =
            text.replace(sys::machine_identity(), "00000000").replace(sys::boot_identity(), "00000000");
        let other_boot = text.replace(sys::boot_identity(), "00000000");
        let unlike = [foreign_user, foreign_machine, format!("{text}0"), format!("{text}-x"), ".calve-x".into()];
        for name in unlike {
            assert_eq!(recognise(&CString::new(name.clone()).unwrap(), Reach::Machine), None, "{name}");
        }
        let other_boot = CString::new(other_boot).unwrap();
        assert!(recognise(&other_boot, Reach::Machine).is_some());
        assert_eq!(recognise(&other_boot, Reach::Boot), None);
    }
}
