//! Many at a time, and killed at any moment.

use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use calve_testkit::{FileSystem, SplitMix64, each_nth, few_rounds, node_modules_like, remove_deep, rounds};
use rustix::process::Signal;

use super::repo::{Repo, is_clean, write};
use super::whole_spares::spares;
use crate::process::send;
use crate::program::RunningProgram;
use crate::spot::{eventually, eventually_nothing_left, leftovers, nothing_left, paths_below};

fn sixteen_at_a_time(file_system: FileSystem) {
    let Some(repo) = Repo::on(file_system) else { return };
    let started: Vec<RunningProgram> =
        (0..16).map(|number| repo.calve(["add", "-q", &format!("b{number}")]).start()).collect();
    for (number, running) in started.into_iter().enumerate() {
        running.ends(0);
        is_clean(&repo.spot.join(format!("proj.b{number}")));
    }
    assert_eq!(repo.worktrees().len(), 17);
    repo.git(["fsck", "--strict"]);
    repo.git(["worktree", "prune"]);
    assert_eq!(repo.worktrees().len(), 17);
    nothing_left(&repo.spot);
}

#[test]
fn of_two_removals_at_once_one_says_that_the_other_was_faster() {
    let repo = Repo::anywhere();
    for _ in 0..rounds(20) {
        repo.add(["two"]);
        let removals = [0, 1].map(|_| repo.calve(["remove", "-D", "two"]).start());
        let mut ended = removals.map(|removal| removal.wait());
        ended.sort_by_key(|ended| ended.status.code());
        let [first, second] = ended;
        first.ended(0);
        second.ended(1);
        first.says(&["removed `", "and the branch `two`"]);
        let told =
            ["something else has removed it meanwhile", "there is no worktree of the branch or at the path `two`"];
        assert!(told.iter().any(|told| second.stderr.contains(told)), "{}", second.stderr);
        assert_eq!(repo.git(["branch", "--list", "two"]), "");
    }
    // Of two branches for one place, one has to name another.
    for _ in 0..rounds(20) {
        let running = ["r/b", "r-b"].map(|branch| repo.calve(["add", "-q", branch]).start());
        let mut ended = running.map(RunningProgram::wait);
        ended.sort_by_key(|ended| ended.status.code());
        let [first, second] = ended;
        first.ended(0);
        second.ended(1);
        second.says(&["hint: name another place with `--path`, or remove what is there"]);
        repo.calve(["remove", "-q", "-D"]).arg(repo.spot.join("proj.r-b")).succeeds();
        assert_eq!(repo.git(["branch", "--format=%(refname:short)"]), "main\n");
    }
    eventually_nothing_left(&repo.spot);
}

#[test]
fn a_branch_stays_for_the_worktree_that_is_being_made() {
    let repo = Repo::anywhere();
    repo.add(["two"]);
    // As another run has it that git does not list yet, and that works on.
    let entry = repo.join(".git/worktrees/other");
    for (name, text) in [("HEAD", "ref: refs/heads/two\n"), ("locked", "calve: being made\n"), ("calve", "/other\n")] {
        write(&entry.join(name), text);
    }
    let held = fs_err::File::open(entry.join("calve")).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    repo.calve(["remove", "-D", "two"]).succeeds();
    assert_eq!(repo.git(["branch", "--list", "two"]), "  two\n");
}

#[test]
fn sixteen_at_a_time_all_succeed() {
    [FileSystem::Xfs, FileSystem::Btrfs].into_iter().for_each(sixteen_at_a_time);
}

#[test]
fn of_two_for_one_branch_exactly_one_wins() {
    let Some(repo) = Repo::on(FileSystem::Xfs) else { return };
    for round in 0..6 {
        let branch = format!("b{round}");
        if round % 2 == 0 {
            repo.git(["branch", &branch]);
        }
        let place = |number: u32| repo.spot.join(format!("{branch}-{number}"));
        let started: Vec<RunningProgram> =
            (0..3).map(|number| repo.calve(["add", "-q", &branch, "--path"]).arg(place(number)).start()).collect();
        let codes: Vec<_> = started.into_iter().map(|running| running.wait()).collect();
        let won = codes.iter().filter(|ran| ran.status.success()).count();
        assert_eq!(won, 1, "{codes:?}");
        let there: Vec<_> = (0..3).map(place).filter(|place| place.exists()).collect();
        assert_eq!(there.len(), 1);
        is_clean(&there[0]);
    }
    assert_eq!(repo.worktrees().len(), 7);
    assert_eq!(fs_err::read_dir(repo.join(".git/worktrees")).unwrap().count(), 6);
    nothing_left(&repo.spot);
}

