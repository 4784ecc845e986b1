//! Real projects, made with the real tools, that work in a new worktree at once: on their own files, not on those of the main one.

mod cargo;
mod cmake;
mod node;
mod python;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use calve_testkit::{FileSystem, Tree, fingerprint, matrix, require_program};

use crate::program::calve;
use crate::spot::Spot;

/// Where worktrees are used.
const FILE_SYSTEMS: [FileSystem; 3] = [FileSystem::Xfs, FileSystem::Btrfs, FileSystem::Ext4];

/// A project in the main worktree of a repository.
pub(crate) struct Project {
    spot: Spot,
}

impl Project {
    /// On each file system, with few rounds on one, with what `make` writes, installs and builds there; then `check` in a new worktree.
    #[track_caller]
    pub(crate) fn each(programs: &[&str], make: impl Fn(&Project), check: impl Fn(&Project, &Path)) {
        if !programs.iter().all(|program| require_program(program)) {
            return;
        }
        for file_system in matrix(FILE_SYSTEMS) {
            let Some(spot) = Spot::on(file_system) else { return };
            let project = Project { spot };
            make(&project);
            project.commit();
            let before = fingerprint(project.main());
            let new = project.worktree();
            before_and_after(&project, &before, &new);
            check(&project, &new);
        }
    }

    pub(crate) fn spot(&self) -> &Path {
        &self.spot
    }

    pub(crate) fn main(&self) -> PathBuf {
        self.spot.join("main")
    }

    /// Files of the project.
    pub(crate) fn tree(&self) -> Tree {
        self.spot.tree("main")
    }

    /// Returns what a program prints. It finds nothing on the network.
    #[track_caller]
    pub(crate) fn run<S: AsRef<OsStr>>(
        &self,
        directory: &Path,
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = S>,
    ) -> String {
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(directory)
            .env("npm_config_cache", self.spot.join("npm"))
            .env_remove("LD_LIBRARY_PATH");
        let offline = [
            ("npm_config_offline", "true"),
            ("CARGO_NET_OFFLINE", "true"),
            ("PIP_NO_INDEX", "1"),
            ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
        ];
        command.envs(offline).env("CARGO_TERM_COLOR", "never");
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        for inherited in
            ["CARGO_TARGET_DIR", "CARGO_MANIFEST_DIR", "CARGO", "RUSTFLAGS", "VIRTUAL_ENV", "PYTHONPATH", "CI"]
        {
            command.env_remove(inherited);
        }
        let output = command.output().unwrap();
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{command:?}: {}\n{stdout}\n{stderr}", output.status);
        // Where cargo says what it does.
        format!("{stdout}{stderr}")
    }

    fn commit(&self) {
        for args in [
            &["init", "-q", "-b", "main"][..],
            &["add", "-A"],
            &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "all"],
        ] {
            self.run(&self.main(), "git", args);
        }
    }

    /// A new worktree with everything that git ignores.
    fn worktree(&self) -> PathBuf {
        let added = calve(["worktree", "add", "feature"]).within(self.main()).succeeds();
        let new = PathBuf::from(added.stdout.trim_end());
        assert_eq!(new, self.spot.join("main.feature"));
        new
    }
}

/// The main worktree is as it was, and nothing names it any more.
#[track_caller]
fn before_and_after(project: &Project, before: &calve_testkit::Fingerprint, new: &Path) {
    let changes = before.changes(&fingerprint(project.main()));
    let changes: Vec<_> = changes.iter().filter(|line| !line.starts_with("`.git")).collect();
    assert!(changes.is_empty(), "the main worktree was changed: {changes:?}");
    let again = calve(["worktree", "check", "--json"]).within(new).succeeds().json();
    assert_eq!(again["findings"], serde_json::json!([]), "found again");
    assert_eq!(project.run(new, "git", ["status", "--porcelain"]), "", "the worktree is not clean");
}
