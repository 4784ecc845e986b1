//! `git` for tests, and repositories made by it.

use std::env;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use crate::must::{feed, run};

/// Makes a repository to serve, by `git` itself: `commits` commits on `main`, each changing one of three files.
///
/// Filters are allowed; `git config uploadpack.allowFilter false` in it takes that away.
pub fn git_repository(directory: impl AsRef<Path>, commits: usize) {
    let directory = directory.as_ref();
    run(git_command("/").args(["init", "--quiet", "--bare", "--initial-branch=main"]).arg(directory));
    for (setting, value) in
        [("uploadpack.allowFilter", "true"), ("uploadpack.allowAnySHA1InWant", "true"), ("gc.auto", "0")]
    {
        git(directory, ["config", setting, value]);
    }
    let mut stream = String::new();
    for number in 1..=commits {
        let file = ["readme", "src/main", "docs/guide"][number % 3];
        // Different enough not to become one delta after the other.
        let content: String =
            (0..200).map(|line| format!("{} of {number}\n", (line * number * 7919) % 10_007)).collect();
        let when = 1_500_000_000 + number;
        stream += &format!("commit refs/heads/main\ncommitter Ann <ann@example.org> {when} +0000\n");
        stream += &format!("data <<end\ncommit {number}\nend\nM 644 inline {file}\ndata {}\n", content.len());
        stream += &format!("{content}\n");
    }
    feed(git_command(directory).args(["fast-import", "--quiet"]), stream.as_bytes());
}

/// Panics when `git` fails.
#[track_caller]
pub fn git<S: AsRef<OsStr>>(directory: impl AsRef<Path>, arguments: impl IntoIterator<Item = S>) -> String {
    run(git_command(directory).args(arguments)).trim().to_owned()
}

/// Returns a command that runs `git` in `directory` for a user with a name. The configuration of the user and the machine does not touch
/// it, nor does a git whose hook runs the tests.
pub fn git_command(directory: impl AsRef<Path>) -> Command {
    let mut command = Command::new("git");
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_")) {
        command.env_remove(name);
    }
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "Ann").env(format!("GIT_{role}_EMAIL"), "ann@example.org");
    }
    command.current_dir(directory).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    // Each commit, merge and fetch would look for something to pack.
    command.args(["-c", "maintenance.auto=false"]);
    command
}
