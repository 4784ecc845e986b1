//! A git that runs no code of an untrusted worktree.

use std::env;
use std::process::Command;

use crate::trust::programs;

/// Fails like git if the settings, and so the programs that git would run, are unknown.
const UNKNOWN: &str = "echo 'fatal: cannot read the settings of git, and this worktree is not trusted' >&2; exit 128";

/// Removes relative directories from a command's PATH: inside a worktree, they belong to the worktree.
pub(crate) fn without_relative_path(mut command: Command) -> Command {
    if let Some(path) = env::var_os("PATH") {
        let absolute = env::split_paths(&path).filter(|directory| directory.is_absolute());
        command.env("PATH", env::join_paths(absolute).unwrap_or_default());
    }
    command
}

/// Returns a `git` that runs no hook, file system monitor or program of an untrusted tree. `settings` prints git's.
pub(crate) fn confined_git(settings: &mut Command, mut git: Command) -> Command {
    let Some(printed) = settings.output().ok().filter(|output| output.status.success()) else {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", UNKNOWN]);
        return shell;
    };
    for (at, (name, value)) in programs::overrides(&printed.stdout).into_iter().enumerate() {
        let variable = format!("CALVE_SETTING_{at}");
        git.args(setting(&name, &value, &variable)).env(variable, value);
    }
    git
}

/// Returns options for a setting, whose name may have a `=`: `-c` ends it at the first one, `--config-env` at the last.
pub(crate) fn setting(name: &str, value: &str, variable: &str) -> Vec<String> {
    match name.contains('=') {
        true => vec![format!("--config-env={name}={variable}")],
        false => vec!["-c".to_owned(), format!("{name}={value}")],
    }
}
