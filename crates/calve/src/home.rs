//! The directories of lasting state: `$CALVE_HOME`, by default the user's data directory.

use std::env;
use std::path::{Path, PathBuf};

use calve_core::Error;
use calve_core::error::Operation;
use calve_core::options::SpareUse;

/// Returns Calve's home, which need not exist, or the reason for its absence.
pub(crate) fn directory() -> Result<PathBuf, &'static str> {
    calve_core::internal::home_directory(|name| env::var_os(name), env::home_dir())
}

pub(crate) fn make(directory: &Path) -> Result<(), Error> {
    // fs-err would hide the errno and repeat the path.
    std::fs::DirBuilder::new().recursive(true).create(directory).map_err(|source| Error::Io {
        operation: Operation::CreateDirectory,
        path: directory.to_path_buf(),
        source,
    })
}

pub(crate) fn spares() -> Option<SpareUse> {
    directory().ok().map(|home| SpareUse::in_home(&home))
}

/// Returns places that are never removed or replaced: the user's home directory.
pub(crate) fn protected() -> Vec<PathBuf> {
    std::env::home_dir().into_iter().filter(|home| home.is_absolute()).collect()
}
