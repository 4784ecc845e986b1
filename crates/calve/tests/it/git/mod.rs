//! `calve git`, with the real git and a real HTTP host on loopback.

mod advise;
mod clone;
mod endless;
mod fetch;
mod host;
mod secrets;
mod transports;
mod trouble;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use calve_testkit::{git, git_command};

use self::host::{GitHost, HostFault};
use crate::program::{Calve, calve};
use crate::spot::Spot;

/// Makes a repository to serve, by `git` itself: `commits` commits on `main`, each changing one of three files.
///
/// Filters are allowed; `git config uploadpack.allowFilter false` in it takes that away.
fn git_repository(directory: impl AsRef<Path>, commits: usize) {
    let directory = directory.as_ref();
    fs_err::create_dir_all(directory).unwrap();
    git(directory, ["init", "--quiet", "--bare", "--initial-branch=main"]);
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
    let mut import = git_command(directory);
    let mut import = import.args(["fast-import", "--quiet"]).stdin(Stdio::piped()).spawn().unwrap();
    import.stdin.take().unwrap().write_all(stream.as_bytes()).unwrap();
    assert!(import.wait().unwrap().success());
}

/// A place to clone to, and a repository on a host.
struct Hosted {
    spot: Spot,
    host: GitHost,
    repository: PathBuf,
    _served: tempfile::TempDir,
}

const COMMITS: usize = 30;

impl Hosted {
    fn new() -> Self {
        Self::named("project.git", HostFault::None)
    }

    fn with(fault: HostFault) -> Self {
        Self::named("project.git", fault)
    }

    fn named(name: &str, fault: HostFault) -> Self {
        let served = tempfile::tempdir().unwrap();
        let repository = served.path().join(name);
        git_repository(&repository, COMMITS);
        let host = GitHost::with(served.path(), fault);
        Self { spot: Spot::anywhere(), host, repository, _served: served }
    }

    fn url(&self) -> String {
        self.host.url("project.git")
    }

    /// `calve git ARGUMENTS` in the place to clone to, without what the user or the machine has configured.
    fn calve(&self, arguments: &[&str]) -> Calve {
        alone(calve(["git"]).args(arguments).within(&self.spot))
    }

    fn git(&self, directory: &str, arguments: &[&str]) -> String {
        git(self.spot.join(directory), arguments)
    }

    /// One more commit in the repository.
    fn push(&self) {
        let tree = git(&self.repository, ["rev-parse", "main^{tree}"]);
        let commit = git(&self.repository, ["commit-tree", &tree, "-p", "main", "-m", "more"]);
        git(&self.repository, ["update-ref", "refs/heads/main", &commit]);
    }
}

fn alone(command: Calve) -> Calve {
    let command = command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    command.env("CI", "").env("HOME", "/nonexistent").env("GIT_ASKPASS", "").env("SSH_ASKPASS", "")
}
