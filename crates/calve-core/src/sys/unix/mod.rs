//! Code common to Linux and macOS.

mod remedy;

use std::borrow::Borrow;
use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io::Read as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, SeekFrom, Stat, StatVfs, Timespec, Timestamps};
use rustix::io::{Errno, Result, retry_on_intr};
use rustix::path::Arg;

pub(crate) use remedy::remedy;

/// Flags to open a file for reading, without following a link or waiting for a FIFO's writer.
pub(crate) const FILE: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK);

/// Opens an existing entry. Started programs do not inherit the descriptor.
pub(crate) fn open_at(directory: impl AsFd, name: impl Arg + Copy, flags: OFlags) -> Result<OwnedFd> {
    open_with(directory, name, flags, Mode::empty())
}

/// Creates a file. Fails if the name exists.
pub(crate) fn create_at(directory: impl AsFd, name: impl Arg + Copy, access: OFlags, mode: Mode) -> Result<OwnedFd> {
    open_with(directory, name, access | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW, mode)
}

/// Opens with openat(2), and again if a signal interrupts it, as can happen on FUSE and network file systems.
pub(crate) fn open_with(directory: impl AsFd, name: impl Arg + Copy, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    while_table_is_full(|| retry_on_intr(|| rustix::fs::openat(directory.as_fd(), name, flags, mode)))
}

/// Reads an open file to its end, or its first `most` bytes.
pub(crate) fn read(file: OwnedFd, most: u64) -> Result<Vec<u8>> {
    // A table of the kernel is consistent only if one call reads it.
    let mut contents = Vec::with_capacity(most.min(64 << 10) as usize);
    let read = File::from(file).take(most).read_to_end(&mut contents);
    read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    Ok(contents)
}

/// Reads until the buffer is full or the file ends. `read` gets the rest of the buffer and the bytes before it.
pub(crate) fn read_full(buffer: &mut [u8], read: impl Fn(&mut [u8], usize) -> Result<usize>) -> Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match retry_on_intr(|| read(&mut buffer[filled..], filled))? {
            0 => break,
            length => filled += length,
        }
    }
    Ok(filled)
}

/// Returns an entry's metadata, without following a link.
pub(crate) fn stat_at(directory: impl AsFd, name: impl Arg) -> Result<Stat> {
    rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
}

pub(crate) fn find_at(directory: impl AsFd, name: impl Arg) -> Result<Option<Stat>> {
    unless_missing(stat_at(directory, name))
}

pub(crate) fn path(name: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(name.to_bytes()))
}

pub(crate) fn kind(stat: impl Borrow<Stat>) -> FileType {
    FileType::from_raw_mode(stat.borrow().st_mode)
}

pub(crate) fn is_directory(stat: impl Borrow<Stat>) -> bool {
    kind(stat) == FileType::Directory
}

/// Returns the listed kind, or looks if the listing does not tell.
pub(crate) fn kind_of(directory: impl AsFd, name: &CStr, listed: FileType) -> Result<FileType> {
    if listed == FileType::Unknown { stat_at(directory, name).map(kind) } else { Ok(listed) }
}

pub(crate) struct ListedEntry<'a> {
    pub(crate) name: &'a CStr,
    /// [`FileType::Unknown`] if the file system does not tell.
    pub(crate) kind: FileType,
}

pub(crate) fn unless_missing<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(Errno::NOENT) => Ok(None),
        result => result.map(Some),
    }
}

/// Returns `None` for an entry that is missing, or was removed or replaced after its name was read.
pub(crate) fn unless_gone<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        result => result.map(Some),
    }
}

/// Repeats a call while the system-wide table of open files is full (ENFILE), for a second at most. EMFILE is final.
fn while_table_is_full<T>(mut call: impl FnMut() -> Result<T>) -> Result<T> {
    const LONGEST: Duration = Duration::from_millis(512);
    let mut wait = Duration::from_millis(1);
    loop {
        match call() {
            Err(Errno::NFILE) if wait <= LONGEST => std::thread::sleep(wait),
            other => return other,
        }
        wait *= 2;
    }
}

/// Returns 64 random bits, for names that cannot be guessed and do not collide.
pub(crate) fn random() -> u64 {
    // The standard library's hash keys are random and differ each time, but a forked process has the same.
    RandomState::new().hash_one((std::process::id(), Instant::now()))
}

pub(crate) fn seek_hole(fd: BorrowedFd<'_>, position: u64) -> Result<u64> {
    rustix::fs::seek(fd, SeekFrom::Hole(position))
}

pub(crate) fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

pub(crate) fn allocated(stat: &Stat) -> u64 {
    u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512)
}

pub fn times(stat: &Stat) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: stat.st_atime as _, tv_nsec: stat.st_atime_nsec as _ },
        last_modification: Timespec { tv_sec: stat.st_mtime as _, tv_nsec: stat.st_mtime_nsec as _ },
    }
}

/// Returns the bytes of a file outside holes.
pub(crate) fn stored(stat: &Stat) -> u64 {
    allocated(stat).min(size(stat))
}

pub(crate) fn available(room: &StatVfs) -> u64 {
    room.f_bavail.saturating_mul(room.f_frsize)
}

/// An entry with metadata: an open one, or a name in a directory, which is not followed.
#[derive(Clone, Copy)]
pub(crate) enum XattrTarget<'a> {
    Open(BorrowedFd<'a>),
    Named(BorrowedFd<'a>, &'a CStr),
}

/// Repeats a call with a larger buffer while it returns ERANGE.
pub(crate) fn grown(buffer: &mut Vec<u8>, least: usize, call: impl Fn(&mut [u8]) -> Result<usize>) -> Result<usize> {
    buffer.resize(buffer.len().max(least), 0);
    loop {
        match call(buffer) {
            Err(Errno::RANGE) if buffer.len() < 1 << 20 => buffer.resize(buffer.len() * 4, 0),
            other => return other,
        }
    }
}

pub(crate) fn xattr_names(listed: &[u8]) -> impl Iterator<Item = &CStr> {
    listed.split_inclusive(|&byte| byte == 0).filter_map(|name| CStr::from_bytes_with_nul(name).ok())
}

/// Decodes a field of a mount table, where blanks and backslashes are a backslash and three octal digits.
pub fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, tail)) = rest.split_first() {
        let digits = tail.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &tail[3..] } else { tail };
    }
    OsString::from_vec(bytes).into()
}

/// Returns whether copying may replace a refused share or clone: unsupported here, or between these two.
pub(crate) fn permits_copy(errno: Errno) -> bool {
    // Some systems give two of them one number.
    [Errno::NOTSUP, Errno::OPNOTSUPP, Errno::NOTTY, Errno::NOSYS, Errno::XDEV, Errno::INVAL].contains(&errno)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many calls were made, and what came of them, when the first `failing` end with `errno`.
    fn calls(failing: u32, errno: Errno) -> (u32, Result<()>) {
        let mut calls = 0;
        let ended = while_table_is_full(|| {
            calls += 1;
            if calls <= failing { Err(errno) } else { Ok(()) }
        });
        (calls, ended)
    }

    #[test]
    fn a_full_table_of_open_files_is_waited_for_and_a_full_one_of_its_own_is_not() {
        assert_eq!(calls(3, Errno::NFILE), (4, Ok(())));
        assert_eq!(calls(1, Errno::MFILE), (1, Err(Errno::MFILE)));
        // Not for ever: the waits double from 1 ms to 512 ms.
        assert_eq!(calls(u32::MAX, Errno::NFILE), (11, Err(Errno::NFILE)));
    }
}
