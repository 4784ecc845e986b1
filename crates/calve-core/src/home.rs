//! The directory for state that outlives a command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Returns CALVE_HOME, by default in the user's data directory (XDG Base Directory Specification), or why there is
/// none. It need not exist. `variable` looks up an environment variable; `user` is the user's home directory.
pub fn home_directory(
    variable: impl Fn(&str) -> Option<OsString>,
    user: Option<PathBuf>,
) -> Result<PathBuf, &'static str> {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(home) = set("CALVE_HOME") {
        return if home.is_absolute() { Ok(home) } else { Err("CALVE_HOME is not an absolute path") };
    }
    // The specification has relative paths ignored.
    if let Some(data) = set("XDG_DATA_HOME").filter(|data| data.is_absolute()) {
        return Ok(data.join("calve"));
    }
    match user.filter(|user| !user.as_os_str().is_empty()) {
        Some(user) if user.is_absolute() => Ok(user.join(".local/share/calve")),
        Some(_) => Err("HOME is not an absolute path"),
        None => Err("HOME is not set"),
    }
}

/// Returns a path for a record: one below CALVE_HOME moves with it.
pub(crate) fn from_home(path: &Path, home: &Path) -> PathBuf {
    let real = home.canonicalize().unwrap_or_else(|_| home.to_path_buf());
    // The home itself becomes `.`: an empty path stands for none.
    path.strip_prefix(real).map_or_else(|_| path.to_path_buf(), |below| Path::new(".").join(below))
}

/// Returns a recorded path, which may be relative to CALVE_HOME.
pub(crate) fn in_home(recorded: &Path, home: &Path) -> PathBuf {
    home.join(recorded).components().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_is_set_counts() {
        let of = |set: &[(&str, &str)], user: Option<&str>| {
            let find = |name: &str| set.iter().find(|(other, _)| *other == name).map(|(_, value)| value.into());
            home_directory(find, user.map(PathBuf::from))
        };
        let both = [("CALVE_HOME", "/c"), ("XDG_DATA_HOME", "/d")];
        assert_eq!(of(&both, Some("/u")), Ok("/c".into()));
        assert_eq!(of(&both[1..], Some("/u")), Ok("/d/calve".into()));
        assert_eq!(of(&[("CALVE_HOME", ""), ("XDG_DATA_HOME", "x")], Some("/u")), Ok("/u/.local/share/calve".into()));
        assert!(of(&[("CALVE_HOME", "x")], Some("/u")).is_err());
        assert_eq!(of(&[], Some("x")), Err("HOME is not an absolute path"));
        assert!([None, Some("")].into_iter().all(|user| of(&[], user) == Err("HOME is not set")));
    }
}
