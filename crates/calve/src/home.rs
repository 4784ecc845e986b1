//! Where state that outlives a command is kept: `$CALVE_HOME`, by default the user's data directory (XDG Base Directory
//! Specification).

use std::env;
use std::path::PathBuf;

/// The directory, which need not exist; or why there is none.
pub(crate) fn directory() -> Result<PathBuf, &'static str> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(home) = set("CALVE_HOME") {
        return if home.is_absolute() { Ok(home) } else { Err("CALVE_HOME is not an absolute path") };
    }
    // The specification has relative paths ignored.
    if let Some(data) = set("XDG_DATA_HOME").filter(|data| data.is_absolute()) {
        return Ok(data.join("calve"));
    }
    let home = env::home_dir().filter(|home| home.is_absolute());
    home.map(|home| home.join(".local/share/calve")).ok_or("HOME is not set")
}
