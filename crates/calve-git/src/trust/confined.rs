//! A git that runs no code of an untrusted worktree.

use std::process::Command;

use crate::trust::programs;

/// Removes relative directories from PATH, because inside a worktree they are in the worktree.
pub(crate) const WITHOUT_RELATIVE_PATH: &str = "set -f; IFS=:; p=; for d in $PATH; do case $d in /*) p=$p${p:+:}$d;; esac; done; \
    unset IFS; PATH=$p; export PATH; exec git \"$@\"";

/// Fails like git when the settings, and so what git would run, are unknown.
const UNKNOWN: &str = "echo 'fatal: cannot read the settings of git, and this worktree is not trusted' >&2; exit 128";

/// Returns a git for an untrusted worktree, which runs no hook, no file system monitor and no program from the tree. `settings` prints the settings.
pub(crate) fn confined_git(settings: &mut Command) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c");
    let Some(printed) = settings.output().ok().filter(|output| output.status.success()) else {
        shell.arg(UNKNOWN);
        return shell;
    };
    shell.args([WITHOUT_RELATIVE_PATH, "git"]);
    for (at, (name, value)) in programs::overrides(&printed.stdout).into_iter().enumerate() {
        let variable = format!("CALVE_SETTING_{at}");
        shell.args(setting(&name, &value, &variable)).env(variable, value);
    }
    shell
}

/// Returns options for a setting: the name in `-c NAME=VALUE` ends at the first `=`, which a driver's name may have; in `--config-env` at the last.
pub(crate) fn setting(name: &str, value: &str, variable: &str) -> Vec<String> {
    match name.contains('=') {
        true => vec![format!("--config-env={name}={variable}")],
        false => vec!["-c".to_owned(), format!("{name}={value}")],
    }
}
