//! Files and directories that only this user may change, read or lock, whatever the umask. They are in directories of
//! this user, so other users cannot redirect their paths.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use calve_core::Durability;
use calve_core::internal::replace_record;
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::process::geteuid;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{AtPath as _, Error, Result};
use crate::files::account::Account;
use crate::files::confined;
use crate::files::directory::{Directory, permissions};
use crate::sys;

pub(crate) const CLOSED: u32 = 0o700;
pub(crate) const SECRET: u32 = 0o600;
const PERMISSIONS: u32 = 0o7777;

/// Opens a file for reading and writing, or creates it.
pub(crate) fn open(path: &Path) -> Result<File> {
    open_with(path, OFlags::RDWR)
}

pub(crate) fn append(path: &Path) -> Result<File> {
    open_with(path, OFlags::WRONLY | OFlags::APPEND)
}

fn open_with(path: &Path, how: OFlags) -> Result<File> {
    // Without NONBLOCK, opening a FIFO would wait.
    let flags = how | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = sys::retry(|| rustix::fs::openat(CWD, path, flags, permissions(SECRET)));
    let file = opened.at("open", path)?;
    let found = rustix::fs::fstat(&file).at("open", path)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(Error::io("open", path, std::io::Error::other("it is not a regular file")));
    }
    set_mode(&file, &found, SECRET, path)?;
    Ok(file.into())
}

/// Replaces a file's contents. Readers see the old or the new ones as a whole.
pub(crate) fn replace(path: &Path, contents: &[u8]) -> Result<()> {
    replace_as(path, contents, Durability::Cached)
}

fn replace_as(path: &Path, contents: &[u8], durability: Durability) -> Result<()> {
    let above = Directory::open(path.parent().unwrap_or(path))?;
    let name = path.file_name().unwrap_or_default();
    replace_record(&above, name, durability, |file| file.write_all(contents)).at("write", path)
}

pub(crate) fn rename(from: &Path, to: &Path) -> Result<()> {
    fs_err::rename(from, to).at("rename", from)
}

/// Exchanges two directories, so that `to` always exists. If the file system cannot, `put_aside` moves `to` away first.
pub(crate) fn exchange(from: &Path, to: &Path, put_aside: impl FnOnce() -> Result<()>) -> Result<()> {
    match sys::exchange(from, to) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => put_aside().and_then(|()| rename(from, to)),
        exchanged => exchanged.at("rename", from),
    }
}

/// Reads a document. `None`: missing. Fails if it is unreadable: its subject must not count as missing then.
pub(crate) fn read_json<D: DeserializeOwned>(path: &Path) -> Result<Option<D>> {
    let document = match fs_err::read(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        other => other.at("read", path)?,
    };
    serde_json::from_slice(&document).map(Some).map_err(|_| Error::RecordDamaged(path.to_path_buf()))
}

pub(crate) fn write_json(path: &Path, document: &impl Serialize) -> Result<()> {
    let text = serde_json::to_vec_pretty(document).at("write", path)?;
    replace(path, &text)
}

/// Writes a document that must survive a power failure whenever later writes to the disk do.
pub(crate) fn write_json_to_disk(path: &Path, document: &impl Serialize) -> Result<()> {
    let text = serde_json::to_vec_pretty(document).at("write", path)?;
    replace_as(path, &text, Durability::Synced)
}

/// Creates a missing directory, and sets its permissions. Refuses another user's directory.
pub(crate) fn make_directory(path: &Path, mode: u32) -> Result<Directory> {
    match rustix::fs::mkdir(path, permissions(mode)) {
        Err(Errno::EXIST) => {}
        made => made.at("create directory", path)?,
    }
    let directory = Directory::open(path)?;
    let found = rustix::fs::fstat(&directory).at("look at", path)?;
    if found.st_uid != geteuid().as_raw() {
        return Err(Error::io("use", path, std::io::Error::other("this user does not own that directory")));
    }
    set_mode(&directory, &found, mode, path)?;
    Ok(directory)
}

/// Creates a directory that only this user may enter, in one of this user's.
pub(crate) fn make_in(above: &Directory, name: impl AsRef<OsStr>) -> Result<Directory> {
    let made = above.make_subdirectory(name, CLOSED)?;
    close(&made)?;
    Ok(made)
}

/// Keeps others from connecting to a new socket.
pub(crate) fn hide_socket(path: &Path) -> Result<()> {
    // By path, because no descriptor would do. Other users cannot replace it in its directory.
    rustix::fs::chmod(path, permissions(SECRET)).at("set the mode of", path)
}

/// Lets a server's account enter a directory, or read a file, that stays this user's.
pub(crate) fn share(what: impl AsFd, account: Account, path: &Path) -> Result<()> {
    let found = rustix::fs::fstat(&what).at("change the group of", path)?;
    let Some((_, group)) = account.to_become() else { return Ok(()) };
    let group = Some(rustix::fs::Gid::from_raw(group));
    rustix::fs::fchown(&what, None, group).at("change the group of", path)?;
    let is_directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
    set_mode(&what, &found, if is_directory { 0o710 } else { 0o640 }, path)
}

pub(crate) fn write_shared(directory: &Directory, name: &str, text: &str, account: Account) -> Result<PathBuf> {
    let path = directory.path.join(name);
    let mut file = directory.create_new(name, SECRET)?;
    file.write_all(text.as_bytes()).at("write", &path)?;
    share(&file, account, &path)?;
    Ok(path)
}

/// Gives a tree to a server's account. The directory comes last: until then other users cannot enter it.
pub(crate) fn give_tree(above: &Directory, name: &str, account: Account) -> Result<()> {
    if account.to_become().is_none() {
        return Ok(());
    }
    if let Some(root) = above.subdirectory(name)? {
        confined::walk(&root, &mut |directory, entry, _| directory.give(&entry.name, account))?;
    }
    above.give(name, account)
}

/// Locks a server's account out of a directory again.
pub(crate) fn close(directory: &Directory) -> Result<()> {
    let path = &directory.path;
    let found = rustix::fs::fstat(directory).at("look at", path)?;
    set_mode(directory, &found, CLOSED, path)
}

fn set_mode(what: impl AsFd, found: &Stat, wanted: u32, path: &Path) -> Result<()> {
    if permissions(wanted) == Mode::from_raw_mode(found.st_mode) & permissions(PERMISSIONS) {
        return Ok(());
    }
    rustix::fs::fchmod(what, permissions(wanted)).at("set the mode of", path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_two_write_at_once_is_always_whole() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("record.json");
        write_json(&path, &"first").unwrap();
        std::thread::scope(|scope| {
            let writers = ["one", "another"].map(|text| {
                let text = text.repeat(1000);
                let path = &path;
                scope.spawn(move || (0..500).try_for_each(|_| write_json(path, &text)))
            });
            while !writers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                read_json::<String>(&path).unwrap().unwrap();
            }
            writers.into_iter().for_each(|writer| writer.join().unwrap().unwrap());
        });
        assert_eq!(fs_err::read_dir(place.path()).unwrap().count(), 1);
    }
}
