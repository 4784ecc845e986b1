//! The output: where it goes, and what it may contain.

use calve_testkit::{FileSystem, assert_same, fingerprint, require_program, wide};

use super::folder;
use crate::program::{calve, cp};
use crate::spot::{Spot, eventually_nothing_left, leftovers, nothing_left};

#[test]
fn a_plain_clone_prints_one_line_on_stderr_and_nothing_on_stdout() {
    let spot = folder();
    let ran = cp().args(["src", "new"]).within(&spot).succeeds();
    assert_eq!(ran.stdout, "");
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    ran.says(&["cloned `src` to `new` by ", "4 entries", " ms"]);
    // A quiet one prints nothing but errors.
    let ran = cp().args(["-q", "src", "quiet"]).within(&spot).succeeds();
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    cp().args(["--quiet", "src", "full"]).within(&spot).fails(1).says(&["error: "]);
    let ran = cp().args(["-q", "-n", "src", "newer"]).within(&spot).succeeds();
    assert_eq!(ran.stderr, "");
}

#[test]
fn the_line_says_why_nothing_faster_was_possible() {
    let Some(spot) = Spot::on(FileSystem::Tmpfs) else { return };
    spot.tree("src").file("a", b"1");
    let ran = cp().args(["src", "new"]).within(&spot).succeeds();
    assert_eq!(ran.stderr.lines().count(), 1);
    ran.says(&["by copy", "no snapshot: ", "no reflink: "]);
    // No progress is shown without a terminal.
    wide(spot.join("src"), 20_000);
    let ran = cp().args(["--verify", "--sync", "src", "newer"]).within(&spot).succeeds();
    assert_eq!(ran.stderr.lines().count(), 1);
    assert!(!ran.stderr.contains(['\r', '\x1b']));
}

#[test]
fn quiet_hides_no_warning() {
    let spot = Spot::anywhere();
    spot.tree("src").file("a", b"1").socket("s");
    let lacks = "warning: left out `s` (socket)\n";
    let quiet = |words: &[&str]| calve(words).arg("-q").within(&spot).env("CALVE_HOME", spot.join("home")).succeeds();
    assert_eq!(quiet(&["cp", "src", "new"]).stderr, lacks);
    assert_eq!(quiet(&["template", "create", "t", "src"]).stderr, lacks);
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    if !require_program("script") {
        return;
    }
    let spot = folder();
    let failing = || cp().args(["src", "full"]).within(&spot);
    assert!(!failing().fails(1).stderr.contains('\x1b'));
    let coloured = failing().env("NO_COLOR", "").on_a_terminal().ends(1);
    assert!(coloured.stdout.contains("\x1b[") && coloured.stdout.contains("already exists"), "{:?}", coloured.stdout);
    let plain = failing().env("NO_COLOR", "1").on_a_terminal().ends(1);
    assert!(!plain.stdout.contains('\x1b') && plain.stdout.contains("already exists"), "{:?}", plain.stdout);
    let usage = cp().arg("--nonsense").within(&spot).env("NO_COLOR", "1").on_a_terminal().ends(2);
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
    let ran = calve::<&str>([]).ends(2);
    assert_eq!(ran.stdout, "");
}

#[test]
fn a_closed_stderr_or_stdout_harms_no_file() {
    for redirections in ["2>&-", "1>&-", "1>&- 2>&-", "0<&-", "0<&- 1>&- 2>&-"] {
        let spot = folder();
        let before = fingerprint(spot.join("src"));
        cp().args(["src", "new"]).within(&spot).in_shell("", redirections).ends(0);
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
    let ran = cp().args(["--json", "src", "new"]).within(&spot).in_shell("", ">/dev/full").ends(1);
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
        (&["missing/", "new"], &["`missing/` does not exist"]),
        (&["missing/src", "new"], &["`missing/src` does not exist"]),
        (&["src", "nowhere/new"], &["`nowhere` does not exist", "mkdir -p nowhere"]),
        (&["src", "not/there/new"], &["the parent directory `not/there` does not exist", "mkdir -p not/there"]),
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
