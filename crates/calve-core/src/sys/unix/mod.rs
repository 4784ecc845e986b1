//! What all Unix systems have in common.

mod hint;

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::path::Arg;

use super::Result;

pub(crate) use hint::{MAKE_DIRECTORY, hint};

/// openat(2), repeated when a signal interrupts it: FUSE and network file systems let that happen.
pub(crate) fn open_at(directory: impl AsFd, name: impl Arg + Copy, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
    retry(|| rustix::fs::openat(directory.as_fd(), name, flags, mode))
}

/// Repeats a call until no signal interrupts it.
pub(crate) fn retry<T>(mut call: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// A path that is not UTF-8, and how it is printed.
#[cfg(test)]
pub(crate) fn undecodable_path() -> (std::path::PathBuf, &'static str) {
    use std::os::unix::ffi::OsStringExt;
    (std::ffi::OsString::from_vec(b"a\xffz".into()).into(), "a\\xffz")
}
