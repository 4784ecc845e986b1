//! Death and interruption at any moment: the destination is absent (or as it was) or complete, and the next run sweeps.

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use calve_testkit::{
    FileSystem, SplitMix64, Tree, assert_same, few_rounds, fingerprint, node_modules_like, remove_deep, rounds, wide,
};
use rustix::process::Signal;

use crate::process::send;
use crate::program::{Calve, RunResult, RunningProgram, cp, rm};
use crate::spot::{Spot, eventually_nothing_left, leftovers, names, nothing_left};

/// Kills runs at random moments. Where these lie follows from how earlier runs ended, so that on a machine of any speed
/// about every second run is killed before it is done.
pub(crate) struct Killer {
    random: SplitMix64,
    span: Duration,
    killed: usize,
}

impl Killer {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: SplitMix64::new(seed), span: Duration::from_millis(100), killed: 0 }
    }

    pub(crate) fn killed(&self) -> usize {
        self.killed
    }

    pub(crate) fn let_run(&mut self, command: Calve) -> RunResult {
        let running = command.start();
        sleep(Duration::from_nanos(self.random.below(self.span.as_nanos() as u64)));
        send(running.id(), Signal::KILL);
        let ran = running.wait();
        assert!(ran.was_killed() || ran.status.success(), "{}", ran.stderr);
        if ran.was_killed() {
            self.killed += 1;
            self.span = self.span * 5 / 4;
        } else {
            self.span = self.span * 4 / 5;
        }
        ran
    }
}

#[test]
fn a_clone_killed_at_any_moment_is_absent_or_complete() {
    for (file_system, seed, usual) in
        [(FileSystem::Xfs, 1, 100), (FileSystem::Btrfs, 2, 50), (FileSystem::Tmpfs, 3, 50)]
    {
        let Some(spot) = Spot::on(file_system) else { return };
        let src = spot.join("src");
        node_modules_like(&src, 1600);
        let before = fingerprint(&src);
        let mut killer = Killer::new(seed);
        let (rounds, mut complete) = (rounds(usual), 0);
        for round in 0..rounds {
            let dst = spot.join("dst");
            let ran = killer.let_run(cp().args(["-q"]).arg(&src).arg(&dst));
            assert!(dst.exists() || ran.was_killed(), "seed {seed}, round {round}: there is no clone");
            if dst.exists() {
                complete += 1;
                assert_same(&src, &dst);
                remove_deep(&dst);
            }
            // What the killed runs before had left is gone, or being worked on: it does not pile up.
            let left = leftovers(&spot);
            assert!(left.len() <= 4, "seed {seed}, round {round}: {left:?}");
        }
        let killed = killer.killed;
        let is_enough = killed > rounds / 4 && complete > rounds / 10;
        assert!(few_rounds() || is_enough, "{killed} killed, {complete} complete of {rounds}");
        before.assert_unchanged(&src);
        cp().arg(&src).arg(spot.join("last")).succeeds();
        assert_same(&src, spot.join("last"));
        nothing_left(&spot);
    }
}

#[test]
fn a_replacement_killed_at_any_moment_leaves_the_old_or_the_new() {
    let rounds = rounds(100);
    let Some(spot) = Spot::on(FileSystem::Xfs) else { return };
    let sources = [spot.join("a"), spot.join("b")];
    node_modules_like(&sources[0], 900);
    node_modules_like(&sources[1], 1100);
    let before = sources.each_ref().map(fingerprint);
    let dst = spot.join("place/dst");
    fs_err::create_dir(spot.join("place")).unwrap();
    let replace = |round: usize| cp().args(["-q", "--replace", "-T"]).arg(&sources[round % 2]).arg(&dst);
    replace(1).succeeds();
    let mut killer = Killer::new(4);
    for round in 0..rounds {
        let ran = killer.let_run(replace(round));
        // `b` has more packages than `a`.
        let is_b = dst.join("package-36").exists();
        assert!(ran.was_killed() || is_b == (round % 2 == 1), "round {round}: nothing was replaced");
        assert_same(&sources[usize::from(is_b)], &dst);
    }
    assert!(few_rounds() || killer.killed > rounds / 4, "{}", killer.killed);
    for (source, before) in sources.iter().zip(&before) {
        before.assert_unchanged(source);
    }
    replace(1).succeeds();
    assert_same(&sources[1], &dst);
    eventually_nothing_left(spot.join("place"));
}

