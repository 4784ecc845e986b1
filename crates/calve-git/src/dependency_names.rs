use std::ffi::OsStr;
use std::path::Path;

/// Directories that a package manager or a build tool fills with files of others: a certificate there is no secret.
pub(crate) const DEPENDENCIES: [&str; 7] =
    ["node_modules", ".venv", "venv", "target", "vendor", ".tox", "bower_components"];

pub(crate) fn is_dependency(name: &OsStr) -> bool {
    DEPENDENCIES.iter().any(|known| OsStr::new(known) == name)
}

/// Returns the outermost directory of dependencies that contains the path, or is the path.
pub(crate) fn dependency(path: &Path) -> Option<&Path> {
    path.ancestors().filter(|above| above.file_name().is_some_and(is_dependency)).last()
}
