use std::env;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use crate::must::run;

/// Runs `git` and returns its trimmed output. Panics if it fails.
#[track_caller]
pub fn git<S: AsRef<OsStr>>(directory: impl AsRef<Path>, arguments: impl IntoIterator<Item = S>) -> String {
    run(git_command(directory).args(arguments)).trim().to_owned()
}

/// Returns a `git` command in `directory` with a fixed author, isolated from the user's and the machine's configuration
/// and from a git whose hook runs the tests.
pub fn git_command(directory: impl AsRef<Path>) -> Command {
    let mut command = Command::new("git");
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_")) {
        command.env_remove(name);
    }
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "Ann").env(format!("GIT_{role}_EMAIL"), "ann@example.org");
    }
    command.current_dir(directory).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    // Otherwise each commit, merge and fetch would look for objects to pack.
    command.args(["-c", "maintenance.auto=false"]);
    command
}
