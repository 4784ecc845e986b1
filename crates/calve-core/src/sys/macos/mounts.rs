//! What is mounted where.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::{PATH_ONLY, Result, last_error};

/// Whether something is mounted exactly here, or the system makes it look so (`/Users` is on another volume than `/`).
pub(crate) fn is_mount_point(directory: BorrowedFd<'_>) -> Result<bool> {
    let mounted = rustix::fs::fstatfs(directory)?;
    if path_of(directory)? == seen(text(&mounted.f_mntonname)) {
        return Ok(true);
    }
    match rustix::fs::openat(directory, c"..", PATH_ONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
        Ok(parent) => Ok(rustix::fs::fstat(parent)?.st_dev != rustix::fs::fstat(directory)?.st_dev),
        // Its path has already told.
        Err(Errno::ACCESS) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The mount points below an open directory, not counting itself (getfsstat(2)).
pub(crate) fn mounts_below(directory: BorrowedFd<'_>) -> Result<Vec<PathBuf>> {
    let root = path_of(directory)?;
    let mut below: Vec<PathBuf> = mounts()?
        .iter()
        .map(|mount| seen(text(&mount.f_mntonname)))
        .filter(|point| point != &root && point.starts_with(&root))
        .collect();
    below.sort();
    Ok(below)
}

/// The name of the file system that an open directory is on ("apfs").
pub(crate) fn file_system_name(directory: BorrowedFd<'_>) -> String {
    rustix::fs::fstatfs(directory)
        .map_or_else(|_| "unknown".into(), |mounted| String::from_utf8_lossy(text(&mounted.f_fstypename)).into_owned())
}

fn mounts() -> Result<Vec<libc::statfs>> {
    let mut list: Vec<libc::statfs> = Vec::new();
    loop {
        // SAFETY: without a buffer the call only counts.
        let count = unsafe { libc::getfsstat(std::ptr::null_mut(), 0, libc::MNT_NOWAIT) };
        // Room for more than there were: a list that fills it may have been cut.
        let room = usize::try_from(count).map_err(|_| last_error())? + 16;
        list.reserve_exact(room);
        let bytes = c_int::try_from(room * size_of::<libc::statfs>()).map_err(|_| Errno::NOMEM)?;
        // SAFETY: `list` is empty and has room for `bytes` bytes, of which the call fills whole structures from the start.
        let filled = unsafe { libc::getfsstat(list.as_mut_ptr(), bytes, libc::MNT_NOWAIT) };
        let filled = usize::try_from(filled).map_err(|_| last_error())?;
        if filled < room {
            // SAFETY: the call has filled that many, which is less than there is room for.
            unsafe { list.set_len(filled) };
            return Ok(list);
        }
    }
}

fn path_of(directory: BorrowedFd<'_>) -> Result<PathBuf> {
    Ok(seen(rustix::fs::getpath(directory)?.to_bytes()))
}

/// A path as users see it: the data volume's directories appear both at the root and where the volume is mounted.
fn seen(path: &[u8]) -> PathBuf {
    let path = Path::new(OsStr::from_bytes(path));
    match path.strip_prefix("/System/Volumes/Data") {
        Ok(rest) if !rest.as_os_str().is_empty() => Path::new("/").join(rest),
        _ => path.to_path_buf(),
    }
}

/// A C string in an array.
fn text(array: &[c_char]) -> &[u8] {
    // SAFETY: c_char is a byte, signed or not: the slice covers the same memory for as long, and any byte is valid.
    let bytes = unsafe { std::slice::from_raw_parts(array.as_ptr().cast::<u8>(), array.len()) };
    CStr::from_bytes_until_nul(bytes).map_or(bytes, CStr::to_bytes)
}
