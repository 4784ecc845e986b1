//! What each option does, and what stays as it is.

use calve_testkit::{BindMount, FileSystem, Tree, Volume, assert_same, everything, fingerprint, matrix};
use serde_json::json;

use super::folder;
use crate::program::{cp, keys};
use crate::spot::{Spot, eventually_nothing_left, names, nothing_left, paths_below};

#[test]
fn a_dry_run_says_what_would_be_done_and_does_nothing() {
    let spot = folder();
    let before = fingerprint(spot.join("src"));
    let ran = cp().args(["-n", "--json", "src", "new"]).within(&spot).succeeds();
    let plan = ran.json();
    assert_eq!(keys(&plan), ["dst", "refused", "schema", "src", "strategy"]);
    assert_eq!((&plan["schema"], &plan["dst"]), (&json!("calve.plan/1"), &json!("new")));
    assert_eq!(ran.stderr.lines().count(), 1);
    ran.says(&["would clone `src` to `new` by"]);
    assert!(!spot.join("new").exists());
    nothing_left(&spot);
    before.assert_unchanged(spot.join("src"));
    // It ends as the real one would.
    cp().args(["-n", "src", "full"]).within(&spot).fails(1);
    cp().args(["-n", "missing", "new"]).within(&spot).fails(1);
    cp().args(["-n", "--require", "instant", "file", "new"]).within(&spot).fails(3);
    nothing_left(&spot);
}

#[test]
fn the_options_of_cp_are_accepted() {
    for options in [
        &["-r"][..],
        &["-R"],
        &["-a"],
        &["-p"],
        &["-v"],
        &["-f"],
        &["-rp"],
        &["-rfv"],
        &["-a", "-R"],
        &["-aT"],
        &["--recursive"],
        &["--archive"],
        &["--verbose"],
        &["--force"],
    ] {
        let spot = folder();
        cp().args(options).args(["src", "new"]).within(&spot).succeeds();
        assert_same(spot.join("src"), spot.join("new"));
    }
}

#[test]
fn options_may_come_last_and_paths_may_begin_with_a_dash() {
    let spot = folder();
    cp().args(["src", "new", "-a", "--json"]).within(&spot).succeeds().json();
    cp().args(["--", "src", "-r"]).within(&spot).succeeds();
    assert_same(spot.join("src"), spot.join("-r"));
    // A single file can be verified and synced.
    cp().args(["--verify", "--sync", "file", "newer"]).within(&spot).succeeds();
    assert_eq!(fs_err::read(spot.join("newer")).unwrap(), b"3");
    nothing_left(&spot);
}

#[test]
fn replace_swaps_and_the_old_one_goes() {
    let spot = folder();
    let ran = cp().args(["--replace", "src", "full/src"]).within(&spot).succeeds();
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    assert_same(spot.join("src"), spot.join("full/src"));
    eventually_nothing_left(spot.join("full"));
    cp().args(["--replace", "file", "other"]).within(&spot).succeeds();
    assert_eq!(fs_err::read(spot.join("other")).unwrap(), b"3");
    nothing_left(&spot);
    // A file by a directory and back.
    cp().args(["--replace", "-T", "src", "other"]).within(&spot).succeeds();
    assert_same(spot.join("src"), spot.join("other"));
    cp().args(["--replace", "-T", "file", "other"]).within(&spot).succeeds();
    assert_eq!(fs_err::read(spot.join("other")).unwrap(), b"3");
    // The link itself is replaced, not its target.
    cp().args(["--replace", "-T", "src", "link to there"]).within(&spot).succeeds();
    assert_same(spot.join("src"), spot.join("link to there"));
    assert_eq!(names(spot.join("there")), [""; 0]);
    // And nothing need be there.
    cp().args(["--replace", "src", "new"]).within(&spot).succeeds();
    assert_same(spot.join("src"), spot.join("new"));
    eventually_nothing_left(&spot);
}

#[test]
fn replace_spares_what_must_not_go() {
    let spot = folder();
    let home = spot.join("full/src");
    cp().args(["--replace", "src", "full/src"])
        .within(&spot)
        .env("HOME", &home)
        .fails(1)
        .says(&["name the directories in it that you want to remove, one by one", "refusing"]);
    cp().args(["--replace", "-T", "../../src", "../src"]).within(&home).fails(1).says(&["current directory"]);
    assert_eq!(names(&home), ["old"]);
    nothing_left(spot.join("full"));
}

