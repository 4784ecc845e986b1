//! An open directory and its entries. Every call is relative to its descriptor and follows no symlink.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use calve_core::Durability;
use calve_core::internal::{ReplacedFile, replace_record};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;

use crate::error::{AtPath as _, Error, Result};
use crate::files::account::Account;

#[derive(Debug)]
pub(crate) struct Directory {
    descriptor: OwnedFd,
    pub(crate) path: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DirectoryEntry {
    pub(crate) name: OsString,
    pub(crate) kind: FileType,
}

/// The limit for small files, which are read whole.
pub(crate) const SMALL_BYTES: u64 = 1 << 20;

const ENTER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Without NONBLOCK, opening a FIFO would wait for a writer.
const LOOK: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const NEW: OFlags =
    OFlags::RDWR.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Directory {
    /// Resolves the names above `path` as usual, but does not follow the last one.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let opened = crate::sys::retry(|| rustix::fs::openat(CWD, path, ENTER, Mode::empty()));
        let descriptor = opened.map_err(|errno| refused("open directory", CWD, path.as_os_str(), path, errno))?;
        Ok(Self { descriptor, path: path.to_path_buf() })
    }

    /// Opens a directory in this one. `None`: missing. `name` may have several parts; links are not followed.
    pub(crate) fn subdirectory(&self, name: impl AsRef<Path>) -> Result<Option<Self>> {
        let mut last: Option<OwnedFd> = None;
        let mut path = self.path.clone();
        for part in name.as_ref() {
            path.push(part);
            let above = last.as_ref().map_or(self.descriptor.as_fd(), |fd| fd.as_fd());
            let opened = crate::sys::retry(|| rustix::fs::openat(above, plain(part)?, ENTER, Mode::empty()));
            match opened {
                Err(Errno::NOENT) => return Ok(None),
                Err(errno) => return Err(refused("open directory", above, part, &path, errno)),
                Ok(entered) => last = Some(entered),
            }
        }
        let descriptor = last.ok_or(Errno::INVAL).at("open directory", &path)?;
        Ok(Some(Self { descriptor, path }))
    }

    pub(crate) fn make_subdirectory(&self, name: impl AsRef<OsStr>, mode: u32) -> Result<Self> {
        let name = name.as_ref();
        let path = self.path.join(name);
        let made = plain(name).and_then(|name| rustix::fs::mkdirat(self, name, permissions(mode)));
        made.at("create directory", &path)?;
        self.subdirectory(name)?.ok_or(Errno::NOENT).at("open directory", &path)
    }