/// Killed at random moments: no ghost in git's list, nothing under the new name, and the next command cleans up. `before` is done before
/// each round.
fn killed_in(repo: &Repo, seed: u64, usual: usize, mut before: impl FnMut(&mut SplitMix64)) {
    fs_err::remove_dir_all(repo.join("node_modules")).unwrap();
    node_modules_like(repo.join("node_modules"), 1500);
    let path = repo.spot.join("proj.x");
    let mut random = SplitMix64::new(seed);
    let started = Instant::now();
    repo.add(["-q", "x"]);
    repo.calve(["remove", "-q", "-D", "x"]).succeeds();
    // Whatever the machine is like: about as many are killed as are not.
    let mut span = started.elapsed() * 3 / 2;
    let rounds = rounds(usual);
    let (mut killed, mut complete, mut round) = (0, 0, 0);
    let is_enough = |killed: usize, complete: usize| killed > rounds / 4 && complete > rounds / 10;
    while round < rounds || !is_enough(killed, complete) && round < 4 * rounds {
        round += 1;
        before(&mut random);
        let running = repo.calve(["add", "-q", "x"]).env("CALVE_HOME", home(repo)).start();
        sleep(Duration::from_nanos(random.below(span.as_nanos() as u64)));
        send(running.id(), Signal::KILL);
        let ran = running.wait();
        let was_killed = ran.was_killed();
        assert!(was_killed || ran.status.success(), "seed {seed}, round {round}: {}", ran.stderr);
        killed += usize::from(was_killed);
        span = if was_killed { span * 5 / 4 } else { span * 4 / 5 };
        let listed = repo.worktrees().len();
        if path.exists() {
            // Complete, also if it was killed before git lists it; the next command of Calve's has git list it.
            is_clean(&path);
            repo.calve(["list"]).succeeds();
            assert_eq!(repo.worktrees().len(), 2, "seed {seed}, round {round}");
            complete += 1;
            repo.calve(["remove", "-q", "-f", "-D", "x"]).succeeds();
        } else {
            assert_eq!(listed, 1, "seed {seed}, round {round}: a ghost");
        }
        // The next runs take leftovers away, and removed files go in the background.
        eventually("not more and more is left", || leftovers(&repo.spot).len() <= 6);
    }
    assert!(few_rounds() || is_enough(killed, complete), "{killed} killed, {complete} complete of {round}");
    // A run that is killed while it cleans up may leave a tree that no entry names, and a git that outlives the run that started it may write
    // once more into trees that are being removed.
    let give_up = Instant::now() + Duration::from_secs(60);
    loop {
        let pruned = repo.calve(["prune"]).succeeds();
        let left = in_entries(repo);
        if left.is_empty() {
            break;
        }
        assert!(Instant::now() < give_up, "{left:?} is left; {}{}", pruned.stdout, pruned.stderr);
    }
    eventually_nothing_left(&repo.spot);
    assert_eq!(repo.worktrees().len(), 1);
    assert_eq!(repo.git(["branch", "--list", "x"]), "");
    repo.add(["x"]);
    is_clean(&path);
    remove_deep(&path);
}

/// Returns everything in the entries of worktrees.
fn in_entries(repo: &Repo) -> Vec<String> {
    let all = repo.join(".git/worktrees");
    if all.exists() { paths_below(&all) } else { Vec::new() }
}

/// Returns where the spares of a repository's worktree are, if there are any.
fn home(repo: &Repo) -> PathBuf {
    repo.spot.join("home")
}

#[test]
fn killed_at_any_moment_with_spares_there_is_no_ghost_on_ext4() {
    let Some(repo) = Repo::on(FileSystem::Ext4) else { return };
    spares(&repo, &["add", "-q", "--worktree"]).succeeds();
    // Those that follow are built here, and the first try is killed.
    spares(&repo, &["pause", "-q", "."]).succeeds();
    let mut number = 0;
    killed_in(&repo, 3, 25, |random| {
        number += 1;
        repo.write(&format!("node_modules/new-{number}"), "new\n");
        let running = spares(&repo, &["refill", "-q", "."]).start();
        sleep(Duration::from_micros(random.below(60_000)));
        send(running.id(), Signal::KILL);
        running.wait();
        spares(&repo, &["refill", "-q", "."]).succeeds();
        spares(&repo, &["pause", "-q", "."]).succeeds();
    });
}

#[test]
fn killed_at_any_moment_there_is_no_ghost() {
    for (file_system, seed, usual) in [(FileSystem::Xfs, 1, 20), (FileSystem::Btrfs, 2, 15)] {
        let Some(repo) = Repo::on(file_system) else { return };
        killed_in(&repo, seed, usual, |_| {});
    }
}

/// It, or a git that it has started.
#[test]
fn killed_at_each_call_that_names_a_file_nothing_is_left() {
    let repo = Repo::anywhere();
    let path = repo.spot.join("proj.x");
    let prepare = || repo.calve(["add", "-q", "x"]).command();
    let calls = "openat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,unlink,unlinkat";
    each_nth(calls, "signal=KILL", 300, prepare, |nth, outcome| {
        if path.exists() {
            is_clean(&path);
            repo.calve(["list"]).succeeds();
            repo.calve(["remove", "-q", "-f", "-D", "x"]).succeeds();
        }
        repo.calve(["prune"]).succeeds();
        let entries = in_entries(&repo);
        assert!(entries.is_empty(), "{nth}: {entries:?} is left, {}", outcome.trace);
        assert_eq!(repo.git(["branch", "--list", "x"]), "", "{nth}: {}", outcome.trace);
    });
    eventually_nothing_left(&repo.spot);
}

/// As on a full disk, before and after the worktree has its name.
#[test]
fn a_rename_that_fails_leaves_a_complete_worktree_or_nothing() {
    let repo = Repo::anywhere();
    let path = repo.spot.join("proj.x");
    let prepare = || repo.calve(["add", "-q", "x"]).command();
    for calls in ["rename", "renameat2"] {
        each_nth(calls, "error=ENOSPC", 20, prepare, |nth, outcome| {
            if outcome.status.success() {
                is_clean(&path);
                repo.calve(["remove", "-q", "-f", "-D", "x"]).succeeds();
            }
            let left = (path.exists(), in_entries(&repo), repo.git(["branch", "--list", "x"]));
            assert_eq!(left, (false, Vec::new(), String::new()), "{calls} {nth}: {}", outcome.trace);
        });
        repo.calve(["remove", "-q", "-f", "-D", "x"]).succeeds();
    }
    eventually_nothing_left(&repo.spot);
}
