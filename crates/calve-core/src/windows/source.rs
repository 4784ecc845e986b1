//! The source of a clone.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use windows_sys::Win32::Foundation::ERROR_DIRECTORY;

use super::facts::resolved;
use super::file::special;
use super::location::{Location, code, ends_with_separator, is_inside};
use crate::error::Error;
use crate::operation::Operation;
use crate::options::CloneOptions;
use crate::sys::{self, Identity, Info};

/// The source of a clone.
pub(crate) struct Source {
    given: PathBuf,
    /// The source, or the directory that it is in when it is none itself.
    directory: PathBuf,
    single: Option<OsString>,
    info: Info,
}

impl Source {
    pub(crate) fn open(given: &Path) -> Result<Self, Error> {
        // `link\` means the directory behind the link; a root and `.` have no name.
        let location = if ends_with_separator(given) { None } else { Location::of_existing(given)? };
        let path = match &location {
            Some(location) => location.path().to_path_buf(),
            None if sys::verbatim(given).is_ok_and(|path| !path.exists()) => {
                return Err(Error::Missing(given.to_path_buf()));
            }
            None => resolved(given, given)?,
        };
        let info = match &location {
            Some(location) => location.look()?.ok_or_else(|| Error::Missing(given.to_path_buf()))?,
            None => sys::look(&path).map_err(|error| Error::io(Operation::Stat, given, error))?,
        };
        if let Some(reason) = special(info.tag) {
            return Err(Error::NotClonable { path: given.to_path_buf(), kind: reason.text() });
        }
        let is_directory = info.is_directory() && !info.is_link();
        let (directory, single) = match location {
            _ if is_directory => (path, None),
            Some(location) => (location.parent().to_path_buf(), Some(location.name().to_owned())),
            None => return Err(Error::io(Operation::OpenDirectory, given, code(ERROR_DIRECTORY))),
        };
        Ok(Self { given: given.to_path_buf(), directory, single, info })
    }

    pub(crate) fn given(&self) -> &Path {
        &self.given
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn single(&self) -> Option<&OsStr> {
        self.single.as_deref()
    }

    pub(crate) fn identity(&self) -> Identity {
        self.info.identity
    }

    /// Returns whether what is made at `destination` would be inside the source.
    pub(crate) fn contains(&self, destination: &Location) -> Result<bool, Error> {
        Ok(is_inside(destination.parent(), self.identity()))
    }

    /// Returns whether the source is in the directory with that identity.
    pub(crate) fn is_inside(&self, _destination: &Location, existing: Identity) -> Result<bool, Error> {
        Ok(is_inside(&self.directory, existing))
    }
}

/// Calls `clone`. Elsewhere a source can be a template, which is kept in the directory that `home` tells; here there are none.
///
/// # Errors
/// Fails as `clone` does.
pub fn with_source<T>(
    src: &Path,
    options: &CloneOptions,
    home: impl FnOnce() -> Result<PathBuf, &'static str>,
    clone: impl FnOnce(&Path, &CloneOptions) -> Result<T, Error>,
) -> Result<T, Error> {
    let _ = home;
    clone(src, options)
}
