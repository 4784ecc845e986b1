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
    let (new, lock) = make_new(directory)?;
    let sync = |fd| if durability == Durability::Synced { sys::sync_file(fd) } else { Ok(()) };
    // The umask may have taken this user's permissions.
    let permitted = rustix::fs::fchmod(lock.as_fd(), Mode::RUSR | Mode::WUSR).map_err(io::Error::from);
    let opened = permitted.and_then(|()| lock.as_fd().try_clone_to_owned());
    let written = opened.and_then(|file| write(&mut File::from(file)));
    let synced = written.and_then(|()| Ok(sync(lock.as_fd())?));
    let renamed = synced.and_then(|()| Ok(rustix::fs::renameat(directory, &*new, directory, record)?));
    renamed.inspect_err(|_| _ = rustix::fs::unlinkat(directory, &*new, AtFlags::empty()))?;
    Ok(sync(directory.as_fd())?)
}

fn make_new(directory: impl AsFd + Copy) -> sys::Result<(String, HeldLock)> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
    // Losing to a sweep is rare; losing every time is an attack, or a file system that shows another file there.
    for _ in 0..64 {
        let new = format!("{NEW}{:016x}", sys::random());
        match HeldLock::take(directory, &*new, flags, FlockOperation::NonBlockingLockExclusive) {
            Ok(Some(lock)) => return Ok((new, lock)),
            Err(Errno::EXIST) => {}
            not_locked => {
                remove_own(directory, &*new);
                not_locked?;
            }
        }
    }
    Err(Errno::AGAIN)
}

fn is_new(name: &[u8]) -> bool {
    let digits = name.strip_prefix(NEW.as_bytes());
    digits.is_some_and(|it| it.len() == 16 && it.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')))
}

fn remove_own(directory: impl AsFd + Copy, new: impl Arg + Copy) {
    if sys::stat_at(directory, new).is_ok_and(|stat| stat.st_uid == rustix::process::geteuid().as_raw()) {
        let _ = rustix::fs::unlinkat(directory, new, AtFlags::empty());
    }
}

/// Removes records that killed processes left half-written.
pub fn sweep_records(directory: impl AsFd + Copy) {
    let (flags, operation) = (OFlags::RDWR | OFlags::NONBLOCK, FlockOperation::NonBlockingLockExclusive);
    for name in names_in(directory).unwrap_or_default().into_iter().filter(|name| is_new(name.to_bytes())) {
        if let Ok(Some(_lock)) = HeldLock::take(directory, &*name, flags, operation) {
            remove_own(directory, &*name);
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
    let is_record = |name: &[u8]| records.contains(&name) || is_new(name);
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

    #[test]
    fn a_sweep_leaves_what_calve_did_not_write() {
        let folder = tempfile::tempdir().unwrap();
        let own = OwnDirectory::open(folder.path()).unwrap().unwrap();
        let mut kept =
            vec![".new-", ".new-0123456789abcde", ".new-0123456789abcdef0", ".new-0123456789ABCDEF", ".new-x"];
        let foreign = folder.path().join(".new-0123456789abcde0");
        fs_err::write(&foreign, "").unwrap();
        if std::os::unix::fs::chown(&foreign, Some(1), None).is_ok() {
            kept.push(".new-0123456789abcde0");
        }
        for name in kept.iter().copied().chain([".new-0123456789abcdef"]) {
            fs_err::write(folder.path().join(name), "").unwrap();
        }
        sweep_records(&own);
        kept.sort_unstable();
        let mut names: Vec<_> = own.names().unwrap().into_iter().map(|name| name.into_string().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, kept);
        remove_records(own.as_fd(), &[]);
        assert_eq!(own.names().unwrap().len(), kept.len());
    }

    /// A directory that shows no new file under its name.
    struct Shifting {
        place: OwnDirectory,
        elsewhere: OwnDirectory,
        calls: std::cell::Cell<u32>,
    }

    impl AsFd for Shifting {
        fn as_fd(&self) -> BorrowedFd<'_> {
            // Of each try's four calls, the second one asks which file has the name.
            let call = self.calls.replace(self.calls.get() + 1);
            if call % 4 == 1 { self.elsewhere.as_fd() } else { self.place.as_fd() }
        }
    }

    #[test]
    fn a_file_that_never_has_its_name_is_given_up_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let below = |name: &str| OwnDirectory::create(&folder.path().join(name)).unwrap().unwrap();
        let shifting = Shifting { place: below("a"), elsewhere: below("b"), calls: 0.into() };
        let failed = replace_record(&shifting, "record", Durability::Cached, |_| panic!("there is no file"));
        assert_eq!(Errno::from_io_error(&failed.unwrap_err()), Some(Errno::AGAIN));
        assert_eq!(shifting.calls.get(), 4 * 64);
        assert!(shifting.place.names().unwrap().is_empty());
    }
}
