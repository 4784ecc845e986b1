//! Bad input, bad programs, bad moments.

use std::path::Path;

use calve_testkit::{FileSystem, Volume, fingerprint};
use rustix::process::Signal;
use serde_json::json;

use super::{Programs, bench, bench_of, commands, has_warning, of_command};
use crate::process::send;
use crate::spot::{Spot, eventually, leftovers, nothing_left};

#[test]
fn paths_that_make_no_sense_are_refused_before_anything_is_made() {
    let spot = Spot::anywhere();
    spot.tree("tree").file("file", b"1").dir("inside");
    spot.tree("").file("file", b"1");
    let refused = |tree: &str, into: &str, code: i32, words: &str| {
        let ran = bench_of(tree, into).args(["--runs", "1"]).within(&spot).fails(code);
        ran.says(&[words]).hints();
    };
    refused("missing", ".", 1, "`missing` does not exist");
    refused("tree/file", ".", 2, "`tree/file` is not a directory");
    refused("tree", "missing", 1, "`missing` does not exist");
    refused("tree", "file", 2, "is not a directory");
    refused("tree", "tree", 2, "`tree` is inside the tree `tree`");
    refused("tree", "tree/inside", 2, "is inside the tree");
    bench_of("tree", ".").args(["--runs", "0"]).within(&spot).fails(2).says(&["--runs"]);
    bench_of("tree", ".").args(["--runs", "-1"]).within(&spot).fails(2);
    bench().args(["--tree", "tree"]).within(&spot).fails(2).says(&["--into"]);
    bench().args(["--into", "."]).within(&spot).fails(2).says(&["--tree"]);
    spot.holds(&["file", "tree"]);
    nothing_left(spot.join("tree"));
}

#[test]
fn too_little_room_is_noticed_early() {
    let Some(volume) = Volume::with_size(FileSystem::Tmpfs, 30 << 20) else { return };
    let spot = Spot::at(volume);
    spot.tree("tree").file("a", vec![1; 14 << 20]);
    let ran = bench_of("tree", ".").args(["--runs", "1"]).within(&spot).fails(1);
    assert!(!ran.stderr.contains("round"), "{}", ran.stderr);
    // 14 MiB in blocks, an inode or two, a twentieth, and 16 MiB; twice, for the source of hard links.
    ran.says(&["a run needs 64.4 MB", "are free"]).hints();
    spot.holds(&["tree"]);
}

#[test]
fn too_few_inodes_are_noticed_early() {
    let Some(volume) = Volume::builder(FileSystem::Tmpfs).mount_option("nr_inodes=100").mount() else { return };
    let spot = Spot::at(volume);
    for number in 0..40 {
        spot.tree("tree").file(format!("{number}"), b"1");
    }
    bench_of("tree", ".").within(&spot).fails(1).says(&["a run needs 82 inodes"]).hints();
    spot.holds(&["tree"]);
}

#[test]
fn a_read_only_place_says_so() {
    let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
    fs_err::create_dir(volume.path().join("tree")).unwrap();
    volume.remount_read_only();
    let ran = bench_of(volume.path().join("tree"), volume.path())
        .fails(1)
        .says(&["that file system is mounted read-only: name a writable place with `--into`"]);
    ran.says(&["Read-only file system"]).hints();
    // It may still be read: a tree there is copied to a place elsewhere.
    let Some(spot) = Spot::on(FileSystem::Tmpfs) else { return };
    let programs = Programs::none();
    bench_of(volume.path().join("tree"), &spot).args(["--runs", "1"]).env("PATH", programs.path()).succeeds();
    spot.holds(&[]);
}

#[test]
fn a_program_that_crashes_is_reported_and_the_others_go_on() {
    let Some(spot) = Spot::on(FileSystem::Tmpfs) else { return };
    spot.tree("tree").file("a", b"1");
    let programs = Programs::none()
        .real("cp")
        .script("cpz", "echo half > \"$2\"; kill -SEGV $$")
        .script("xcp", "echo 'disk on fire' >&2; exit 23");
    let command = bench_of("tree", ".").args(["--runs", "2", "--json"]).within(&spot).env("PATH", programs.path());
    let ran = command.succeeds();
    let report = ran.json();
    let crashed = of_command(&report["failed"], "cpz SRC DST");
    assert_eq!((&crashed["signal"], &crashed["exit_code"], &crashed["round"]), (&json!(11), &json!(null), &json!(1)));
    assert_eq!(crashed["reason"], "killed by SIGSEGV");
    let failed = of_command(&report["failed"], "xcp -r --no-progress SRC DST");
    assert_eq!((&failed["exit_code"], &failed["reason"]), (&json!(23), &json!("exit code 23: disk on fire")));
    assert!(has_warning(&report, "failed").contains("was not run again"));
    assert!(commands(&report["results"]).contains(&"cp -a SRC DST"));
    assert_eq!(ran.stderr.matches("cpz SRC DST: killed by SIGSEGV").count(), 1, "{}", ran.stderr);
    spot.holds(&["tree"]);
    let table = bench_of("tree", ".").args(["-q", "--runs", "1"]).within(&spot).env("PATH", programs.path()).succeeds();
    let row = table.stdout.lines().find(|line| line.starts_with("| `cpz SRC DST`")).unwrap();
    assert!(row.contains("failed"), "{row}");
    assert_eq!(table.stderr, "");
    // One that makes nothing, or cannot start, has failed too.
    let programs = Programs::none().script("cpz", "exit 0").script("xcp", "");
    fs_err::write(programs.path().join("xcp"), "\x7fELF and nothing more").unwrap();
    let command = bench_of("tree", ".").args(["--runs", "1", "--json"]).within(&spot).env("PATH", programs.path());
    let report = command.succeeds().json();
    assert_eq!(of_command(&report["failed"], "cpz SRC DST")["reason"], "it succeeded but made nothing");
    let reason = &of_command(&report["failed"], "xcp -r --no-progress SRC DST")["reason"];
    assert!(reason.as_str().unwrap().starts_with("it could not be started: "), "{reason}");
    assert_eq!(report["versions"]["xcp"], "unknown");
    spot.holds(&["tree"]);
}

