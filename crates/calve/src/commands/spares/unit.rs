//! The unit with which systemd runs the watcher.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, io};

use calve_core::ShownPath;

use crate::failure::{FAILED, Failure};
use crate::{home, output};

const NAME: &str = "calve-spares.service";
/// A unit that begins like this is Calve's.
const BEGINNING: &str = "[Unit]\nDescription=Watches the directories that calve keeps spares of\n";

/// Returns the text of the unit for systemd's manager of the user's services.
pub(super) fn text() -> Result<String, Failure> {
    let program = env::current_exe()?;
    let home = home::directory()
        .map_err(|why| Failure::stated(FAILED, format!("there is no place for spares: {why}"), "set CALVE_HOME"))?;
    Ok(format!(
        "{BEGINNING}\n[Service]\nEnvironment={}\n\
         ExecStart={} spares watch --quiet\nRestart=on-failure\nNice=5\n\n[Install]\nWantedBy=default.target\n",
        quoted(&format!("CALVE_HOME={}", home.display())),
        quoted(&program.display().to_string()),
    ))
}

/// Quotes a text for systemd: in quotes, and with `%` and `$` doubled.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    format!("\"{text}\"")
}

/// Writes the unit, shows it, and has systemd run it where that runs for this user.
pub(super) fn install(quiet: bool) -> Result<(), Failure> {
    if !is_there("systemctl") {
        let hint = "start `calve spares watch --quiet` from whatever starts your programs";
        return Err(Failure::stated(FAILED, "there is no systemd here (no `systemctl` in PATH)", hint));
    }
    let (unit, path) = (text()?, path()?);
    let before = present(&path)?;
    if before.as_ref() != Some(&unit) {
        let directory = path.parent().unwrap_or(Path::new("."));
        fs_err::create_dir_all(directory)?;
        // Whole or not at all.
        let new = directory.join(format!(".{NAME}.{}", std::process::id()));
        let written = fs_err::write(&new, &unit).and_then(|()| fs_err::rename(&new, &path));
        if let Err(error) = written {
            let _ = fs_err::remove_file(&new);
            return Err(error.into());
        }
    }
    if !quiet {
        output::say(&unit);
    }
    if !is_running() {
        let hint = "systemd does not run for you here; where it does: `systemctl --user enable --now calve-spares`";
        if !quiet {
            output::say(hint);
        }
        return output::path(&path);
    }
    systemctl(&["daemon-reload"])?;
    systemctl(&["enable", NAME])?;
    systemctl(&["restart", NAME])?;
    output::path(&path)
}

/// Stops the unit through systemd if it runs, and deletes it.
pub(super) fn uninstall(quiet: bool) -> Result<(), Failure> {
    let path = path()?;
    if present(&path)?.is_none() {
        let text = format!("there is no unit at `{}`", ShownPath(&path));
        return Err(Failure::stated(FAILED, text, "`calve spares watch --install` makes it"));
    }
    let is_running = is_there("systemctl") && is_running();
    if is_running {
        systemctl(&["disable", "--now", NAME])?;
    }
    fs_err::remove_file(&path)?;
    if is_running {
        systemctl(&["daemon-reload"])?;
    }
    if !quiet {
        output::say(&format!("`{}` is deleted", ShownPath(&path)));
    }
    Ok(())
}

/// Returns where the unit belongs.
fn path() -> Result<PathBuf, Failure> {
    let absolute = |path: PathBuf| Some(path).filter(|path| path.is_absolute());
    let configuration = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).and_then(absolute);
    let configuration = configuration.or_else(|| Some(env::home_dir().and_then(absolute)?.join(".config")));
    let configuration = configuration
        .ok_or_else(|| Failure::stated(FAILED, "there is no place for the unit", "set HOME to your home directory"))?;
    Ok(configuration.join("systemd/user").join(NAME))
}

/// Returns the text of the existing unit, or `None` if there is none. Fails if Calve did not write it.
fn present(path: &Path) -> Result<Option<String>, Failure> {
    match fs_err::read_to_string(path) {
        Ok(text) if text.starts_with(BEGINNING) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() != io::ErrorKind::InvalidData => Err(error.into()),
        _ => {
            let text = format!("`{}` is not a unit that calve wrote", ShownPath(path));
            Err(Failure::stated(
                FAILED,
                text,
                "move it away, or take `calve spares watch --print-unit` for another name",
            ))
        }
    }
}

fn is_there(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// Returns whether systemd's manager of this user's services runs: this is where it listens.
fn is_running() -> bool {
    let runtime: OsString = env::var_os("XDG_RUNTIME_DIR").unwrap_or_default();
    !runtime.is_empty() && Path::new(&runtime).join("systemd/private").exists()
}

fn systemctl(words: &[&str]) -> Result<(), Failure> {
    let run = Command::new("systemctl").arg("--user").args(words).stdin(Stdio::null()).output()?;
    if run.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&run.stderr).trim().to_owned();
    let line = words.join(" ");
    let text = format!("`systemctl --user {line}` failed: {}", ShownPath(Path::new(&said)));
    Err(Failure::stated(FAILED, text, "the unit stays where it is; `systemctl --user status calve-spares` shows more"))
}
