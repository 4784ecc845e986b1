//! Hidden names beside a destination, and the locks that say whether their maker is alive.
//!
//! The lock of a name is a directory of that name with `.lock` behind it, with a locked file in it. That file is called `.gitignore`
//! and hides the directory from git; comments in it say what the lock protects, by identity, so that a sweeper deletes nothing
//! that somebody else has put under the hidden name.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::hidden::{HiddenNameParts, LOCK_SUFFIX, Purpose, new_name};
use crate::sys::{self, Identity};

/// Understands a name, if it is one that this user made on this machine.
pub(super) fn recognise(name: &OsStr) -> Option<HiddenNameParts<'_>> {
    let hidden = HiddenNameParts::parse(name.to_str()?)?;
    (hidden.machine == sys::machine_identity() && hidden.user == sys::user_identity()).then_some(hidden)
}

/// A held lock on a hidden name.
pub(super) struct Lock {
    parent: PathBuf,
    name: String,
    file: File,
}

const FILE: &str = ".gitignore";
const IGNORE_ALL: &[u8] = b"*\n";

impl Lock {
    /// Reserves a new hidden name in `parent`. The lock is held before anything of that name exists.
    pub(super) fn reserve(parent: &Path, purpose: Purpose) -> io::Result<Self> {
        // There is no word for a boot; that for the machine stands in its place.
        let machine = sys::machine_identity();
        // Losing to a sweeper is rare; losing every time is somebody's doing.
        for _ in 0..64 {
            let name = new_name(purpose, sys::user_identity(), machine, machine, sys::random());
            let directory = lock_directory(parent, &name);
            match std::fs::create_dir(&directory) {
                Ok(()) => sys::hide(&directory),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            }
            // A sweeper may have seen the new lock before it was held, and taken it away: then another name.
            if let Some(mut lock) = Self::take(parent, &name)? {
                lock.file.write_all(IGNORE_ALL)?;
                return Ok(lock);
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Takes the lock of a name. `None` when its maker, or a sweeper, holds it, and when it is gone.
    pub(super) fn take(parent: &Path, name: &str) -> io::Result<Option<Self>> {
        let path = lock_directory(parent, name).join(FILE);
        let gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        // A process may have ended before it made the file.
        let file = match OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path) {
            Err(error) if gone(&error) || sys::is_in_use(&error) => return Ok(None),
            other => other?,
        };
        match sys::try_lock(&file) {
            Err(error) if sys::is_locked_by_another(&error) => return Ok(None),
            other => other?,
        }
        let lock = Self { parent: parent.to_path_buf(), name: name.to_owned(), file };
        Ok(lock.is_held().then_some(lock))
    }

    /// Returns the path that the lock protects.
    pub(super) fn path(&self) -> PathBuf {
        self.parent.join(&self.name)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the lock is still the one that others would look at.
    pub(super) fn is_held(&self) -> bool {
        let own = sys::info(&self.file).map(|info| info.identity).ok();
        own.is_some()
            && sys::look(&lock_directory(&self.parent, &self.name).join(FILE)).map(|info| info.identity).ok() == own
    }

    /// Writes down that `protected` is what the hidden name stands for. There may be several.
    pub(super) fn record(&self, protected: Identity) -> io::Result<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::End(0))?;
        file.write_all(format!("{}\n", record(protected)).as_bytes())
    }

    /// Returns whether what is now under the hidden name is what the lock protects.
    pub(super) fn protects(&self, found: Identity) -> bool {
        let (mut file, mut text) = (&self.file, String::new());
        let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_string(&mut text));
        read.is_ok() && text.lines().any(|line| line == record(found))
    }

    /// Takes the lock away, when what it protected is no more.
    pub(super) fn remove(self) {
        let directory = lock_directory(&self.parent, &self.name);
        drop(self.file);
        // Should a sweeper be faster, the rest is its.
        let _ = std::fs::remove_file(directory.join(FILE)).and_then(|()| std::fs::remove_dir(directory));
    }
}

fn lock_directory(parent: &Path, name: &str) -> PathBuf {
    parent.join(format!("{name}{LOCK_SUFFIX}"))
}

fn record(Identity { volume, file }: Identity) -> String {
    format!("# {volume:x}-{file:x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_by_one_and_knows_what_it_protects() {
        let folder = tempfile::tempdir().unwrap();
        let lock = Lock::reserve(folder.path(), Purpose::Trash).unwrap();
        let name = lock.name().to_owned();
        assert_eq!(recognise(OsStr::new(&name)).map(|hidden| hidden.purpose), Some(Purpose::Trash));
        assert!(Lock::take(folder.path(), &name).unwrap().is_none(), "it is held");
        // ReFS: numbers that differ in their upper half alone are of two files.
        let (one, upper) = (Identity { volume: 1, file: 2 }, Identity { volume: 1, file: 2 | 1 << 64 });
        lock.record(one).unwrap();
        lock.record(Identity { volume: 3, file: 4 }).unwrap();
        assert!(lock.protects(one) && lock.protects(Identity { volume: 3, file: 4 }));
        assert!(!lock.protects(Identity { volume: 1, file: 4 }) && !lock.protects(upper));
        drop(lock);
        let again = Lock::take(folder.path(), &name).unwrap().expect("its holder is gone");
        assert!(again.protects(one));
        again.remove();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(Lock::take(folder.path(), &name).unwrap().is_none());
    }
}
