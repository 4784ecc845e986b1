//! Where state that outlives a command is kept: `$CALVE_HOME`, by default the user's data directory.

use std::env;
use std::path::PathBuf;

use calve_core::SpareUse;

/// Returns Calve's home, which need not exist, or the reason why there is none.
pub(crate) fn directory() -> Result<PathBuf, &'static str> {
    calve_core::home_directory(|name| env::var_os(name), env::home_dir())
}

/// Returns the spares that a clone may use, or `None` if there is no place for them.
pub(crate) fn spares() -> Option<SpareUse> {
    directory().ok().map(|home| SpareUse::in_home(&home))
}
