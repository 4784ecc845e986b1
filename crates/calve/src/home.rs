//! Where state that outlives a command is kept: `$CALVE_HOME`, by default the user's data directory.

use std::env;
use std::path::{Path, PathBuf};

use calve_core::Error;
use calve_core::error::Operation;
use calve_core::options::SpareUse;

/// Returns Calve's home, which need not exist, or the reason why there is none.
pub(crate) fn directory() -> Result<PathBuf, &'static str> {
    calve_core::internal::home_directory(|name| env::var_os(name), env::home_dir())
}

/// Makes a directory below Calve's home, and those above it.
pub(crate) fn make(directory: &Path) -> Result<(), Error> {
    // fs-err would hide the system's number, and tell the path twice.
    std::fs::DirBuilder::new().recursive(true).create(directory).map_err(|source| Error::Io {
        operation: Operation::CreateDirectory,
        path: directory.to_path_buf(),
        source,
    })
}

pub(crate) fn spares() -> Option<SpareUse> {
    directory().ok().map(|home| SpareUse::in_home(&home))
}

/// Returns the places that are never removed or replaced: the user's home directory.
pub(crate) fn protected() -> Vec<PathBuf> {
    std::env::home_dir().into_iter().filter(|home| home.is_absolute()).collect()
}
