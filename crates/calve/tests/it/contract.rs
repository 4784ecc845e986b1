//! What `calve cp` promises on its command line: where the clone goes, what is printed, and how the program ends.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use calve_testkit::{
    Aspect, FileSystem, Tree, Volume, assert_same, assert_same_except, everything, fingerprint, require_program,
};
use serde_json::{Value, json};

use crate::program::{calve, cp};
use crate::spot::{Spot, eventually_nothing_left, leftovers, names, nothing_left, paths_below};

/// A folder with all that destinations are about.
fn folder() -> Spot {
    let spot = Spot::anywhere();
    spot.tree("")
        .file("src/a", b"1")
        .file("src/deeper/b", b"2")
        .file("file", b"3")
        .file("other", b"4")
        .dir("there")
        .file("full/src/old", b"5")
        .symlink("link to src", "src")
        .symlink("link to there", "there");
    spot
}

#[test]
fn destinations_are_those_of_cp() {
    let command_lines: &[&[&str]] = &[
        &["src", "new"],
        &["src", "new/"],
        &["src/", "new"],
        &["src", "there"],
        &["src", "there/"],
        &["src/", "there"],
        &["src", "there/."],
        &["src", "link to there"],
        &["src", "link to there/"],
        &["src/.", "new"],
        &["src", "there/new"],
        &["src/deeper/..", "new"],
        &["src", "full/src/"],
        &["./src", "./there/../new"],
        &["file", "new"],
        &["file", "there"],
        &["file", "there/"],
        &["file", "there/new"],
        &["src", "file", "other", "there"],
        &["src/", "file", "there/"],
        &["link to src", "new"],
        &["link to src", "there"],
        &["link to src/", "new"],
        &["-T", "src", "new"],
        &["-T", "src", "new/"],
        &["-T", "file", "new"],
    ];
    for arguments in command_lines {
        let (by_cp, by_calve) = (folder(), folder());
        let output = Command::new("cp").arg("-a").args(*arguments).current_dir(&*by_cp).output().unwrap();
        assert!(output.status.success(), "cp {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        cp().args(*arguments).within(&by_calve).succeeds();
        assert_eq!(paths_below(&by_calve), paths_below(&by_cp), "{arguments:?}");
        assert_same_except(&by_cp, &by_calve, &[Aspect::Times]);
    }
}

#[test]
fn what_cp_refuses_is_refused() {
    let command_lines: &[(&[&str], i32)] = &[
        (&["file", "new/"], 2),
        (&["src", "file", "new"], 2),
        (&["src", "other", "file"], 2),
        (&["-T", "src", "file", "there"], 2),
        (&["src"], 2),
        (&[], 2),
        (&["missing", "new"], 1),
        (&["file/", "new"], 1),
        (&["src", "file"], 1),
        (&["src", "file/"], 1),
        (&["file", "file"], 1),
        (&["src", "src"], 1),
        (&["src", "missing/new"], 1),
        (&["src", "file/new"], 1),
        (&["", "new"], 2),
        (&["src", ""], 2),
    ];
    for (arguments, code) in command_lines {
        let spot = folder();
        let before = fingerprint(&spot);
        let output = Command::new("cp").arg("-a").args(*arguments).current_dir(&*folder()).output().unwrap();
        assert!(!output.status.success(), "cp does it: {arguments:?}");
        cp().args(*arguments).within(&spot).fails(*code);
        before.assert_unchanged(&spot);
    }
}

#[test]
fn nothing_is_merged_into_what_exists() {
    for arguments in [
        &["src", "full"][..],
        &["src", "full/src"],
        &["-T", "src", "there"],
        &["src/.", "there"],
        &["file", "other"],
        &["-T", "file", "link to there"],
    ] {
        let spot = folder();
        let before = fingerprint(&spot);
        let ran = cp().args(arguments).within(&spot).fails(1).hints();
        assert!(ran.stderr.contains("already exists"), "{arguments:?}: {}", ran.stderr);
        // Staging is made in the parent only after this is known.
        before.assert_unchanged(&spot);
    }
}

#[test]
fn a_command_that_runs_twice_does_not_nest() {
    let spot = Spot::anywhere();
    spot.tree("node_modules").file("a", b"1");
    spot.tree("feature");
    let run = || cp().args(["node_modules", "feature/node_modules"]).within(&spot);
    run().succeeds();
    run().fails(1).says(&["`feature/node_modules` already exists", "--replace"]).hints();
    assert_eq!(paths_below(spot.join("feature")), ["node_modules", "node_modules/a"]);
    run().arg("--replace").succeeds();
    assert_eq!(names(spot.join("feature/node_modules")), ["a"]);
    // With a slash it is meant as a directory to copy into.
    cp().args(["node_modules", "feature/node_modules/"]).within(&spot).succeeds();
    assert_eq!(names(spot.join("feature/node_modules")), ["a", "node_modules"]);
}

#[test]
fn the_current_directory_is_a_source_and_a_destination() {
    let spot = folder();
    cp().args([".", "../new"]).within(spot.join("src")).succeeds();
    assert_same(spot.join("src"), spot.join("new"));
    cp().args(["../src", "."]).within(spot.join("there")).succeeds();
    assert_same(spot.join("src"), spot.join("there/src"));
    cp().args([".", "new"]).within(spot.join("src")).fails(1).says(&["inside the source"]).hints();
    assert_eq!(names(spot.join("src")), ["a", "deeper"]);
}

#[test]
fn of_several_sources_those_that_can_be_cloned_are() {
    let spot = folder();
    let ran = cp().args(["--json", "src", "missing", "file", "there"]).within(&spot).run();
    ran.ended(1);
    assert_eq!(names(spot.join("there")), ["file", "src"]);
    let receipt = ran.json();
    assert_eq!(keys(&receipt), ["clones", "schema"]);
    assert_eq!(receipt["schema"], "calve.clones/1");
    let made: Vec<_> = receipt["clones"].as_array().unwrap().iter().map(|clone| clone["dst"].clone()).collect();
    assert_eq!(made, ["there/src", "there/file"]);
    ran.says(&["`missing` does not exist"]).hints();
}

#[test]
fn two_sources_of_one_name_do_not_meet() {
    let spot = folder();
    let ran = cp().args(["src", "full/src", "there"]).within(&spot).fails(1);
    assert_same(spot.join("src"), spot.join("there/src"));
    ran.says(&["`there/src` already exists"]);
}

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
fn a_plain_clone_prints_one_line_on_stderr_and_nothing_on_stdout() {
    let spot = folder();
    let ran = cp().args(["src", "new"]).within(&spot).succeeds();
    assert_eq!(ran.stdout, "");
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    ran.says(&["cloned `src` to `new` by ", "4 entries", " ms"]);
}

#[test]
fn the_line_says_why_nothing_faster_was_possible() {
    let Some(spot) = Spot::on(FileSystem::Tmpfs) else { return };
    spot.tree("src").file("a", b"1");
    let ran = cp().args(["src", "new"]).within(&spot).succeeds();
    assert_eq!(ran.stderr.lines().count(), 1);
    ran.says(&["by copy", "no snapshot: ", "no reflink: "]);
}

#[test]
fn quiet_prints_nothing_but_errors() {
    let spot = folder();
    let ran = cp().args(["-q", "src", "new"]).within(&spot).succeeds();
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    cp().args(["--quiet", "src", "full"]).within(&spot).fails(1).says(&["error: "]);
    let ran = cp().args(["-q", "-n", "src", "newer"]).within(&spot).succeeds();
    assert_eq!(ran.stderr, "");
}

#[test]
fn the_options_of_cp_are_accepted() {
    for options in
        [&["-r"][..], &["-R"], &["-a"], &["-p"], &["-rp"], &["-a", "-R"], &["-aT"], &["--recursive"], &["--archive"]]
    {
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
}

fn keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn the_receipt_has_exactly_the_keys_of_its_schema() {
    let Some(spot) = Spot::on(FileSystem::Xfs) else { return };
    everything(spot.join("src"));
    let receipt = cp().args(["--json", "src", "new"]).within(&spot).succeeds().json();
    assert_eq!(
        keys(&receipt),
        [
            "bytes",
            "changed",
            "dst",
            "elapsed_ms",
            "entries",
            "fell_back",
            "refused",
            "schema",
            "skipped",
            "src",
            "strategy",
            "warnings"
        ]
    );
    assert_eq!(receipt["schema"], "calve.clone/1");
    assert_eq!(receipt["strategy"], "reflink");
    assert_eq!(keys(&receipt["entries"]), ["devices", "directories", "fifos", "files", "hard_links", "symlinks"]);
    assert_eq!(keys(&receipt["bytes"]), ["apparent", "inlined", "shared", "written"]);
    let refused = receipt["refused"].as_array().unwrap();
    assert!(refused.iter().all(|refusal| keys(refusal) == ["reason", "strategy"]));
    assert!(refused.iter().any(|refusal| refusal["strategy"] == "snapshot"), "{refused:?}");
    for empty in ["fell_back", "skipped", "changed", "warnings"] {
        assert_eq!(receipt[empty], json!([]), "{empty}");
    }
    assert!(receipt["elapsed_ms"].as_f64().unwrap() > 0.0);
}

#[test]
fn the_receipt_counts_what_is_there() {
    let spot = Spot::anywhere();
    let src = spot.tree("src").file("a", b"12345").file("d/b", b"").dir("e").symlink("l", "a").fifo("f");
    src.hard_link("d/a", "a");
    let receipt = cp().args(["--json", "src", "new"]).within(&spot).succeeds().json();
    let expected = json!({ "directories": 3, "files": 2, "symlinks": 1, "fifos": 1, "devices": 0, "hard_links": 1 });
    assert_eq!(receipt["entries"], expected);
    let bytes = &receipt["bytes"];
    assert_eq!(bytes["apparent"], 5);
    let moved: u64 = ["shared", "written", "inlined"].iter().map(|how| bytes[how].as_u64().unwrap()).sum();
    assert_eq!(moved, 5);
    assert_eq!((&receipt["src"], &receipt["dst"]), (&json!("src"), &json!("new")));
}

#[test]
fn a_path_that_is_not_utf_8_is_given_in_base_64() {
    let spot = Spot::anywhere();
    let (src, dst) = (OsStr::from_bytes(b"s\xff"), OsStr::from_bytes(b"d\xfe"));
    Tree::new(spot.join(src)).file(OsStr::from_bytes(b"\x80.log"), b"1");
    let ran = cp().arg("--json").args([src, dst]).args(["--exclude", "*.log"]).within(&spot).succeeds();
    let receipt = ran.json();
    assert_eq!(receipt["src"], json!({ "bytes_base64": "c/8=" }));
    assert_eq!(receipt["dst"], json!({ "bytes_base64": "ZP4=" }));
    assert_eq!(receipt["skipped"], json!([{ "path": { "bytes_base64": "gC5sb2c=" }, "reason": "excluded" }]));
    ran.says(&["`s\\xff`", "`d\\xfe`"]);
}

#[test]
fn a_snapshot_counts_nothing() {
    let Some(spot) = subvolume() else { return };
    let ran = cp().args(["--json", "src", "new"]).within(&spot).succeeds();
    let receipt = ran.json();
    assert_eq!(receipt["strategy"], "snapshot");
    assert_eq!((&receipt["entries"], &receipt["bytes"]), (&Value::Null, &Value::Null));
    assert_eq!(receipt["refused"], json!([]));
    assert_eq!(ran.stderr.lines().count(), 1);
    assert_same(spot.join("src"), spot.join("new"));
    nothing_left(&spot);
}

/// A spot where `src` is a subvolume with two files.
fn subvolume() -> Option<Spot> {
    let spot = Spot::on(FileSystem::Btrfs)?;
    let output = Command::new("btrfs").args(["subvolume", "create"]).arg(spot.join("src")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    spot.tree("src").file("a", b"1").file("d/b", vec![7; 100_000]);
    Some(spot)
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
    // A link is what is replaced, not where it leads.
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
    cp().args(["--replace", "src", "full/src"]).within(&spot).env("HOME", &home).fails(1).says(&["refusing"]);
    cp().args(["--replace", "-T", "../../src", "../src"]).within(&home).fails(1).says(&["current directory"]);
    assert_eq!(names(&home), ["old"]);
    nothing_left(spot.join("full"));
}

#[test]
fn verify_and_sync_change_nothing_about_the_result() {
    for options in [&["--verify"][..], &["--sync"], &["--sync", "--verify"]] {
        for file_system in FileSystem::ALL {
            let Some(spot) = Spot::on(file_system) else { return };
            everything(spot.join("src"));
            cp().args(options).args(["src", "new"]).within(&spot).succeeds();
            assert_same(spot.join("src"), spot.join("new"));
            nothing_left(&spot);
        }
    }
}

#[test]
fn a_single_file_can_be_verified_and_synced() {
    let spot = folder();
    cp().args(["--verify", "--sync", "file", "new"]).within(&spot).succeeds();
    assert_eq!(fs_err::read(spot.join("new")).unwrap(), b"3");
    nothing_left(&spot);
}

#[test]
fn excluded_entries_are_left_out_and_listed() {
    let spot = Spot::anywhere();
    spot.tree("src").file("a.log", b"1").file("kept", b"2").file("build/x", b"3").file("deep/build/y", b"4");
    let ran = cp().args(["--json", "--exclude", "*.log", "--exclude=/build", "src", "new"]).within(&spot).succeeds();
    assert_eq!(paths_below(spot.join("new")), ["deep", "deep/build", "deep/build/y", "kept"]);
    let expected = json!([{ "path": "a.log", "reason": "excluded" }, { "path": "build", "reason": "excluded" }]);
    assert_eq!(ran.json()["skipped"], expected);
    // It is what was asked for, so nobody needs to be warned of it.
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    // Patterns are about what is in a source, not about the source itself.
    cp().args(["--exclude", "*.log", "src/a.log", "a.log"]).within(&spot).succeeds();
    cp().args(["--exclude", "src", "src", "all"]).within(&spot).succeeds();
    assert_same(spot.join("src"), spot.join("all"));
    cp().args(["--exclude", "[", "src", "newer"]).within(&spot).fails(2).says(&["pattern", "["]).hints();
}

#[test]
fn any_number_of_threads_makes_the_same_tree() {
    let Some(spot) = Spot::on(FileSystem::Xfs) else { return };
    everything(spot.join("src"));
    for threads in ["1", "2", "3", "17"] {
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
    let mount = calve_testkit::BindMount::new(other.path(), spot.join("src/mounted"));
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
fn colours_are_for_terminals_that_want_them() {
    if !require_program("script") {
        return;
    }
    let spot = folder();
    let failing = || cp().args(["src", "full"]).within(&spot);
    assert!(!failing().fails(1).stderr.contains('\x1b'));
    let coloured = failing().env("NO_COLOR", "").on_a_terminal().run();
    coloured.ended(1);
    assert!(coloured.stdout.contains("\x1b[") && coloured.stdout.contains("already exists"), "{:?}", coloured.stdout);
    let plain = failing().env("NO_COLOR", "1").on_a_terminal().run();
    plain.ended(1);
    assert!(!plain.stdout.contains('\x1b') && plain.stdout.contains("already exists"), "{:?}", plain.stdout);
    let usage = cp().arg("--nonsense").within(&spot).env("NO_COLOR", "1").on_a_terminal().run();
    usage.ended(2);
    assert!(!usage.stdout.contains('\x1b'), "{:?}", usage.stdout);
}

#[test]
fn a_hostile_name_cannot_drive_the_terminal() {
    let spot = Spot::anywhere();
    let hostile = "a\x1b]0;owned\x07\nb\r";
    spot.tree("src").file(hostile, b"1").socket(format!("s{hostile}"));
    let shown = "a\\u{1b}]0;owned\\u{7}\\nb\\r";
    let harmless = |text: &str| text.lines().all(|line| !line.contains(|c: char| c.is_control()));
    let ran = cp().args(["src", hostile]).within(&spot).succeeds().says(&[shown, "socket"]);
    assert!(harmless(&ran.stderr) && ran.stderr.lines().count() == 2, "{:?}", ran.stderr);
    let ran = cp().args(["src", hostile, "-T"]).within(&spot).fails(1).says(&[shown]);
    assert!(harmless(&ran.stderr) && ran.stderr.lines().count() == 2, "{:?}", ran.stderr);
    for arguments in [[hostile, "src", "nowhere"], ["src", "src/..", hostile], ["src", "src", hostile]] {
        let ran = cp().args(arguments).within(spot.join(hostile)).run();
        assert!(!ran.status.success() && harmless(&ran.stderr), "{:?}", ran.stderr);
    }
    let ran = cp().args(["--exclude", "[\x1b[31m", "src", "new"]).within(&spot).fails(2);
    assert!(harmless(&ran.stderr), "{:?}", ran.stderr);
    let ran = cp().args(["src", &format!("{hostile}/missing/new")]).within(&spot).fails(1);
    assert!(harmless(&ran.stderr), "{:?}", ran.stderr);
}

#[test]
fn help_says_that_hard_linked_trees_are_not_independent() {
    for flag in ["--help", "-h"] {
        let help = cp().arg(flag).succeeds().stdout;
        let line = help.lines().find(|line| line.trim_start().starts_with("hardlink ")).unwrap();
        assert!(line.to_lowercase().contains("not independent"), "{line}");
    }
    let spot = folder();
    let ran = cp().args(["--json", "--strategy", "hardlink", "src", "new"]).within(&spot).succeeds();
    assert_eq!(ran.json()["warnings"][0]["code"], "not_independent");
    ran.says(&["warning: ", "a write in place on either side changes both"]);
}

#[test]
fn help_and_version_go_to_stdout() {
    for arguments in [&["--help"][..], &["--version"], &["cp", "--help"], &["rm", "--help"], &["probe", "--help"]] {
        let ran = calve(arguments).succeeds();
        assert!(ran.stdout.contains("calve") && ran.stderr.is_empty());
    }
    let ran = calve::<&str>([]).run();
    ran.ended(2);
    assert_eq!(ran.stdout, "");
}

#[test]
fn a_requirement_that_cannot_be_met_is_refused_with_the_reason() {
    for file_system in [FileSystem::Ext4, FileSystem::Tmpfs] {
        let Some(spot) = Spot::on(file_system) else { return };
        spot.tree("src").file("a", b"1");
        for (requirement, source) in [("cow", "src"), ("cow", "src/a"), ("instant", "src"), ("instant", "src/a")] {
            let ran = cp().args(["--require", requirement, source, "new"]).within(&spot).fails(3).hints();
            spot.holds(&["src"]);
            ran.says(&[&format!("`--require {requirement}` cannot be met"), "snapshot: ", "reflink: ", "copy: "]);
        }
        let reason = format!("{} cannot share extents", file_system.name());
        cp().args(["--require", "cow", "src", "new"]).within(&spot).fails(3).says(&[&reason]);
        // An existing target is left alone too.
        spot.tree("old").file("b", b"2");
        cp().args(["--replace", "--require", "cow", "-T", "src", "old"]).within(&spot).fails(3);
        assert_eq!(names(spot.join("old")), ["b"]);
        spot.holds(&["old", "src"]);
    }
}

#[test]
fn requirements_that_can_be_met_are() {
    let Some(spot) = subvolume() else { return };
    for requirement in ["instant", "cow", "stable"] {
        let ran = cp().args(["--json", "--require", requirement, "src", requirement]).within(&spot).succeeds();
        assert_eq!(ran.json()["strategy"], "snapshot");
    }
    cp().args(["--require", "cow", "--require", "stable", "--exclude", "x", "src", "both"]).within(&spot).succeeds();
    cp().args(["--require", "instant", "--exclude", "x", "src", "new"]).within(&spot).fails(3);
    let Some(spot) = Spot::on(FileSystem::Xfs) else { return };
    spot.tree("src").file("small", b"1").file("large", vec![1; 1 << 20]);
    let receipt = cp().args(["--json", "--require", "cow", "src", "new"]).within(&spot).succeeds().json();
    assert_eq!(
        receipt["bytes"],
        json!({ "apparent": (1 << 20) + 1, "shared": (1 << 20) + 1, "written": 0, "inlined": 0 })
    );
    cp().args(["--require", "instant", "src", "newer"]).within(&spot).fails(3);
    let Some(spot) = Spot::on(FileSystem::Ext4) else { return };
    spot.tree("src").file("a", b"1");
    cp().args(["--require", "stable", "src", "new"]).within(&spot).succeeds();
}

#[test]
fn across_file_systems_only_copying_works() {
    let (Some(here), Some(there)) = (Spot::on(FileSystem::Xfs), Spot::on(FileSystem::Xfs)) else { return };
    here.tree("src").file("a", vec![1; 100_000]);
    let receipt = cp().arg("--json").arg(here.join("src")).arg(there.join("new")).succeeds().json();
    assert_eq!(receipt["strategy"], "copy");
    assert_same(here.join("src"), there.join("new"));
    let ran = cp().args(["--require", "cow"]).arg(here.join("src")).arg(there.join("newer")).fails(3);
    there.holds(&["new"]);
    ran.says(&["different file systems"]).hints();
}

#[test]
fn a_named_strategy_is_used_or_refused() {
    let Some(spot) = Spot::on(FileSystem::Ext4) else { return };
    spot.tree("src").file("a", b"1");
    for strategy in ["snapshot", "clonefile", "reflink"] {
        let ran = cp().args(["--strategy", strategy, "src", "new"]).within(&spot).fails(3).hints();
        ran.says(&[&format!("the strategy `{strategy}` cannot be used"), &format!("{strategy}: ")]);
        spot.holds(&["src"]);
    }
    for strategy in ["copy", "hardlink"] {
        let ran = cp().args(["--json", "--strategy", strategy, "src", strategy]).within(&spot).succeeds();
        assert_eq!(ran.json()["strategy"], strategy);
        assert_same(spot.join("src"), spot.join(strategy));
    }
    let Some(other) = Spot::on(FileSystem::Tmpfs) else { return };
    let ran = cp().args(["--strategy", "hardlink"]).arg(spot.join("src")).arg(other.join("new")).fails(3);
    other.holds(&[]);
    ran.says(&["different file systems"]);
    cp().args(["--strategy", "hardlink", "--require", "cow", "src", "new"]).within(&spot).fails(3);
}

#[test]
fn an_overlay_is_for_callers_of_the_library() {
    let spot = folder();
    let ran = cp().args(["--strategy", "overlay", "src", "new"]).within(&spot).fails(2);
    ran.says(&["overlay", "mount", "library"]);
    cp().args(["--strategy", "magic", "src", "new"]).within(&spot).fails(2).says(&["magic"]);
    cp().args(["--require", "magic", "src", "new"]).within(&spot).fails(2).says(&["instant", "cow", "stable"]);
    cp().args(["--nonsense", "src", "new"]).within(&spot).fails(2).says(&["--nonsense"]);
    assert_eq!(paths_below(&spot), paths_below(folder()));
}

#[test]
fn a_closed_stderr_or_stdout_harms_no_file() {
    for redirections in ["2>&-", "1>&-", "1>&- 2>&-", "0<&-", "0<&- 1>&- 2>&-"] {
        let spot = folder();
        let before = fingerprint(spot.join("src"));
        let ran = cp().args(["src", "new"]).within(&spot).in_shell("", redirections).run();
        ran.ended(0);
        assert_same(spot.join("src"), spot.join("new"));
        before.assert_unchanged(spot.join("src"));
        cp().args(["src", "full"]).within(&spot).in_shell("", redirections).run().ended(1);
        cp().args(["--replace", "src", "full/src"]).within(&spot).in_shell("", redirections).run().ended(0);
        assert_same(spot.join("src"), spot.join("full/src"));
        eventually_nothing_left(spot.join("full"));
    }
}

#[test]
fn a_receipt_that_cannot_be_printed_is_a_failure() {
    let spot = folder();
    let ran = cp().args(["--json", "src", "new"]).within(&spot).in_shell("", ">/dev/full").run();
    ran.ended(1);
    // The clone was made before; what failed is said.
    assert_same(spot.join("src"), spot.join("new"));
    ran.says(&["error: ", "stdout", "No space left on device"]).hints();
    // Nothing is written there without being asked for.
    cp().args(["src", "newer"]).within(&spot).in_shell("", ">/dev/full").run().ended(0);
    cp().args(["src", "newest"]).within(&spot).in_shell("", "2>/dev/full").run().ended(0);
    nothing_left(&spot);
}

#[test]
fn errors_name_the_path_and_the_operation() {
    let spot = folder();
    let cases: &[(&[&str], &[&str])] = &[
        (&["missing", "new"], &["`missing` does not exist"]),
        (&["missing/src", "new"], &["`missing/src` does not exist"]),
        (&["src", "nowhere/new"], &["`nowhere` does not exist", "mkdir -p nowhere"]),
        (&["file/x", "new"], &["open directory `file`", "Not a directory"]),
        (&["src", "file/x"], &["open directory `file`", "Not a directory"]),
        (&["src", "src/deeper/new"], &["`src/deeper/new`", "inside the source `src`"]),
        (&["file", "./file"], &["`file` and `./file` are the same"]),
    ];
    for (arguments, words) in cases {
        let ran = cp().args(*arguments).within(&spot).fails(1).says(words).hints();
        assert_eq!(ran.stderr.lines().count(), 2, "{}", ran.stderr);
    }
    assert_eq!(leftovers(&spot), [""; 0]);
}

#[test]
fn no_progress_is_shown_where_nobody_watches() {
    let Some(spot) = Spot::on(FileSystem::Tmpfs) else { return };
    calve_testkit::wide(spot.join("src"), 20_000);
    let ran = cp().args(["--verify", "--sync", "src", "new"]).within(&spot).succeeds();
    assert_eq!(ran.stderr.lines().count(), 1);
    assert!(!ran.stderr.contains(['\r', '\x1b']));
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
        ran.says(&["Read-only file system", &shown(volume.path())]);
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
