//! Calve's own directories and their records. Anything that another user could have made or changed is not trusted.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::error::{Error, IoContext};
use crate::options::Durability;
use crate::sys;
use crate::tree::held_lock::HeldLock;
use crate::tree::location::DIRECTORY;
use crate::vocabulary::operation::Operation;

/// Prefix of files being written.
const NEW: &str = ".new-";

/// Returns whether only this user or root can have made and changed an entry with this owner and mode.
pub fn is_own(owner: u32, mode: impl Into<u32>) -> bool {
    owner == rustix::process::geteuid().as_raw() && mode.into() & 0o022 == 0
}

/// A directory in which only this user makes entries. Its records are read without a lock and replaced as a whole.
#[derive(Debug)]
pub struct OwnDirectory {
    opened: OwnedFd,
    path: PathBuf,
}

impl OwnDirectory {
    /// Opens an existing directory. Fails for a link (ELOOP), a file (ENOTDIR), and if others own or may write (EPERM).
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, Error> {
        Self::open_at(CWD, path, path.to_path_buf())
    }

    pub(crate) fn open_in(&self, name: &Path) -> Result<Option<Self>, Error> {
        Self::open_at(self.as_fd(), name, self.path.join(name))
    }

    fn open_at(at: BorrowedFd<'_>, name: &Path, path: PathBuf) -> Result<Option<Self>, Error> {
        let opened = sys::unless_missing(sys::open_at(at, name, DIRECTORY));
        let Some(opened) = opened.io(Operation::OpenDirectory, &path)? else { return Ok(None) };
        let stat = rustix::fs::fstat(&opened).io(Operation::Stat, &path)?;
        match is_own(stat.st_uid, stat.st_mode) {
            true => Ok(Some(Self { opened, path })),
            false => Err(Error::io(Operation::OpenDirectory, path, Errno::PERM)),
        }
    }

    /// Opens a directory, made if missing for this user only. `None` if another process removed it meanwhile.
    pub(crate) fn create(path: &Path) -> Result<Option<Self>, Error> {
        make(CWD, path, path)?;
        Self::open(path)
    }

    pub(crate) fn create_in(&self, name: &Path) -> Result<Option<Self>, Error> {
        make(self.as_fd(), name, &self.path.join(name))?;
        self.open_in(name)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn names(&self) -> Result<Vec<CString>, Error> {
        names_in(self).io(Operation::ReadDirectory, &self.path)
    }

    pub(crate) fn has(&self, record: &str) -> bool {
        sys::stat_at(self, record).is_ok()
    }

    /// Reads a record without following a link. Returns `None` if it is missing.
    pub fn read(&self, record: &str) -> Result<Option<Vec<u8>>, Error> {
        read_file(self.as_fd(), Path::new(record), &self.path.join(record))
    }

    /// Writes a record to the disk. Whatever happens, it is there as it was or as it is to be.
    pub fn write(&self, record: &str, bytes: &[u8]) -> Result<(), Error> {
        let written = replace_record(self, record, Durability::Synced, |file| file.write_all(bytes));
        written.io(Operation::WriteRecord, self.path.join(record))
    }

    /// Removes a record, also from the disk. Returns whether it existed.
    pub(crate) fn remove(&self, record: &str) -> Result<bool, Error> {
        let removed = sys::unless_missing(rustix::fs::unlinkat(self, record, AtFlags::empty()));
        let was_there = removed.io(Operation::Remove, self.path.join(record))?.is_some();
        if was_there {
            self.sync()?;
        }
        Ok(was_there)
    }

    pub(crate) fn sync(&self) -> Result<(), Error> {
        sys::sync_file(self.as_fd()).io(Operation::Sync, &self.path)
    }

    /// Takes the lock `name`, a file that is never removed. `None` if another process has it and this does not wait.
    pub(crate) fn lock(&self, name: &str, operation: FlockOperation) -> sys::Result<Option<HeldLock>> {
        // NFS grants an exclusive lock only on a file open for writing.
        HeldLock::take(self, name, OFlags::RDWR | OFlags::CREATE, operation)
    }
}

impl AsFd for OwnDirectory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.opened.as_fd()
    }
}

fn make(at: BorrowedFd<'_>, name: &Path, path: &Path) -> Result<(), Error> {
    match rustix::fs::mkdirat(at, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(Errno::NOENT) => Err(match path.parent() {
            Some(parent) if !parent.exists() => Error::ParentMissing(parent.to_path_buf()),
            // Nothing can be made in /proc.
            _ => Error::io(Operation::CreateDirectory, path, Errno::OPNOTSUPP),
        }),
        Err(errno) => Err(Error::io(Operation::CreateDirectory, path, errno)),
    }
}

