use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use calve_core::CancelToken;
use rustix::fs::OFlags;

use crate::error::BenchError;
use crate::process;

/// Finds a program on the PATH, or among administrators' programs, which a user's PATH often lacks.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    places.map(|place| place.join(name)).find(|candidate| {
        fs_err::metadata(candidate).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    })
}

/// Returns the first line of each program's `--version`, Calve first, or "unknown" if there is none soon.
pub(crate) fn versions(
    calve: &Path,
    names: Vec<&'static str>,
    cancel: &CancelToken,
) -> Result<Vec<(String, String)>, BenchError> {
    let programs = names.into_iter().filter_map(|name| Some((name, find(name)?)));
    let mut versions = Vec::new();
    for (name, path) in std::iter::once(("calve", calve.to_path_buf())).chain(programs) {
        let version = version(&path, cancel);
        cancel.check()?;
        versions.push((name.to_owned(), version.unwrap_or_else(|| "unknown".into())));
    }
    Ok(versions)
}

/// Limit for a program that does something else than print its version.
const PATIENCE: Duration = Duration::from_secs(5);
const LONGEST: u64 = 4096;

fn version(program: &Path, cancel: &CancelToken) -> Option<String> {
    // A pipe holds more than is read here. A program that writes more than a pipe holds is ended after a while.
    let (mut reader, writer) = std::io::pipe().ok()?;
    // Output up to the program's end counts. A child outside its group may keep the pipe open for long.
    rustix::fs::fcntl_setfl(&reader, OFlags::NONBLOCK).ok()?;
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(writer).stderr(Stdio::null());
    let ended = process::run_command(&mut command, Some(PATIENCE), cancel, |_, _| ()).ok()?;
    if !ended.status.success() {
        return None;
    }
    let mut printed = vec![0; usize::try_from(LONGEST).ok()?];
    let length = reader.read(&mut printed).ok()?;
    let text = String::from_utf8_lossy(&printed[..length]).into_owned();
    let line: String = text.lines().next()?.trim().chars().filter(|c| !c.is_control()).collect();
    (!line.is_empty()).then_some(line)
}
