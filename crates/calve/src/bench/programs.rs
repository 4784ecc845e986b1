//! The programs of others that a bench runs, and their versions.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// On the PATH, or where administrators' programs are, which the PATH of a user often lacks.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    places.map(|place| place.join(name)).find(|candidate| {
        fs_err::metadata(candidate).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    })
}

/// The first line that each program says of its version, Calve first.
pub(crate) fn versions(calve: &Path, names: Vec<&'static str>) -> Vec<(String, String)> {
    let programs = names.into_iter().filter_map(|name| Some((name, find(name)?)));
    let with_calve = std::iter::once(("calve", calve.to_path_buf())).chain(programs);
    with_calve.map(|(name, path)| (name.to_owned(), version(&path).unwrap_or_else(|| "unknown".into()))).collect()
}

/// Some say it on stderr.
fn version(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    let line: String = text.lines().next()?.trim().chars().filter(|c| !c.is_control()).collect();
    (output.status.success() && !line.is_empty()).then_some(line)
}
