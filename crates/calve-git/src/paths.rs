use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Component, Path, PathBuf};

pub(crate) use calve_core::internal::if_there;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rustix::fs::{Access, AtFlags, CWD, accessat};

use crate::error::failed;

pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// Resolves `.` and `..` by names alone: the path need not exist.
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

pub(crate) fn in_url(path: &[u8]) -> String {
    const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    percent_encode(path, ESCAPED).to_string()
}

/// Resolves the links of a path, or of the part that exists.
pub(crate) fn real(path: &Path) -> PathBuf {
    let resolved = |above: &Path| {
        let rest = path.strip_prefix(above).ok()?;
        Some(fs_err::canonicalize(above).ok()?.join(rest).components().collect())
    };
    path.ancestors().find_map(resolved).unwrap_or_else(|| path.to_path_buf())
}

/// Returns whether nothing is there. An error leaves that open: something may be.
pub(crate) fn is_missing(path: &Path) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    fs_err::symlink_metadata(path).is_err_and(|error| matches!(error.kind(), NotFound | NotADirectory))
}

/// Writes a file that is never visible without its text.
pub(crate) fn write_at_once(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut staged = path.as_os_str().to_owned();
    staged.push(".calve");
    fs_err::write(&staged, text)?;
    fs_err::rename(&staged, path)
}

/// Calls `make` with one number after the other, while the name that it forms is taken. Returns the result.
pub(crate) fn numbered<T>(mut make: impl FnMut(u64) -> io::Result<T>) -> io::Result<T> {
    // XFS reports that a directory exists, other file systems that it is not empty.
    use io::ErrorKind::{AlreadyExists, DirectoryNotEmpty};
    let mut number = 0;
    loop {
        match make(number) {
            Err(error) if matches!(error.kind(), AlreadyExists | DirectoryNotEmpty) && number < 10_000 => number += 1,
            made => return made,
        }
    }
}

/// Makes a directory, and those above it, for this user only.
pub(crate) fn make_private(directory: &Path) -> io::Result<()> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|error| failed("failed to create directory", directory, error))
}

/// Fails if this user may not make, rename or remove entries of a directory.
pub(crate) fn check_writable(directory: &Path) -> io::Result<()> {
    Ok(accessat(CWD, directory, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)?)
}

/// Returns the path in the text of a `.git` file (gitrepository-layout(5)).
pub(crate) fn pointed_to(text: &[u8]) -> Option<PathBuf> {
    let path = text.strip_prefix(b"gitdir: ")?.trim_ascii();
    (!path.is_empty()).then(|| path_of(path))
}

pub(crate) fn pointer_in(file: &Path) -> Option<PathBuf> {
    pointed_to(&fs_err::read(file).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_resolved_by_name() {
        assert_eq!(plain(Path::new("/a/b/../c/./d")), Path::new("/a/c/d"));
        assert_eq!(plain(Path::new("/../x")), Path::new("/x"));
    }

    #[test]
    fn links_above_what_is_missing_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let real_folder = fs_err::canonicalize(folder.path()).unwrap();
        fs_err::create_dir(folder.path().join("there")).unwrap();
        fs_err::os::unix::fs::symlink("there", folder.path().join("link")).unwrap();
        for (path, expected) in [("link", "there"), ("link/a/b", "there/a/b"), ("a/b", "a/b")] {
            assert_eq!(real(&folder.path().join(path)), real_folder.join(expected), "{path}");
        }
    }
}