#[test]
fn a_tree_that_changes_or_vanishes_meanwhile_is_noticed() {
    let Some(spot) = Spot::on(FileSystem::Tmpfs) else { return };
    spot.tree("tree").file("a", b"1");
    let programs = Programs::none().script("cpz", "echo more >> \"$1/a\"; cp -r \"$1\" \"$2\"");
    let command = bench_of("tree", ".").args(["--runs", "1", "--json"]).within(&spot).env("PATH", programs.path());
    let message = has_warning(&command.succeeds().json(), "tree_changed");
    assert!(message.contains("changed while it was being measured: 1 file,"), "{message}");
    // And one that did not change is not suspected, though hard links of its files were made.
    let programs = Programs::none().real("cp");
    let command = bench_of("tree", ".").args(["--runs", "1", "--json"]).within(&spot).env("PATH", programs.path());
    let report = command.succeeds().json();
    of_command(&report["results"], "cp -al SRC DST");
    assert!(report["warnings"].as_array().unwrap().iter().all(|warning| warning["code"] != "tree_changed"));
    spot.holds(&["tree"]);
    // One that vanishes fails Calve.
    let programs = Programs::none().script("cpz", "rm -r \"$1\"; mkdir \"$2\"");
    let command = bench_of("tree", ".").args(["--runs", "2", "--json"]).within(&spot).env("PATH", programs.path());
    let ran = command.ends(1);
    let report = ran.json();
    assert!(has_warning(&report, "tree_changed").contains("cannot be read any more"));
    of_command(&report["failed"], "calve cp SRC DST");
    ran.says(&["error: `calve cp"]).hints();
    spot.holds(&[]);
}

/// A program that writes down its number and that of a child, and then does nothing for long.
const ENDLESS: &str = "mkdir \"$2\"; sleep 1000 & echo $$ $! > \"$2/pids\"; wait";

fn exists(process: &str) -> bool {
    Path::new("/proc").join(process).exists()
}

#[test]
fn an_interruption_kills_what_runs_and_removes_everything() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let Some(spot) = Spot::on(FileSystem::Tmpfs) else { return };
        spot.tree("tree").file("a", b"1");
        let before = fingerprint(spot.join("tree"));
        let programs = Programs::none().script("cpz", ENDLESS);
        let running = bench_of("tree", ".").within(&spot).env("PATH", programs.path()).start();
        let mut pids = String::new();
        eventually("the program runs", || {
            for place in leftovers(&spot) {
                for run in fs_err::read_dir(spot.join(place)).into_iter().flatten().flatten() {
                    pids = fs_err::read_to_string(run.path().join("pids")).unwrap_or_default();
                    if pids.ends_with('\n') {
                        return true;
                    }
                }
            }
            false
        });
        assert!(pids.split_whitespace().all(exists), "{pids}");
        send(running.id(), signal);
        if signal != Signal::INT {
            // As `timeout` does it: to the process, and at once to its group.
            std::thread::sleep(std::time::Duration::from_millis(1));
            send(running.id(), signal);
        }
        let ran = running.ends(130);
        assert!(ran.stderr.ends_with("error: interrupted\n"), "{}", ran.stderr);
        assert_eq!(ran.stdout, "");
        spot.holds(&["tree"]);
        eventually("the program and its child are gone", || !pids.split_whitespace().any(exists));
        before.assert_unchanged(spot.join("tree"));
    }
}

#[test]
fn a_killed_bench_leaves_one_directory_that_is_named_and_an_untouched_tree() {
    let Some(spot) = Spot::on(FileSystem::Tmpfs) else { return };
    spot.tree("tree").file("a", b"1");
    let before = fingerprint(spot.join("tree"));
    let programs = Programs::none().script("cpz", "exec 2>/dev/null; mkdir \"$2\"; sleep 1");
    let running = bench_of("tree", ".").args(["--runs", "1"]).within(&spot).env("PATH", programs.path()).start();
    eventually("it has begun", || !leftovers(&spot).is_empty());
    send(running.id(), Signal::KILL);
    assert!(running.wait().was_killed());
    let left = leftovers(&spot);
    assert_eq!(left.len(), 1, "{left:?}");
    before.assert_unchanged(spot.join("tree"));
    // Held by one that still runs.
    spot.tree("").dir(".calve-bench-2-0");
    let held = fs_err::File::open(spot.join(".calve-bench-2-0")).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let ran = bench_of("tree", ".").args(["--runs", "1"]).within(&spot).env("PATH", Programs::none().path()).succeeds();
    assert!(!ran.stderr.contains(".calve-bench-2-0"), "{}", ran.stderr);
    ran.says(&["a bench that was killed left", &left[0], "which you may delete"]);
    spot.holds(&[&left[0], ".calve-bench-2-0", "tree"]);
}
