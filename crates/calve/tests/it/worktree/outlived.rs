//! Entries of killed runs, and programs that go on when the run that started them was killed.

use std::path::{Path, PathBuf};

use calve_testkit::write_program;
use rustix::process::Signal;

use super::repo::{Repo, git, is_clean, write};
use crate::process::send;
use crate::program::{Calve, RunningProgram};
use crate::spot::{eventually, names, nothing_left};

fn entries(repo: &Repo) -> Vec<String> {
    let all = repo.join(".git/worktrees");
    if all.exists() { names(all) } else { Vec::new() }
}

#[test]
fn broken_entries_and_those_on_their_way_out_are_taken_away() {
    let repo = Repo::anywhere();
    let (kept, path) = (repo.add(["kept"]), repo.add(["x"]));
    // Its remover was killed; the next one of that name takes another number.
    write(&repo.join(".git/worktrees/.calve-0-proj.x/index"), "old\n");
    // Something was put into an entry that was being removed.
    write(&repo.join(".git/worktrees/broken/index"), "half\n");
    // Locked by git, and therefore left alone.
    write(&repo.join(".git/worktrees/stick/locked"), "");
    // A run of Calve's was killed before its journal was there.
    write(&repo.join(".git/worktrees/young/locked"), "calve: being made\n");
    assert_eq!(repo.worktrees(), [repo.path.clone(), kept.clone(), path.clone()]);
    repo.calve(["list"]).succeeds();
    repo.calve(["remove", "x"]).succeeds();
    assert!(!path.exists());
    assert_eq!(entries(&repo), [".calve-0-proj.x", "broken", "proj.kept", "stick"]);
    repo.calve(["prune"]).succeeds();
    assert_eq!(entries(&repo), ["proj.kept", "stick"]);
    assert_eq!(repo.worktrees(), [repo.path.clone(), kept]);
    write(&repo.join(".git/worktrees/young/locked"), "calve: being made\n");
    is_clean(&repo.add(["x"]));
    assert_eq!(entries(&repo), ["proj.kept", "proj.x", "stick"]);
}

#[test]
fn a_plan_passes_over_what_the_run_would_remove() {
    let repo = Repo::anywhere();
    // A run was killed before the worktree had its name.
    let left = repo.join(".git/worktrees/left");
    write(&left.join("locked"), "calve: being made\n");
    write(&left.join("commondir"), "../..\n");
    write(&left.join("HEAD"), "ref: refs/heads/x\n");
    write(&left.join("calve"), &format!("{}\n", repo.spot.join("proj.left").display()));
    repo.calve(["add", "-n", "x"]).succeeds();
    assert_eq!(entries(&repo), ["left"]);
    is_clean(&repo.add(["x"]));
    assert_eq!(entries(&repo), ["proj.x"]);
}

/// A `git` that waits before it does what has `word` in it.
struct SlowGit {
    directory: PathBuf,
}

impl SlowGit {
    fn new(repo: &Repo, word: &str) -> SlowGit {
        let directory = repo.spot.join("slow");
        let path = std::env::var_os("PATH").unwrap();
        let git = std::env::split_paths(&path).map(|folder| folder.join("git")).find(|git| git.is_file()).unwrap();
        let here = directory.display();
        let script = format!(
            "#!/bin/sh\ncase \" $* \" in *' {word} '*) ;; *) exec {git} \"$@\" ;; esac\n: > {here}/waits\ntries=0\n\
             while [ ! -e {here}/go ] && [ $tries -lt 6000 ]; do sleep 0.01; tries=$((tries + 1)); done\n\
             {git} \"$@\"\ncode=$?\n: > {here}/done\nexit $code\n",
            git = git.display()
        );
        fs_err::create_dir_all(&directory).unwrap();
        write_program(directory.join("git"), &script);
        SlowGit { directory }
    }

    fn used_by(&self, calve: Calve) -> Calve {
        let path = std::env::var("PATH").unwrap();
        calve.env("PATH", format!("{}:{path}", self.directory.display()))
    }

    /// `calve worktree add x`, which has come to where git waits.
    fn starts(&self, repo: &Repo, arguments: &[&str]) -> RunningProgram {
        let running = self.used_by(repo.calve(["add", "-q", "x"]).args(arguments)).start();
        eventually("git waits", || self.directory.join("waits").exists());
        running
    }

    /// Kills it there.
    fn kill(&self, repo: &Repo, arguments: &[&str]) {
        let running = self.starts(repo, arguments);
        send(running.id(), Signal::KILL);
        assert!(running.wait().was_killed());
        assert!(!repo.spot.join("proj.x").exists());
        assert_eq!(repo.worktrees().len(), 1);
    }

    fn go(&self) {
        write(&self.directory.join("go"), "");
    }

    fn is_done(&self) -> bool {
        self.directory.join("done").exists()
    }
}

#[track_caller]
fn nothing_of_it_is_left(repo: &Repo) {
    repo.calve(["prune"]).succeeds();
    assert_eq!(entries(repo), [""; 0]);
    assert_eq!(repo.git(["branch", "--list", "x"]), "");
    nothing_left(&repo.spot);
    let path: &Path = &repo.add(["x"]);
    is_clean(path);
}

