//! The common part of Linux and macOS.

mod remedy;

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::path::Arg;

use super::Result;

pub(crate) use remedy::remedy;

/// Opens with openat(2), again when a signal interrupts it: FUSE and network file systems let that happen.
pub(crate) fn open_at(directory: impl AsFd, name: impl Arg + Copy, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
    while_table_is_full(|| retry_on_intr(|| rustix::fs::openat(directory.as_fd(), name, flags, mode)))
}

/// Repeats a call while the system's table of open files is full (ENFILE), for a second at most: all programs share it. EMFILE is final.
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

/// Decodes a field of a mount table, in which blanks and backslashes are three octal digits after a backslash.
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

/// Returns whether the bytes may be copied after this refusal to share or clone: no file system here does it, or not between these two.
pub(crate) fn permits_copy(errno: Errno) -> bool {
    // On some systems two of them are one number.
    [Errno::NOTSUP, Errno::OPNOTSUPP, Errno::NOTTY, Errno::NOSYS, Errno::XDEV, Errno::INVAL].contains(&errno)
}

/// Returns a path that is not UTF-8, and how it is printed.
#[cfg(test)]
pub(crate) fn undecodable_path() -> (PathBuf, &'static str) {
    use std::os::unix::ffi::OsStringExt;
    (std::ffi::OsString::from_vec(b"a\xffz".into()).into(), "a\\xffz")
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
