//! Files of git's that another git has locked for a moment.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::repo::{Repo, git, is_clean};

/// A clone of another repository with the branches `one` to `four`, which none of its own follows yet.
fn cloned() -> Repo {
    let repo = Repo::anywhere();
    for branch in ["one", "two", "three", "four"] {
        repo.git(["branch", branch]);
    }
    let up = repo.spot.join("up");
    fs_err::rename(&repo.path, &up).unwrap();
    git(&repo.spot, ["clone", "-q", "up", "proj"]);
    repo
}

/// Runs `work` while a git writes to the configuration for as long as it takes to say so twice.
fn while_locked<T>(lock: &Path, held: Duration, work: impl FnOnce() -> T) -> T {
    fs_err::write(lock, "").unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(held);
            fs_err::remove_file(lock).unwrap();
        });
        work()
    })
}

const MOMENT: Duration = Duration::from_millis(400);

#[test]
fn a_branch_is_made_when_the_lock_is_free_again() {
    let repo = cloned();
    let lock: PathBuf = repo.join(".git/config.lock");
    let added = while_locked(&lock, MOMENT, || repo.add(["one"]));
    is_clean(&added);
    assert_eq!(repo.git(["config", "branch.one.merge"]), "refs/heads/one\n");
    // Others come and go all the time.
    let added = thread::scope(|scope| {
        let busy = scope.spawn(|| {
            let until = Instant::now() + Duration::from_secs(3);
            while Instant::now() < until {
                if fs_err::OpenOptions::new().write(true).create_new(true).open(&lock).is_ok() {
                    thread::sleep(Duration::from_millis(3));
                    fs_err::remove_file(&lock).unwrap();
                    thread::sleep(Duration::from_millis(3));
                }
            }
        });
        let added = ["two", "three"].map(|branch| repo.add([branch]));
        busy.join().unwrap();
        added
    });
    added.iter().for_each(|path| is_clean(path));
    assert_eq!(repo.git(["config", "branch.three.merge"]), "refs/heads/three\n");
}

#[test]
fn a_lock_that_stays_is_told_and_nothing_is_made() {
    let repo = cloned();
    // A branch goes with its settings when the lock is free again.
    repo.add(["one"]);
    while_locked(&repo.join(".git/config.lock"), MOMENT, || repo.calve(["remove", "-D", "one"]).succeeds());
    assert_eq!(repo.git(["for-each-ref", "refs/heads/one"]), "");
    assert!(!fs_err::read_to_string(repo.join(".git/config")).unwrap().contains("branch \"one\""));
    let before = repo.git(["for-each-ref"]);
    let started = Instant::now();
    let long = Duration::from_secs(8);
    while_locked(&repo.join(".git/config.lock"), long, || {
        repo.calve(["add", "four"]).fails(1).says(&["could not lock config file"]).hints();
        assert!(started.elapsed() < long);
    });
    assert!(started.elapsed() > Duration::from_secs(1));
    assert_eq!(repo.git(["for-each-ref"]), before);
    assert_eq!(repo.worktrees().len(), 1);
    is_clean(&repo.add(["four"]));
}
