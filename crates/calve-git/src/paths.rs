//! Paths as git prints and keeps them.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// Returns a path without `.` and `..`, by its names alone: it need not exist.
pub(crate) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// Returns a path without links, or as it is when nothing is there.
pub(crate) fn real(path: &Path) -> PathBuf {
    fs_err::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

/// Returns `None` if it is missing.
pub(crate) fn if_there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// Returns the path that a `.git` file names (gitrepository-layout(5)).
pub(crate) fn pointed_to(text: &[u8]) -> Option<PathBuf> {
    let path = text.strip_prefix(b"gitdir:")?.trim_ascii();
    (!path.is_empty()).then(|| path_of(path))
}