#[test]
fn a_git_that_outlives_its_calve_brings_nothing_back() {
    for word in ["read-tree", "checkout-index"] {
        let repo = Repo::anywhere();
        // So that git has a file to write.
        repo.write("src/main.ts", "two\n");
        repo.commit("two");
        let git = SlowGit::new(&repo, word);
        git.kill(&repo, &["--base", "HEAD~1"]);
        // Swept while git is at it.
        repo.calve(["prune"]).succeeds();
        assert_eq!(entries(&repo), [""; 0], "{word}");
        git.go();
        eventually("git has ended", || git.is_done());
        assert_eq!(entries(&repo), [""; 0], "{word}");
        nothing_of_it_is_left(&repo);
    }
}

#[test]
fn a_branch_that_is_still_being_made_is_waited_for() {
    let repo = Repo::anywhere();
    let git = SlowGit::new(&repo, "branch");
    git.kill(&repo, &[]);
    let prune = repo.calve(["prune"]).start();
    git.go();
    prune.wait().ended(0);
    assert!(git.is_done(), "the branch was looked for before it was made");
    nothing_of_it_is_left(&repo);
}

#[test]
fn a_branch_that_moves_meanwhile_is_not_checked_out_half() {
    let repo = Repo::anywhere();
    repo.git(["branch", "x"]);
    let slow = SlowGit::new(&repo, "read-tree");
    let running = slow.starts(&repo, &[]);
    repo.git(["update-ref", "refs/heads/x", repo.git(["commit-tree", "-m", "two", "-p", "x", "x^{tree}"]).trim()]);
    slow.go();
    let ran = running.ends(1);
    ran.says(&["moved"]).hints();
    assert_eq!(entries(&repo), [""; 0]);
    assert!(!repo.spot.join("proj.x").exists());
    nothing_left(&repo.spot);
    assert_eq!(repo.git(["rev-list", "--count", "x"]), "2\n", "the branch is not this run's");
}

#[test]
fn a_branch_of_a_remote_that_moves_meanwhile_is_followed_from_where_it_was() {
    let repo = Repo::anywhere();
    let other = repo.spot.join("other");
    repo.git(["clone", "-q", ".", other.to_str().unwrap()]);
    git(&other, ["branch", "x"]);
    repo.git(["remote", "add", "origin", other.to_str().unwrap()]);
    repo.git(["fetch", "-q", "origin"]);
    let slow = SlowGit::new(&repo, "read-tree");
    let running = slow.starts(&repo, &[]);
    repo.write("src/main.ts", "two\n");
    repo.commit("two");
    repo.git(["update-ref", "refs/remotes/origin/x", "main"]);
    slow.go();
    running.wait().ended(0);
    let path = repo.spot.join("proj.x");
    is_clean(&path);
    assert_eq!(git(&path, ["rev-list", "--count", "HEAD", "--", "."]), "1\n");
    assert_eq!(git(&path, ["rev-parse", "--abbrev-ref", "@{upstream}"]).trim(), "origin/x");
}

/// Returns whether a process waits for a lock that flock(2) gives (proc_locks(5)).
fn waits_for_a_lock(id: u32) -> bool {
    let locks = fs_err::read_to_string("/proc/locks").unwrap();
    let id = id.to_string();
    locks.lines().any(|line| line.contains("-> FLOCK") && line.split_whitespace().any(|word| word == id))
}

#[test]
fn a_branch_that_is_being_deleted_is_waited_for() {
    let repo = Repo::anywhere();
    repo.add(["y"]);
    // git does not wait for the lock of its configuration: both at once, and one of them would fail.
    let slow = SlowGit::new(&repo, "update-ref");
    let removing = slow.used_by(repo.calve(["remove", "-q", "-D", "y"])).start();
    eventually("git waits", || slow.directory.join("waits").exists());
    let adding = repo.calve(["add", "-q", "x"]).start();
    eventually("it waits for its turn", || waits_for_a_lock(adding.id()));
    slow.go();
    removing.wait().ended(0);
    adding.wait().ended(0);
    assert_eq!(repo.git(["branch", "--list", "y"]), "");
    is_clean(&repo.spot.join("proj.x"));
}

#[test]
fn a_branch_that_another_process_makes_while_its_name_is_looked_up_is_a_branch() {
    for is_checked_out in [false, true] {
        let repo = Repo::anywhere();
        let slow = SlowGit::new(&repo, "x^{commit}");
        let running = slow.starts(&repo, &[]);
        let other = repo.spot.join("other");
        match is_checked_out {
            true => repo.git(["worktree", "add", "-q", "-b", "x", other.to_str().unwrap()]),
            false => repo.git(["branch", "x"]),
        };
        slow.go();
        let ran = running.wait();
        if is_checked_out {
            ran.ended(1);
            ran.says(&["the branch `x` is checked out in"]).hints();
            assert_eq!(repo.worktrees(), [repo.path.clone(), other]);
        } else {
            ran.ended(0);
            assert_eq!(git(&repo.spot.join("proj.x"), ["symbolic-ref", "HEAD"]).trim(), "refs/heads/x");
        }
    }
}
