//! A path taken apart into its directory, with every link in that resolved once, and a name in it.

use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path, PathBuf, is_separator};

use windows_sys::Win32::Foundation::{ERROR_DIRECTORY, ERROR_INVALID_NAME};

use crate::error::Error;
use crate::operation::Operation;
use crate::sys::{self, Info};

/// A name in a directory. The name itself is never followed.
pub(crate) struct Location {
    given: PathBuf,
    parent: PathBuf,
    path: PathBuf,
}

impl Location {
    /// Takes a path apart. Returns `None` if it ends in no name: a root, `.`, `..`.
    pub(super) fn open(given: &Path) -> Result<Option<Self>, Error> {
        if ends_in_dots(given) {
            return Ok(None);
        }
        let Some(Component::Normal(name)) = given.components().next_back() else { return Ok(None) };
        let failed = |error| Error::io(Operation::Open, given, error);
        // Such a path would be a stream of a file, or on another drive.
        if name.as_encoded_bytes().contains(&b':') {
            return Err(failed(code(ERROR_INVALID_NAME)));
        }
        let absolute = sys::verbatim(given).map_err(failed)?;
        // The system leaves dots and spaces at the end out; names of devices (`NUL`) have no directory.
        let (Some(above), Some(name)) = (absolute.parent(), absolute.file_name()) else { return Ok(None) };
        let parent = resolve(above).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::ParentMissing(parent_of(given)),
            _ => Error::io(Operation::OpenDirectory, parent_of(given), error),
        })?;
        if !std::fs::metadata(&parent).is_ok_and(|found| found.is_dir()) {
            return Err(Error::io(Operation::OpenDirectory, parent_of(given), code(ERROR_DIRECTORY)));
        }
        Ok(Some(Self { given: given.to_path_buf(), path: parent.join(name), parent }))
    }

    /// Takes the path of what is to be made apart.
    pub(crate) fn of_destination(given: &Path) -> Result<Self, Error> {
        Self::open(given)?.ok_or_else(|| Error::DestinationExists(given.to_path_buf()))
    }

    /// Takes the path of what has to be there apart: if its directory is missing, so is it. Returns `None` as [`Self::open`] does.
    pub(super) fn of_existing(given: &Path) -> Result<Option<Self>, Error> {
        Self::open(given).map_err(|error| match error {
            Error::ParentMissing(_) => Error::Missing(given.to_path_buf()),
            other => other,
        })
    }

    /// Returns the identity of the entry, and whether it is a directory. `None` if there is none.
    pub(crate) fn existing(&self) -> Result<Option<(sys::Identity, bool)>, Error> {
        Ok(self.look()?.map(|info| (info.identity, info.is_directory() && !info.is_link())))
    }

    /// Returns the path as given by the caller, for messages.
    pub(super) fn given(&self) -> &Path {
        &self.given
    }

    pub(super) fn given_parent(&self) -> PathBuf {
        parent_of(&self.given)
    }

    /// Returns the path of the entry, for the system.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the directory, for the system.
    pub(super) fn parent(&self) -> &Path {
        &self.parent
    }

    pub(super) fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }

    /// Looks at the entry without following a link. Returns `None` if there is none.
    pub(super) fn look(&self) -> Result<Option<Info>, Error> {
        match sys::look(&self.path) {
            Ok(info) => Ok(Some(info)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(Operation::Stat, &self.given, error)),
        }
    }
}

/// Returns the real path of something, with all links in it followed.
pub(super) fn resolve(path: &Path) -> io::Result<PathBuf> {
    match std::fs::canonicalize(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => sys::verbatim(path),
        other => other,
    }
}

/// Returns whether the directory at `inner`, which has been resolved, is the one with this identity, or lies in it.
pub(super) fn is_inside(inner: &Path, root: sys::Identity) -> bool {
    inner.ancestors().any(|above| sys::look(above).is_ok_and(|info| info.identity == root))
}

/// Joins paths as [`Path::join`] does, which would add a separator where there is nothing to join.
pub(super) fn below(root: &Path, relative: &Path) -> PathBuf {
    if relative.as_os_str().is_empty() { root.to_path_buf() } else { root.join(relative) }
}

pub(super) fn code(number: u32) -> io::Error {
    io::Error::from_raw_os_error(number.cast_signed())
}

pub(super) fn ends_with_separator(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().last().is_some_and(|&byte| is_separator(char::from(byte)))
}

fn parent_of(path: &Path) -> PathBuf {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_path_buf()
}

/// Returns whether a path ends in `.` or `..`. `Path::components` leaves a `.` at the end out, which must not be mistaken for the name
/// before it.
fn ends_in_dots(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    let last = bytes.split(|&byte| is_separator(char::from(byte))).rfind(|part| !part.is_empty());
    matches!(last, None | Some(b"." | b".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_name_no_entry_are_known() {
        for path in [".", "..", r"a\.", r"a\..\", "a/..", "/", r"C:\", ""] {
            assert!(Location::open(Path::new(path)).unwrap().is_none(), "{path}");
        }
        let folder = tempfile::tempdir().unwrap();
        let location = Location::open(&folder.path().join("a")).unwrap().unwrap();
        assert_eq!(location.name(), "a");
        assert!(location.look().unwrap().is_none());
        assert!(matches!(Location::open(&folder.path().join("b").join("c")), Err(Error::ParentMissing(_))));
        assert!(matches!(Location::open(&folder.path().join("name:b")), Err(Error::Io { .. })));
    }
}