#[test]
fn verify_and_sync_change_nothing_about_the_result() {
    for options in [&["--verify"][..], &["--sync"], &["--sync", "--verify"]] {
        for file_system in matrix(FileSystem::ALL) {
            let Some(spot) = Spot::on(file_system) else { return };
            everything(spot.join("src"));
            cp().args(options).args(["src", "new"]).within(&spot).succeeds();
            assert_same(spot.join("src"), spot.join("new"));
            nothing_left(&spot);
        }
    }
}

#[test]
fn excluded_entries_are_left_out_and_listed() {
    let spot = Spot::anywhere();
    spot.tree("src").file("a.log", b"1").file("kept", b"2").file("build/x", b"3").file("deep/build/y", b"4");
    let ran = cp().args(["--json", "--exclude", "*.log", "--exclude=/build", "src", "new"]).within(&spot).succeeds();
    assert_eq!(paths_below(spot.join("new")), ["deep", "deep/build", "deep/build/y", "kept"]);
    let expected = json!([{ "path": "a.log", "reason": "excluded" }, { "path": "build", "reason": "excluded" }]);
    assert_eq!(ran.json()["skipped"], expected);
    // It was asked for, so it needs no warning.
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    // Patterns are about entries of a source, not about the source itself.
    cp().args(["--exclude", "*.log", "src/a.log", "a.log"]).within(&spot).succeeds();
    cp().args(["--exclude", "src", "src", "all"]).within(&spot).succeeds();
    assert_same(spot.join("src"), spot.join("all"));
    // A negation alone leaves nothing out, and the last pattern that matches counts.
    cp().args(["--exclude", "!kept", "src", "none"]).within(&spot).succeeds();
    assert_same(spot.join("src"), spot.join("none"));
    cp().args(["--exclude", "*", "--exclude", "!kept", "src", "one"]).within(&spot).succeeds();
    assert_eq!(paths_below(spot.join("one")), ["kept"]);
    cp().args(["--exclude", "[", "src", "newer"]).within(&spot).fails(2).says(&[
        "write a glob such as `*.log`, `/build` or `**/cache/`",
        "pattern",
        "[",
    ]);
}

#[test]
fn any_number_of_threads_makes_the_same_tree() {
    let Some(spot) = Spot::on(FileSystem::Xfs) else { return };
    everything(spot.join("src"));
    for threads in ["1", "2", "3", "17", "64"] {
        cp().args(["--threads", threads, "src", threads]).within(&spot).succeeds();
        assert_same(spot.join("src"), spot.join(threads));
    }
    for nonsense in ["--threads=0", "--threads=-1", "--threads=many", "--threads="] {
        cp().args([nonsense, "src", "new"]).within(&spot).fails(2).says(&["--threads"]);
    }
}

#[test]
fn mounts_below_the_source_are_cloned_unless_one_file_system_is_asked_for() {
    let Some(spot) = Spot::on(FileSystem::Ext4) else { return };
    let Some(other) = Volume::new(FileSystem::Tmpfs) else { return };
    Tree::new(other.path()).file("inside", b"1");
    spot.tree("src").file("a", b"2").dir("mounted");
    let mount = BindMount::new(other.path(), spot.join("src/mounted"));
    cp().args(["src", "all"]).within(&spot).succeeds();
    assert_eq!(paths_below(spot.join("all")), ["a", "mounted", "mounted/inside"]);
    for option in ["--one-file-system", "-x"] {
        let ran = cp().args([option, "--json", "src", option.trim_start_matches('-')]).within(&spot).succeeds();
        assert_eq!(paths_below(spot.join(option.trim_start_matches('-'))), ["a", "mounted"]);
        assert_eq!(ran.json()["skipped"][0]["path"], "mounted");
    }
    drop(mount);
}

#[test]
fn the_source_is_not_written_even_where_it_cannot_be() {
    for file_system in FileSystem::ALL {
        let Some(volume) = Volume::new(file_system) else { return };
        let Some(other) = Spot::on(FileSystem::Tmpfs) else { return };
        everything(volume.path().join("src"));
        volume.remount_read_only();
        let before = fingerprint(volume.path().join("src"));
        cp().arg(volume.path().join("src")).arg(other.join("new")).succeeds();
        assert_same(volume.path().join("src"), other.join("new"));
        before.assert_unchanged(volume.path().join("src"));
        let ran = cp().arg(volume.path().join("src")).arg(volume.path().join("new")).fails(1).hints();
        ran.says(&["Read-only file system", &volume.path().display().to_string()]);
    }
}