/// Replaces a record as a whole. Until it is complete, a lock keeps its new file from [`sweep_records`].
pub fn replace_record(
    directory: impl AsFd + Copy,
    record: impl Arg + Copy,
    durability: Durability,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let remove = |new: &str| rustix::fs::unlinkat(directory, new, AtFlags::empty());
    let (new, lock) = loop {
        let new = format!("{NEW}{:016x}", sys::random());
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let taken = HeldLock::take(directory, &*new, flags, FlockOperation::NonBlockingLockExclusive);
        // `None`: a sweep saw it before it was locked.
        if let Some(lock) = taken.inspect_err(|_| _ = remove(&new))? {
            break (new, lock);
        }
    };
    let sync = |fd| if durability == Durability::Synced { sys::sync_file(fd) } else { Ok(()) };
    let written = lock.as_fd().try_clone_to_owned().and_then(|file| write(&mut File::from(file)));
    let synced = written.and_then(|()| Ok(sync(lock.as_fd())?));
    let renamed = synced.and_then(|()| Ok(rustix::fs::renameat(directory, &*new, directory, record)?));
    renamed.inspect_err(|_| _ = remove(&new))?;
    Ok(sync(directory.as_fd())?)
}

/// Removes records that killed processes left half-written.
pub fn sweep_records(directory: impl AsFd + Copy) {
    let (flags, operation) = (OFlags::RDWR | OFlags::NONBLOCK, FlockOperation::NonBlockingLockExclusive);
    for name in names_in(directory).unwrap_or_default() {
        if name.to_bytes().starts_with(NEW.as_bytes())
            && let Ok(Some(_lock)) = HeldLock::take(directory, &*name, flags, operation)
        {
            let _ = rustix::fs::unlinkat(directory, &*name, AtFlags::empty());
        }
    }
}

fn names_in(directory: impl AsFd) -> sys::Result<Vec<CString>> {
    let listed = sys::open_at(directory, c".", DIRECTORY).and_then(|directory| sys::list(directory.as_fd()));
    Ok(listed?.into_iter().map(|(name, _)| name).collect())
}

/// Removes the given records and half-written ones, if the directory has no other files.
pub(crate) fn remove_records(directory: BorrowedFd<'_>, records: &[&[u8]]) {
    let Ok(names) = names_in(directory) else { return };
    let is_record = |name: &[u8]| records.contains(&name) || name.starts_with(NEW.as_bytes());
    if names.iter().all(|name| is_record(name.to_bytes())) {
        for name in names {
            let _ = rustix::fs::unlinkat(directory, &*name, AtFlags::empty());
        }
    }
}

/// Reads a whole file without following a link at its end. Returns `None` if it is missing.
pub(crate) fn read_file(at: BorrowedFd<'_>, name: &Path, path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let Some(file) = sys::unless_missing(sys::open_at(at, name, sys::FILE)).io(Operation::Open, path)? else {
        return Ok(None);
    };
    sys::read(file, u64::MAX).map(Some).io(Operation::Read, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_takes_what_a_killed_process_left_and_nothing_that_is_being_written() {
        let folder = tempfile::tempdir().unwrap();
        let own = OwnDirectory::open(folder.path()).unwrap().unwrap();
        fs_err::write(folder.path().join(".new-0123456789abcdef"), "ha").unwrap();
        std::thread::scope(|scope| {
            let write = || replace_record(&own, "record", Durability::Cached, |file| file.write_all(b"whole"));
            let writers = [(); 2].map(|()| scope.spawn(move || (0..500).try_for_each(|_| write())));
            while !writers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                sweep_records(&own);
            }
            writers.into_iter().for_each(|writer| writer.join().unwrap().unwrap());
        });
        assert_eq!(own.names().unwrap(), [c"record".to_owned()]);
        assert_eq!(own.read("record").unwrap().unwrap(), b"whole");
        let failed = replace_record(&own, "record", Durability::Cached, |_| Err(Errno::NOSPC.into()));
        assert_eq!(Errno::from_io_error(&failed.unwrap_err()), Some(Errno::NOSPC));
        assert_eq!((own.names().unwrap().len(), own.read("record").unwrap().unwrap()), (1, b"whole".to_vec()));
    }
}
