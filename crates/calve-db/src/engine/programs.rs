//! Finds a server's program and its version.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::engine::{Engine, ServerProgram, Version};
use crate::error::{AtPath as _, Error, Result};
use crate::files::account::Account;

#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) version: Version,
}

impl Program {
    pub(crate) fn recorded(&self, engine: &dyn Engine, account: Account) -> ServerProgram {
        let (path, version) = (self.path.clone(), self.version.text.clone());
        ServerProgram { engine: engine.name().to_owned(), path, version, account, notifies: false }
    }
}

/// Finds the server's program in `named` (its directory, or itself), else in `search` (PATH) and the usual places.
pub(crate) fn find(engine: &dyn Engine, named: Option<&Path>, search: &[PathBuf]) -> Result<Program> {
    let name = engine.program();
    let places = match named {
        Some(named) if named.is_file() => return look_at(engine, named),
        Some(named) => vec![named.to_path_buf(), named.join("bin"), named.join("sbin")],
        None => search.iter().cloned().chain(engine.usual_places()).collect(),
    };
    let mut unfit = None;
    for path in places.iter().map(|place| place.join(name)).filter(|path| path.is_file()) {
        match look_at(engine, &path) {
            // A later place may have a better one.
            Err(error @ Error::Version { .. }) => drop(unfit.get_or_insert(error)),
            other => return other,
        }
    }
    Err(unfit.unwrap_or_else(|| Error::NoProgram { program: name.into(), places }))
}

fn look_at(engine: &dyn Engine, path: &Path) -> Result<Program> {
    let path = resolved(engine, path).at("find", path)?;
    let mut command = Command::new(&path);
    let output = command.arg("--version").env_clear().env("LC_ALL", "C").output().at("run", &path)?;
    let version = checked(engine, &path, &String::from_utf8_lossy(&output.stdout))?;
    Ok(Program { path, version })
}

/// Resolves all links to a program, except one that gives it its name.
fn resolved(engine: &dyn Engine, path: &Path) -> std::io::Result<PathBuf> {
    match (path.parent(), path.file_name()) {
        (Some(directory), Some(name)) if engine.is_known_by_name() => {
            let here = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
            Ok(fs_err::canonicalize(here)?.join(name))
        }
        _ => fs_err::canonicalize(path),
    }
}

/// Parses a program's `--version` output. Fails if that version is not supported.
pub(crate) fn checked(engine: &dyn Engine, path: &Path, printed: &str) -> Result<Version> {
    let (version, supported) = match engine.version(printed) {
        Some(version) => match engine.unsupported(&version) {
            Some(supported) => (version.text, supported),
            None => return Ok(version),
        },
        None => ("of an unknown version".to_owned(), "what its `--version` tells"),
    };
    let version = version.trim().to_owned();
    Err(Error::Version { path: path.to_path_buf(), version, supported: supported.to_owned() })
}