#[test]
fn a_snapshot_killed_at_any_moment_is_absent_or_complete() {
    let Some(spot) = Spot::on(FileSystem::Btrfs) else { return };
    spot.subvolume("src").file("a", b"1").dir("d");
    spot.subvolume("src/d/n").file("b", b"2");
    let before = fingerprint(spot.join("src"));
    let command = |dst: &str| cp().args(["-q", "--strategy", "snapshot"]).arg(spot.join("src")).arg(spot.join(dst));
    let mut killer = Killer::new(5);
    for _ in 0..rounds(60) {
        killer.let_run(command("dst"));
        if spot.join("dst").exists() {
            assert_same(spot.join("src"), spot.join("dst"));
            rm().args(["-q", "--wait"]).arg(spot.join("dst")).succeeds();
        }
    }
    before.assert_unchanged(spot.join("src"));
    command("last").succeeds();
    assert_same(spot.join("src"), spot.join("last"));
    assert!(few_rounds() || killer.killed > 15, "{}", killer.killed);
    eventually_nothing_left(&spot);
}

/// The staged tree in `dir`, once there is one.
fn staged(dir: &Path) -> Option<PathBuf> {
    let name = leftovers(dir).into_iter().find(|name| name.starts_with(".calve-staging-") && !name.ends_with(".lock"));
    name.map(|name| dir.join(name))
}

/// Returns how many entries a flat tree has; 0 when it is gone.
fn count(dir: &Path) -> usize {
    std::iter::once(fs_err::read_dir(dir)).flatten().flatten().count()
}

/// Returns whether some of 10,000 entries and more are there, and most are yet to come: a signal has to be noticed before the last.
fn is_at_work_in(staged: &Path) -> bool {
    (101..4_000).contains(&count(staged))
}

/// Starts `command` and stops it in its tracks (SIGSTOP) when `moment` has come. Runs that are over before are undone by
/// `undo` and begun again.
fn stopped_when(command: impl Fn() -> Calve, mut moment: impl FnMut() -> bool, undo: impl Fn()) -> RunningProgram {
    for _ in 0..50 {
        let mut running = command().start();
        while !running.has_ended() {
            if moment() {
                send(running.id(), Signal::STOP);
                // A stop takes effect a moment later; the state in /proc tells when.
                while !running.has_ended() && !is_stopped(running.id()) {
                    sleep(Duration::from_micros(100));
                }
                if !running.has_ended() && moment() {
                    return running;
                }
                send(running.id(), Signal::CONT);
                break;
            }
        }
        running.wait().ended(0);
        undo();
    }
    panic!("it was always over before the moment came");
}

/// Sends signals to a program that was stopped, which then goes on to its end.
fn ended_by(running: RunningProgram, signals: &[Signal]) -> RunResult {
    signals.iter().chain([&Signal::CONT]).for_each(|signal| send(running.id(), *signal));
    running.wait()
}

fn is_stopped(id: u32) -> bool {
    let stat = fs_err::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('T'))
}

fn wide_spot(entries: u64) -> Option<Spot> {
    let spot = Spot::on(FileSystem::Tmpfs)?;
    wide(spot.join("src"), entries);
    Some(spot)
}

/// A run of `calve cp src dst` that is held while it works on its staged tree, begun by the shell after `before`.
fn held_while_staging(spot: &Spot, before: &str) -> RunningProgram {
    stopped_when(
        || cp().args(["src", "dst"]).within(spot).in_shell(before, ""),
        || staged(spot).is_some_and(|staged| is_at_work_in(&staged)) && !spot.join("dst").exists(),
        || remove_deep(spot.join("dst")),
    )
}

