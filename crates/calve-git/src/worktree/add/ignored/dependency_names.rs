//! Directories of dependencies, by their names.

use std::ffi::OsStr;
use std::path::Path;

/// Directories that a package manager or a build tool fills. They have files of others: a certificate there is no secret.
pub(crate) const DEPENDENCIES: [&str; 7] =
    ["node_modules", ".venv", "venv", "target", "vendor", ".tox", "bower_components"];

/// Returns the outermost directory of dependencies that the path is in, or is.
pub(crate) fn dependency(path: &Path) -> Option<&Path> {
    let is_one = |above: &&Path| {
        above.file_name().is_some_and(|name| DEPENDENCIES.iter().any(|known| OsStr::new(known) == name))
    };
    path.ancestors().filter(is_one).last()
}