    /// Opens a regular file for reading. `None`: missing. `name` may have several parts.
    pub(crate) fn file(&self, name: impl AsRef<Path>) -> Result<Option<File>> {
        let name = name.as_ref();
        let path = self.path.join(name);
        let last = name.file_name().ok_or(Errno::INVAL).at("open", &path)?;
        if let Some(above) = name.parent().filter(|above| !above.as_os_str().is_empty()) {
            return self.subdirectory(above)?.map_or(Ok(None), |above| above.file(last));
        }
        let opened = crate::sys::retry(|| rustix::fs::openat(&self.descriptor, plain(last)?, LOOK, Mode::empty()));
        let file = match opened {
            Err(Errno::NOENT) => return Ok(None),
            other => other.map_err(|errno| refused("open", self.as_fd(), last, &path, errno))?,
        };
        let found = rustix::fs::fstat(&file).at("look at", &path)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err(Error::io("open", &path, std::io::Error::other("it is not a regular file")));
        }
        Ok(Some(file.into()))
    }

    /// Reads a regular file. `None`: missing. Fails if it has more than `most` bytes.
    pub(crate) fn read(&self, name: impl AsRef<Path>, most: u64) -> Result<Option<Vec<u8>>> {
        let path = self.path.join(name.as_ref());
        let Some(file) = self.file(name)? else { return Ok(None) };
        let mut contents = Vec::new();
        file.take(most.saturating_add(1)).read_to_end(&mut contents).at("read", &path)?;
        if contents.len() as u64 > most {
            let why = std::io::Error::other(format!("it has more than {most} bytes"));
            return Err(Error::io("read", &path, why));
        }
        Ok(Some(contents))
    }

    /// Reads like [`Self::read`], and replaces bytes that are not UTF-8.
    pub(crate) fn read_to_string(&self, name: impl AsRef<Path>, most: u64) -> Result<Option<String>> {
        Ok(self.read(name, most)?.map(|contents| String::from_utf8_lossy(&contents).into_owned()))
    }

    /// Creates a regular file with these permissions, whatever the umask. Fails if the name exists.
    pub(crate) fn create_new(&self, name: impl AsRef<OsStr>, mode: u32) -> Result<File> {
        let path = self.path.join(name.as_ref());
        let made =
            crate::sys::retry(|| rustix::fs::openat(&self.descriptor, plain(name.as_ref())?, NEW, permissions(mode)));
        let file = made.at("create", &path)?;
        rustix::fs::fchmod(&file, permissions(mode)).at("create", &path)?;
        Ok(file.into())
    }

    /// Replaces a regular file's contents as a whole or not at all. Keeps its owner and permissions, or fails.
    pub(crate) fn rewrite(&self, name: impl AsRef<OsStr>, contents: &[u8]) -> Result<()> {
        let name = name.as_ref();
        let path = self.path.join(name);
        // Refuses anything but a regular file.
        self.file(name)?.ok_or(Errno::NOENT).at("open", &path)?;
        let old = ReplacedFile::find(self.descriptor.as_fd(), plain(name).at("look at", &path)?);
        let old = old.at("look at", &path)?.ok_or(Errno::NOENT).at("open", &path)?;
        let mut operation = "create";
        let replaced = replace_record(&self.descriptor, name, Durability::Cached, |file| {
            operation = "set the mode of";
            if !old.keep_in(file.as_fd())? {
                operation = "change the owner of";
                return Err(Errno::PERM.into());
            }
            operation = "write";
            file.write_all(contents).inspect(|()| operation = "replace")
        });
        replaced.at(operation, &path)
    }

    pub(crate) fn entries(&self) -> Result<Vec<DirectoryEntry>> {
        let mut entries = Vec::new();
        for entry in Dir::read_from(&self.descriptor).at("list", &self.path)? {
            let entry = entry.at("list", &self.path)?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let name = OsStr::from_bytes(name.to_bytes()).to_owned();
            let kind = match entry.file_type() {
                // Not all file systems report the kind.
                FileType::Unknown => self.stat(&name)?.map(|found| FileType::from_raw_mode(found.st_mode)),
                kind => Some(kind),
            };
            // Leaves out an entry that was removed meanwhile.
            entries.extend(kind.map(|kind| DirectoryEntry { name, kind }));
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    pub(crate) fn stat(&self, name: impl AsRef<OsStr>) -> Result<Option<Stat>> {
        let stat = |name: &OsStr| rustix::fs::statat(self, name, AtFlags::SYMLINK_NOFOLLOW);
        self.unless_missing("look at", name.as_ref(), stat)
    }

    /// Returns a call's result on a name of this directory. `None`: missing.
    fn unless_missing<T>(
        &self,
        operation: &'static str,
        name: &OsStr,
        call: impl FnOnce(&OsStr) -> rustix::io::Result<T>,
    ) -> Result<Option<T>> {
        match plain(name).and_then(call) {
            Err(Errno::NOENT) => Ok(None),
            called => called.map(Some).at(operation, self.path.join(name)),
        }
    }

    pub(crate) fn target(&self, name: impl AsRef<OsStr>) -> Result<PathBuf> {
        let target = plain(name.as_ref()).and_then(|name| rustix::fs::readlinkat(&self.descriptor, name, Vec::new()));
        let target = target.at("read link", self.path.join(name.as_ref()))?;
        Ok(OsStr::from_bytes(target.to_bytes()).into())
    }

    /// Removes a file, or a symlink itself. Returns whether there was one.
    pub(crate) fn remove_file(&self, name: impl AsRef<OsStr>) -> Result<bool> {
        let remove = |name: &OsStr| rustix::fs::unlinkat(self, name, AtFlags::empty());
        Ok(self.unless_missing("remove", name.as_ref(), remove)?.is_some())
    }

    pub(crate) fn remove(&self, entry: &DirectoryEntry) -> Result<()> {
        if entry.kind != FileType::Directory {
            return self.remove_file(&entry.name).map(|_| ());
        }
        let Some(below) = self.subdirectory(&entry.name)? else { return Ok(()) };
        for inside in below.entries()? {
            below.remove(&inside)?;
        }
        let remove = |name: &OsStr| rustix::fs::unlinkat(self, name, AtFlags::REMOVEDIR);
        self.unless_missing("remove", &entry.name, remove).map(drop)
    }

    /// Makes the server's user own a name: a symlink itself, never its target.
    pub(crate) fn give(&self, name: impl AsRef<OsStr>, account: Account) -> Result<()> {
        let Some((user, group)) = account.to_become() else { return Ok(()) };
        let ids = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
        let given = plain(name.as_ref())
            .and_then(|name| rustix::fs::chownat(&self.descriptor, name, ids.0, ids.1, AtFlags::SYMLINK_NOFOLLOW));
        given.at("change the owner of", self.path.join(name.as_ref()))
    }

    pub(crate) fn give_itself(&self, account: Account) -> Result<()> {
        let Some((user, group)) = account.to_become() else { return Ok(()) };
        let (user, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
        rustix::fs::fchown(&self.descriptor, user, group).at("change the owner of", &self.path)
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Refuses a name that leads out of its directory.
fn plain(name: &OsStr) -> rustix::io::Result<&OsStr> {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes.contains(&b'/') || matches!(bytes, b"." | b"..") {
        return Err(Errno::INVAL);
    }
    Ok(name)
}

#[allow(clippy::useless_conversion, reason = "the type differs between systems")]
pub(super) fn permissions(mode: u32) -> Mode {
    Mode::from_bits_truncate(mode as _)
}

/// Names the entry. Systems differ in their error for a symlink that is not followed.
fn refused(operation: &'static str, above: BorrowedFd<'_>, name: &OsStr, path: &Path, errno: Errno) -> Error {
    let is_link = || {
        rustix::fs::statat(above, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink)
    };
    let why = match errno {
        Errno::LOOP | Errno::NOTDIR | Errno::MLINK if is_link() => "it is a symlink, which is not followed",
        // The error of opening a socket.
        Errno::NXIO => "it is not a regular file",
        errno => return Error::io(operation, path, errno),
    };
    Error::io(operation, path, std::io::Error::other(why))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use fs_err as fs;

    use super::*;

    #[test]
    fn links_are_not_followed_by_anything() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        for directory in ["root/below", "outside"] {
            fs::create_dir_all(path(directory)).unwrap();
        }
        fs::write(path("outside/file"), "kept").unwrap();
        symlink(path("outside"), path("root/folder")).unwrap();
        symlink(path("outside/file"), path("root/link")).unwrap();
        symlink("root", path("alias")).unwrap();
        assert!(Directory::open(&path("alias")).unwrap_err().to_string().contains("symlink"));
        let root = Directory::open(&path("root")).unwrap();
        let why = |error: Error| error.to_string();
        assert!(why(root.subdirectory("folder").unwrap_err()).contains("symlink"));
        assert!(why(root.file("link").unwrap_err()).contains("symlink"));
        assert!(why(root.file("folder/file").unwrap_err()).contains("symlink"));
        assert!(root.create_new("link", 0o600).is_err());
        assert!(root.rewrite("link", b"changed").is_err());
        assert!(root.file("below/../link").is_err());
        assert!(root.remove_file("../outside/file").is_err());
        for entry in root.entries().unwrap() {
            root.remove(&entry).unwrap();
        }
        assert_eq!(root.entries().unwrap(), []);
        assert_eq!(fs::read_to_string(path("outside/file")).unwrap(), "kept");
    }

    #[test]
    fn only_regular_files_are_read_and_none_that_is_too_long() {
        let place = tempfile::tempdir().unwrap();
        let root = Directory::open(place.path()).unwrap();
        let made = std::process::Command::new("mkfifo").arg(place.path().join("fifo")).status().unwrap();
        assert!(made.success());
        let _socket = std::os::unix::net::UnixListener::bind(place.path().join("socket")).unwrap();
        for name in ["fifo", "socket"] {
            assert!(root.read(name, 10).unwrap_err().to_string().contains("not a regular file"), "{name}");
        }
        root.create_new("file", 0o640).unwrap().write_all(b"0123456789").unwrap();
        assert_eq!(root.read("file", 10).unwrap().unwrap(), b"0123456789");
        assert!(root.read("file", 9).is_err());
        assert!(root.create_new("file", 0o640).is_err());
        assert!(root.read("none", 9).unwrap().is_none() && root.read("none/none", 9).unwrap().is_none());
    }

    #[test]
    fn a_file_with_new_contents_is_a_new_file() {
        let place = tempfile::tempdir().unwrap();
        let root = Directory::open(place.path()).unwrap();
        root.create_new("file", 0o640).unwrap().write_all(b"old").unwrap();
        fs::hard_link(place.path().join("file"), place.path().join("other name")).unwrap();
        root.rewrite("file", b"new").unwrap();
        assert_eq!(fs::read_to_string(place.path().join("file")).unwrap(), "new");
        assert_eq!(fs::read_to_string(place.path().join("other name")).unwrap(), "old");
        assert_eq!(fs::metadata(place.path().join("file")).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(root.entries().unwrap().len(), 2);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_with_new_contents_is_open_to_whom_the_old_one_was() {
        let place = tempfile::tempdir().unwrap();
        let run = |program: &str, words: &[&str]| {
            let output = std::process::Command::new(program).args(words).current_dir(place.path()).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            output.stdout
        };
        let root = Directory::open(place.path()).unwrap();
        for (name, entries) in [("named", "u:1001:r"), ("plain", "g::r")] {
            root.create_new(name, 0o600).unwrap();
            run("setfacl", &["-m", entries, name]);
        }
        run("setfacl", &["-d", "-m", "u:1002:rw,o::rw", "."]);
        for name in ["named", "plain"] {
            let before = run("getfacl", &["-cnE", name]);
            root.rewrite(name, b"new").unwrap();
            assert_eq!(run("getfacl", &["-cnE", name]), before, "{name}");
        }
    }
}
