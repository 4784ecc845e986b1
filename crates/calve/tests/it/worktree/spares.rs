//! Spares of ignored directories: `calve worktree add` takes them by itself.

use std::path::Path;

use calve_testkit::{FileSystem, assert_same};

use super::repo::{Repo, is_clean};
use crate::program::{Calve, calve};

const DISKS: [FileSystem; 2] = [FileSystem::Ext4, FileSystem::Xfs];

fn spares(repo: &Repo, arguments: &[&str]) -> Calve {
    calve(["spares"]).args(arguments).within(&repo.path).env("CALVE_HOME", repo.spot.join("home"))
}

fn add(repo: &Repo, name: &str) -> serde_json::Value {
    repo.calve(["add", "--json", name]).env("CALVE_HOME", repo.spot.join("home")).succeeds().json()
}

/// A repository with a directory of which there is a spare.
fn with_spare(file_system: FileSystem) -> Option<Repo> {
    let repo = Repo::on(file_system)?;
    spares(&repo, &["add", "-q", "node_modules"]).succeeds();
    Some(repo)
}

/// Which directories of a new worktree are spares.
fn used(receipt: &serde_json::Value) -> Vec<String> {
    let used = receipt["spares"].as_array().into_iter().flatten();
    used.inspect(|one| assert_eq!(one["strategy"], "spare")).map(|one| one["dst"].as_str().unwrap().into()).collect()
}

fn node_modules(path: &Path) -> std::path::PathBuf {
    path.join("node_modules")
}

#[test]
fn a_worktree_takes_a_spare_of_an_ignored_directory() {
    for file_system in DISKS {
        let Some(repo) = with_spare(file_system) else { return };
        // The spare is brought up to date.
        repo.write("node_modules/dep/more.js", "module.exports = 2\n");
        let receipt = add(&repo, "one");
        assert_eq!(used(&receipt), ["node_modules"]);
        assert!(receipt["carried"].as_array().unwrap().contains(&"node_modules".into()));
        let path = repo.spot.join("proj.one");
        is_clean(&path);
        assert_same(node_modules(&repo.path), node_modules(&path));
        assert_eq!(fs_err::read_to_string(path.join("target/debug/out.o")).unwrap(), "object\n");
    }
}

#[test]
fn without_a_spare_that_is_ready_the_directory_is_cloned() {
    let Some(repo) = with_spare(FileSystem::Ext4) else { return };
    // Nothing builds another one meanwhile.
    spares(&repo, &["pause", "-q", "node_modules"]).succeeds();
    assert_eq!(used(&add(&repo, "one")), ["node_modules"]);
    assert!(used(&add(&repo, "two")).is_empty());
    let path = repo.spot.join("proj.two");
    is_clean(&path);
    assert_same(node_modules(&repo.path), node_modules(&path));
}

/// Worktrees are subvolumes there, into which nothing can be moved.
#[test]
fn on_btrfs_the_directory_is_cloned() {
    let Some(repo) = with_spare(FileSystem::Btrfs) else { return };
    assert!(used(&add(&repo, "one")).is_empty());
    let path = repo.spot.join("proj.one");
    is_clean(&path);
    assert_same(node_modules(&repo.path), node_modules(&path));
}

#[test]
fn a_spare_leaves_out_what_a_worktree_leaves_out() {
    let Some(repo) = Repo::on(FileSystem::Ext4) else { return };
    repo.write("node_modules/server.pid", "17\n");
    repo.write("node_modules/sub/.git", "gitdir: ../../.git/modules/sub\n");
    repo.write("node_modules/sub/file", "x\n");
    repo.write("node_modules/other/.git", "gitdir: ../../../lib/.git/worktrees/other\n");
    repo.write("node_modules/other/file", "y\n");
    repo.write("node_modules/.cache/big.log", "log\n");
    repo.write(".calve.toml", "[worktree]\nexclude = [\"*.log\"]\n");
    repo.commit("exclude");
    spares(&repo, &["add", "-q", "node_modules"]).succeeds();
    let receipt = add(&repo, "one");
    assert_eq!(used(&receipt), ["node_modules"]);
    let path = repo.spot.join("proj.one");
    is_clean(&path);
    let sub = "node_modules/sub/.git";
    for gone in ["node_modules/server.pid", sub, "node_modules/other", "node_modules/.cache/big.log"] {
        assert!(!path.join(gone).exists(), "{gone} is there");
        let left = receipt["left"].as_array().unwrap();
        assert!(left.iter().any(|left| left["path"] == gone), "{gone} is not told: {left:?}");
    }
    assert!(path.join("node_modules/sub/file").exists());
}
