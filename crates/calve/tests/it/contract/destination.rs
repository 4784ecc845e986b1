//! Where the clone goes: as with cp, with the stated differences.

use std::process::Command;

use calve_testkit::{Aspect, Tree, assert_same, assert_same_except, fingerprint};

use super::folder;
use crate::program::{cp, keys};
use crate::spot::{Spot, names, paths_below};

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
        &["-t", "there", "src"],
        &["-f", "-v", "-t", "there", "src", "file"],
        &["src/", "file", "--target-directory=there/"],
        &["-v", "file", "-t", "link to there"],
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
        (&["-t", "there"], 2),
        (&["-t", "new", "src"], 2),
        (&["-t", "file", "src"], 2),
        (&["-t", "there", "-T", "src"], 2),
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
        &["-t", "full", "src"],
        &["-f", "file", "other"],
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
    let ran = cp().args(["--json", "src", "missing", "file", "there"]).within(&spot).ends(1);
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
    let before = fingerprint(&spot);
    // With `--replace` the second would take the place of the first.
    for options in [&["-q"][..], &["--replace"], &["-n"]] {
        for sources in [["src", "full/src"], ["src", "src/"], ["./src", "src"]] {
            let ran = cp().args(options).args(sources).arg("there").within(&spot).fails(2).hints();
            ran.says(&["would both become `there/src`"]);
            before.assert_unchanged(&spot);
        }
        cp().args(options)
            .args(["src/.", "file", "there"])
            .within(&spot)
            .fails(2)
            .says(&["cannot name the clone of `src/.`"]);
        before.assert_unchanged(&spot);
    }
}

#[test]
fn a_link_does_not_take_the_place_of_what_it_leads_to() {
    let spot = Spot::anywhere();
    Tree::new(&spot)
        .file("data.json", b"data")
        .dir("src")
        .file("src/x", b"x")
        .symlink("link", "data.json")
        .symlink("to", "src");
    for words in [["link", "data.json"], ["to", "src"], ["./to", "src"], ["to", "./src"]] {
        cp().args(["--replace", "-T"]).args(words).within(&spot).fails(1);
    }
    assert_eq!(fs_err::read_to_string(spot.join("data.json")).unwrap(), "data");
    assert_eq!(names(spot.join("src")), ["x"]);
}

#[test]
fn no_source_goes_with_what_another_ones_clone_replaces() {
    let spot = folder();
    fs_err::create_dir_all(spot.join("there/src/keep")).unwrap();
    fs_err::write(spot.join("there/src/keep/data"), "only here").unwrap();
    fs_err::os::unix::fs::symlink("there", spot.join("alias")).unwrap();
    fs_err::os::unix::fs::symlink("../there/src/keep", spot.join("full/linked")).unwrap();
    let before = fingerprint(&spot);
    for options in [&["--replace"][..], &["--replace", "-n"], &["--replace", "--json"], &["-q"]] {
        for inside in ["there/src/keep", "alias/src/keep/", "there/src/keep/data", "full/linked/"] {
            for sources in [["src", inside], [inside, "src"]] {
                let ran = cp().args(options).args(sources).arg("there").within(&spot).fails(2).hints();
                ran.says(&["which the clone of `src` would replace"]);
                before.assert_unchanged(&spot);
            }
        }
    }
    // A link is cloned as it is.
    cp().args(["-q", "--replace", "src", "full/linked", "there"]).within(&spot).succeeds();
}
