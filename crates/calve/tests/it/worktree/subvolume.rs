//! On btrfs worktrees are subvolumes, and cloning one is a snapshot.

use std::process::{Command, Stdio};

use calve_testkit::{FileSystem, assert_same};

use super::repo::{Repo, git, is_as_git_makes_it, is_clean, opened_by_status, write};
use crate::spot::{eventually_nothing_left, nothing_left};

fn is_subvolume(path: &std::path::Path) -> bool {
    rustix::fs::stat(path).unwrap().st_ino == 256
}

#[test]
fn a_worktree_of_a_worktree_is_a_snapshot_without_what_is_not_to_be_in_it() {
    let Some(repo) = Repo::on(FileSystem::Btrfs) else { return };
    repo.calve(["add", "first"]).succeeds().says(&["calve worktree convert", "makes the next one a snapshot"]);
    let first = repo.spot.join("proj.first");
    assert!(is_subvolume(&first));
    write(&first.join("untracked/file"), "u\n");
    write(&first.join("src/main.ts"), "changed\n");
    write(&first.join("target/server.pid"), "1\n");
    write(&first.join(".calve.toml"), "[worktree]\nexclude = [\"*.log\"]\n");
    write(&first.join("target/x.log"), "log\n");
    git(&first, ["worktree", "add", "-q", ".worktrees/inner"]);
    let receipt = repo.calve(["add", "--json", "--from", "first", "--base", "main", "second"]).succeeds().json();
    assert_eq!(receipt["clone"]["strategy"], "snapshot");
    let path = repo.spot.join("proj.second");
    assert!(is_subvolume(&path));
    is_clean(&path);
    is_as_git_makes_it(&repo, &path);
    for gone in ["untracked", "target/server.pid", "target/x.log", ".worktrees/inner", ".calve.toml"] {
        assert!(!path.join(gone).exists(), "{gone} is there");
    }
    assert_same(repo.join("node_modules"), path.join("node_modules"));
    let dirty = repo.calve(["add", "--dirty", "third"]).within(&first).succeeds();
    let dirty = std::path::Path::new(dirty.stdout.trim());
    assert_eq!(git(dirty, ["status", "--porcelain"]), " M src/main.ts\n?? .calve.toml\n?? untracked/\n");
    nothing_left(&repo.spot);
    repo.calve(["remove", "second"]).succeeds();
    eventually_nothing_left(&repo.spot);
}

#[test]
fn the_main_worktree_becomes_a_subvolume() {
    let Some(repo) = Repo::on(FileSystem::Btrfs) else { return };
    let before = git(&repo.path, ["rev-parse", "HEAD"]);
    repo.write("untracked", "u\n");
    // It ends when its input does: with this test at the latest.
    let mut inside = Command::new("cat").current_dir(repo.join("src")).stdin(Stdio::piped()).spawn().unwrap();
    repo.calve(["convert", repo.path.to_str().unwrap()]).within(&repo.spot).fails(1).says(&["cat"]).hints();
    drop(inside.stdin.take());
    inside.wait().unwrap();
    assert!(!is_subvolume(&repo.path));
    repo.calve(["convert", "proj"]).within(&repo.spot).succeeds();
    assert!(is_subvolume(&repo.path));
    eventually_nothing_left(&repo.spot);
    assert_eq!(opened_by_status(&repo.path), Vec::<String>::new());
    assert_eq!(git(&repo.path, ["status", "--porcelain"]), "?? untracked\n");
    assert_eq!(git(&repo.path, ["rev-parse", "HEAD"]), before);
    repo.calve(["convert", "proj"]).within(&repo.spot).succeeds().says(&["already"]);
    let receipt = repo.calve(["add", "--json", "x"]).succeeds().json();
    assert_eq!(receipt["clone"]["strategy"], "snapshot");
    let path = repo.spot.join("proj.x");
    is_clean(&path);
    assert!(path.join(".git").is_file() && !path.join("untracked").exists());
    is_as_git_makes_it(&repo, &path);
}

#[test]
fn elsewhere_a_conversion_is_refused() {
    let Some(repo) = Repo::on(FileSystem::Xfs) else { return };
    repo.calve(["convert", "proj"]).within(&repo.spot).fails(1).says(&["only btrfs has subvolumes"]).hints();
    nothing_left(&repo.spot);
    is_clean(&repo.path);
}
