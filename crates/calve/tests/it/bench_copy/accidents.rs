//! The disk fills up, a program does not answer, a directory cannot be opened: in the middle of it.

use calve_testkit::{FileSystem, Injection, Volume, fingerprint, run_injected};
use rustix::process::Signal;
use serde_json::json;

use super::{Programs, bench_of, of_command};
use crate::process::send;
use crate::spot::{Spot, eventually, leftovers};

const MIB: usize = 1 << 20;

/// Writes to the file named until nothing more fits.
fn fill(path: &str) -> String {
    format!("dd if=/dev/zero of=\"{path}\" bs=64k 2>/dev/null")
}

/// Room for the bench's own needs, several times over.
fn small_volume() -> Option<Spot> {
    Volume::with_size(FileSystem::Tmpfs, 150 << 20).map(Spot::at)
}

#[test]
fn a_program_that_fills_the_disk_fails_and_the_others_have_room_again() {
    let Some(spot) = small_volume() else { return };
    spot.tree("tree").file("a", vec![1; 4 * MIB]);
    let before = fingerprint(spot.join("tree"));
    let programs = Programs::none().real("cp").script("cpz", &format!("{} || exit 7", fill("$2")));
    let command = bench_of("tree", ".").args(["--runs", "2", "--json"]).within(&spot).env("PATH", programs.path());
    let ran = command.succeeds();
    let report = ran.json();
    assert_eq!(of_command(&report["failed"], "cpz SRC DST")["exit_code"], 7);
    // What it wrote was deleted for the commands after it, and all of these were measured in both rounds.
    assert!(!report["deletions"].as_array().unwrap().is_empty(), "{report:#}");
    for command in ["cp -a SRC DST", "calve cp SRC DST", "calve cp --strategy hardlink SRC DST"] {
        assert_eq!(of_command(&report["results"], command)["exit_codes"], json!([0, 0]));
    }
    spot.holds(&["tree"]);
    before.assert_unchanged(spot.join("tree"));
}

#[test]
fn a_disk_that_others_fill_meanwhile_ends_the_bench_and_everything_it_made_is_removed() {
    let Some(spot) = small_volume() else { return };
    spot.tree("tree").file("a", b"1");
    // Outside of the bench's own directory: nothing that it may delete.
    let programs = Programs::none().real("cp").script("cpz", &fill("$(dirname \"$1\")/filler"));
    for runs in ["1", "3"] {
        let command = bench_of("tree", ".").args(["--runs", runs]).within(&spot);
        let ran = command.env("PATH", programs.path()).fails(1);
        ran.says(&["a run needs", "are free", "free some there, or name another place with `--into`"]);
        spot.holds(&["filler", "tree"]);
        fs_err::remove_file(spot.join("filler")).unwrap();
    }
}

#[test]
fn a_program_that_does_not_tell_its_version_is_not_waited_for_and_may_be_interrupted() {
    let Some(spot) = Spot::on(FileSystem::Tmpfs) else { return };
    spot.tree("tree").file("a", b"1");
    // A child that outlives it holds what it would print to; another one never ends.
    let silent = "#!/bin/sh\nPATH=/usr/bin:/bin\n\
                  [ \"$1\" = --version ] && { setsid sh -c 'echo $$ > \"$TOLD\"; exec sleep 1000' &\n\
                  while [ ! -s \"$TOLD\" ]; do sleep 0.01; done; exit; }\n\
                  mkdir \"$2\"\n";
    let endless = "#!/bin/sh\nPATH=/usr/bin:/bin\n[ \"$1\" = --version ] && exec sleep 1000\nexit 1\n";
    let programs = Programs::none().plain("cpz", silent).plain("xcp", endless);
    let told = programs.path().join("pid");
    let command = bench_of("tree", ".").args(["--runs", "1", "--json"]).within(&spot).env("PATH", programs.path());
    let report = command.env("TOLD", &told).succeeds().json();
    let child = fs_err::read_to_string(told).unwrap().trim().parse().unwrap();
    assert!(std::path::Path::new(&format!("/proc/{child}")).exists(), "it was waited for");
    send(child, Signal::KILL);
    assert_eq!((&report["versions"]["cpz"], &report["versions"]["xcp"]), (&json!("unknown"), &json!("unknown")));
    spot.holds(&["tree"]);
    // An interruption meanwhile removes everything.
    // It is being asked for its version, which comes before the first round.
    let asked = "#!/bin/sh\nPATH=/usr/bin:/bin\n[ \"$1\" = --version ] && { echo $$ >\"$ASKED\"; exec sleep 1000; }\n";
    let programs = Programs::none().plain("cpz", asked);
    let pid_file = programs.path().join("pid");
    let command = bench_of("tree", ".").within(&spot).env("PATH", programs.path()).env("ASKED", &pid_file);
    let running = command.start();
    let mut pid = String::new();
    eventually("the version is asked for", || {
        pid = fs_err::read_to_string(&pid_file).unwrap_or_default();
        pid.ends_with('\n')
    });
    assert_eq!(leftovers(&spot).len(), 1);
    send(running.id(), Signal::TERM);
    let ran = running.ends(130);
    assert!(!ran.stderr.contains("round 1"), "{}", ran.stderr);
    spot.holds(&["tree"]);
    eventually("it has ended", || !std::path::Path::new("/proc").join(pid.trim()).exists());
}

#[test]
fn an_interruption_while_the_tree_is_copied_to_the_place_removes_everything() {
    let (Some(elsewhere), Some(spot)) = (Spot::on(FileSystem::Tmpfs), Spot::on(FileSystem::Ext4)) else { return };
    // As many files as keep it busy until the signal comes.
    calve_testkit::wide(elsewhere.join("tree"), 20_000);
    let running = bench_of(elsewhere.join("tree"), &spot).within(&spot).start();
    eventually("it copies", || {
        leftovers(&spot)
            .iter()
            .any(|place| !crate::spot::names(spot.join(place)).iter().all(|name| name == ".gitignore"))
    });
    send(running.id(), Signal::INT);
    let ran = running.ends(130);
    assert!(!ran.stderr.contains("round 1"), "{}", ran.stderr);
    spot.holds(&[]);
}

#[test]
fn a_place_that_cannot_be_opened_after_all_is_not_left_behind() {
    let Some(spot) = Spot::on(FileSystem::Tmpfs) else { return };
    spot.tree("tree").file("a", b"1");
    let command = || bench_of("tree", ".").args(["--runs", "1", "--only", "calve cp"]).within(&spot).command();
    // Which of its calls that is, in a run without a fault; threads are counted each for itself.
    let never = Injection { syscalls: "openat", fault: "error=EMFILE", nth: 65_000 };
    let Some(undisturbed) = run_injected(&command(), never) else { return };
    let first_thread = undisturbed.trace.split(' ').next().unwrap().to_owned();
    let own = undisturbed.trace.lines().filter(|line| line.starts_with(&first_thread));
    let nth = own.take_while(|line| !line.contains("/.calve-bench-")).count() + 1;
    let fault = Injection { nth: u32::try_from(nth).unwrap(), ..never };
    let Some(outcome) = run_injected(&command(), fault) else { return };
    assert!(outcome.injected && outcome.status.code() == Some(1), "{}", outcome.stderr);
    assert!(outcome.stderr.contains(".calve-bench-") && outcome.stderr.contains("hint: "), "{}", outcome.stderr);
    spot.holds(&["tree"]);
}