#[test]
fn an_interrupted_clone_leaves_nothing_and_says_only_that() {
    // Two of them wait at once where a terminal interrupts a program and the script that started it, which passes it on.
    let Some(spot) = wide_spot(10_000) else { return };
    let before = fingerprint(spot.join("src"));
    for signals in [&[Signal::INT][..], &[Signal::TERM], &[Signal::HUP], &[Signal::INT, Signal::TERM]] {
        let ran = ended_by(held_while_staging(&spot, ""), signals);
        ran.ended(130);
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", "error: interrupted\n"));
        spot.holds(&["src"]);
        before.assert_unchanged(spot.join("src"));
    }
    // Signals that were ignored from the start stop nothing.
    for (name, signal) in [("HUP", Signal::HUP), ("INT", Signal::INT)] {
        ended_by(held_while_staging(&spot, &format!("trap '' {name};")), &[signal]).ended(0);
        assert_same(spot.join("src"), spot.join("dst"));
        remove_deep(spot.join("dst"));
    }
}

#[test]
fn an_interrupted_replacement_leaves_the_old_one_and_begins_no_other() {
    let Some(spot) = wide_spot(10_000) else { return };
    spot.tree("dst").file("old", b"1");
    let running = stopped_when(
        || cp().args(["--replace", "-T", "src", "dst"]).within(&spot),
        || staged(&spot).is_some_and(|staged| is_at_work_in(&staged)) && spot.join("dst/old").exists(),
        || {
            remove_deep(spot.join("dst"));
            spot.tree("dst").file("old", b"1");
        },
    );
    ended_by(running, &[Signal::INT]).ended(130);
    assert_eq!(names(spot.join("dst")), ["old"]);
    eventually_nothing_left(&spot);
    // No other source is begun after an interruption.
    Tree::new(spot.join("other")).file("a", b"1");
    fs_err::create_dir(spot.join("into")).unwrap();
    let running = stopped_when(
        || cp().args(["src", "other", "into"]).within(&spot),
        || staged(&spot.join("into")).is_some_and(|staged| is_at_work_in(&staged)),
        || {
            remove_deep(spot.join("into"));
            fs_err::create_dir(spot.join("into")).unwrap();
        },
    );
    ended_by(running, &[Signal::INT]).ended(130);
    assert_eq!(names(spot.join("into")), [""; 0]);
}

#[test]
fn a_second_interruption_ends_the_clean_up_and_the_next_run_sweeps() {
    let Some(spot) = wide_spot(20_000) else { return };
    let mut caught = false;
    for _ in 0..20 {
        let mut running = held_while_staging(&spot, "");
        let staged = staged(&spot).unwrap();
        let most = count(&staged);
        send(running.id(), Signal::INT);
        send(running.id(), Signal::CONT);
        // The clean-up is under way when entries get fewer.
        while !running.has_ended() && count(&staged) >= most {}
        send(running.id(), Signal::INT);
        running.ends(130);
        assert!(!spot.join("dst").exists());
        // Removing its lock alone is not reported by the next run.
        if self::staged(&spot).is_some() {
            caught = true;
            break;
        }
    }
    assert!(caught, "the clean-up was always over before the second interruption");
    Tree::new(spot.join("small")).file("a", b"1");
    let ran = cp().args(["--json", "small", "dst"]).within(&spot).succeeds();
    nothing_left(&spot);
    assert_eq!(ran.json()["warnings"][0]["code"], "swept");
    ran.says(&["removed what an earlier, killed run had left"]);
}

#[test]
fn an_interrupted_removal_can_be_taken_up_again() {
    let Some(spot) = wide_spot(20_000) else { return };
    let trash =
        || leftovers(&spot).into_iter().find(|name| name.starts_with(".calve-trash-") && !name.ends_with(".lock"));
    let running = stopped_when(
        || rm().args(["--wait", "src"]).within(&spot),
        || trash().is_some_and(|trash| (4_000..19_000).contains(&count(&spot.join(trash)))),
        || {
            wide(spot.join("src"), 20_000);
        },
    );
    let ran = ended_by(running, &[Signal::INT]);
    ran.ended(130);
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.starts_with("error: interrupted\nhint: the rest has a hidden name"), "{}", ran.stderr);
    // It was out of sight at once; the rest waits in the trash.
    assert!(!spot.join("src").exists());
    assert!(trash().is_some());
    Tree::new(spot.join("another")).file("a", b"1");
    rm().arg("another").within(&spot).succeeds();
    eventually_nothing_left(&spot);
}
