//! `calve git`, with the real git and a real HTTP host on loopback.

mod advise;
mod clone;
mod endless;
mod fetch;
mod host;
mod secrets;
mod transports;
mod trouble;

use std::path::PathBuf;

use calve_testkit::{git, git_repository};

use self::host::{GitHost, HostFault};
use crate::program::{Calve, calve};
use crate::spot::Spot;

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
