//! Asks the watcher what has changed since a spare was built.
//!
//! A question on the Unix stream socket `watch.sock` in the store is the spare's name and a line feed. The answer ends
//! with the connection: a line `unknown`, or a line `changed N` and N NUL-terminated paths relative to the source.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, OFlags};

use crate::sys;

pub(crate) const SOCKET: &str = "watch.sock";

/// The only entries of a source that may have changed. `None` if unknown.
pub(crate) type KnownChanges = Option<Vec<PathBuf>>;

pub(crate) fn encode(changes: &KnownChanges) -> Vec<u8> {
    let Some(paths) = changes else { return b"unknown\n".to_vec() };
    let mut bytes = format!("changed {}\n", paths.len()).into_bytes();
    for path in paths {
        bytes.extend_from_slice(path.as_os_str().as_bytes());
        bytes.push(0);
    }
    bytes
}

/// A truncated answer counts as unknown.
fn decode(bytes: &[u8]) -> KnownChanges {
    let rest = bytes.strip_prefix(b"changed ")?;
    let (count, paths) = rest.split_at(rest.iter().position(|&byte| byte == b'\n')?);
    let count: usize = std::str::from_utf8(count).ok()?.parse().ok()?;
    let paths: Vec<PathBuf> = match paths.get(1..)? {
        [] => Vec::new(),
        paths => {
            let paths = paths.strip_suffix(b"\0")?.split(|&byte| byte == 0);
            paths.map(|path| OsStr::from_bytes(path).into()).collect()
        }
    };
    (paths.len() == count).then_some(paths)
}

/// A socket's path has at most 107 bytes (unix(7)), so a long one goes through the store's descriptor.
pub(crate) fn socket_path(home: &Path, directory: BorrowedFd<'_>) -> PathBuf {
    const LONGEST: usize = 100;
    let path = home.join(SOCKET);
    match path.as_os_str().len() > LONGEST {
        true => PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(SOCKET),
        false => path,
    }
}

/// Asks the watcher of the store `home` about a spare. Any failure counts as unknown.
pub(crate) fn ask(home: &Path, spare: &str) -> KnownChanges {
    // The longest wait for a stopped watcher. One on a busy machine may take a while.
    const PATIENCE: Duration = Duration::from_secs(1);
    let asked = || -> std::io::Result<Vec<u8>> {
        let directory = sys::open_at(CWD, home, sys::PATH_ONLY | OFlags::DIRECTORY)?;
        let mut stream = UnixStream::connect(socket_path(home, directory.as_fd()))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(format!("{spare}\n").as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(answer)
    };
    decode(&asked().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_cut_off_says_nothing() {
        for paths in [&[][..], &[""], &["a/b", "", "c"]] {
            let changes = Some(paths.iter().map(PathBuf::from).collect());
            let bytes = encode(&changes);
            assert_eq!(decode(&bytes), changes);
            for length in 0..bytes.len() {
                assert_eq!(decode(&bytes[..length]), None, "{length} bytes of {changes:?}");
            }
        }
        assert_eq!(decode(&encode(&None)), None);
    }
}
