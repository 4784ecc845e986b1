//! `calve run` with several directories.

use std::process::Command;

use calve_testkit::{Aspect, assert_same_except, fingerprint, git, require_program};

use super::{Value, left, place, run};
use crate::spot::{Spot, eventually};

/// The place, and another tree in it.
fn two() -> Option<Spot> {
    let spot = place(Spot::anywhere())?;
    spot.tree("other").file("o", b"o\n").file("p/q", b"q");
    Some(spot)
}

const TREES: &[&str] = &["--tree", ".", "--tree", "../other"];

fn with<'a>(options: &[&'a str]) -> Vec<&'a str> {
    [TREES, options].concat()
}

#[test]
fn each_has_a_copy_of_its_own() {
    let Some(spot) = two() else { return };
    let before = [fingerprint(spot.join("tree")), fingerprint(spot.join("other"))];
    let script = "echo 2 > a; echo 2 > ../other/o; rm ../other/p/q; cat a ../other/o";
    let ran = run(&spot, TREES, script).succeeds();
    assert_eq!(ran.stdout, "2\n2\n");
    ran.says(&["2 files changed, 0 new, 1 deleted"]);
    before[0].assert_unchanged(spot.join("tree"));
    before[1].assert_unchanged(spot.join("other"));
    let document = run(&spot, &with(&["--json"]), script).succeeds().json();
    let told = |number: usize| {
        let tree = &document["trees"][number];
        let paths = tree["entries"].as_array().unwrap().iter().map(|entry| entry["path"].as_str().unwrap());
        (tree["tree"].as_str().unwrap().to_owned(), paths.collect::<Vec<_>>().join(" "))
    };
    let path = |name: &str| spot.join(name).display().to_string();
    assert_eq!([told(0), told(1)], [(path("tree"), "a".into()), (path("other"), "o p/q".into())]);
    assert_eq!(document["trees"].as_array().map(Vec::len), Some(2));
    assert_eq!(document["kept"], Value::Null);
    // The patch is for the directory that has both.
    let patch = run(&spot, &with(&["--diff"]), script).succeeds().stdout;
    fs_err::write(spot.join("patch"), &patch).unwrap();
    git(&*spot, ["apply", "--whitespace=nowarn", "patch"]);
    assert_eq!(fs_err::read_to_string(spot.join("other/o")).unwrap(), "2\n", "{patch}");
    assert!(!spot.join("other/p/q").exists());
    assert_eq!(left(&spot), [""; 0]);
}

#[test]
fn all_take_the_changes_or_none() {
    let Some(spot) = two() else { return };
    let ran = run(&spot, &with(&["--apply"]), "echo 2 > a; echo 3 > ../other/o; mkdir ../other/n").succeeds();
    ran.says(&["applied: 2 files changed, 0 new, 0 deleted; 1 directory"]);
    let read = |path: &str| fs_err::read_to_string(spot.join(path)).unwrap();
    assert_eq!([read("tree/a"), read("other/o")], ["2\n", "3\n"]);
    // Somebody changes the second one meanwhile.
    for tree in ["tree", "other"] {
        let copied = Command::new("cp").args(["-a", tree, &format!("{tree}.before")]).current_dir(&*spot).status();
        assert!(copied.unwrap().success());
    }
    assert!(Command::new("mkfifo").arg(spot.join("end")).status().unwrap().success());
    let script = "echo 4 > a; rm b; echo 5 > ../other/p/q; echo > ../ready; read line < ../end";
    let running = run(&spot, &with(&["--apply", "--json"]), script).start();
    eventually("the command runs", || spot.join("ready").exists());
    for tree in ["other", "other.before"] {
        fs_err::write(spot.join(tree).join("p/q"), "mine").unwrap();
    }
    fs_err::write(spot.join("end"), "\n").unwrap();
    let ran = running.wait();
    ran.ended(3);
    let ran = ran.says(&["other/p/q", "nothing was applied", "tree.run", "other.run"]);
    assert_eq!(ran.hints().json()["remedy"], "merge_changes");
    assert_same_except(spot.join("tree.before"), spot.join("tree"), &[Aspect::Times]);
    assert_same_except(spot.join("other.before"), spot.join("other"), &[Aspect::Times]);
    assert_eq!([read("tree.run/a"), read("other.run/p/q")], ["4\n", "5\n"]);
    assert_eq!(left(&spot), [""; 0]);
}

/// git keeps what is committed in a linked worktree in the main one's `.git`.
#[test]
fn a_linked_worktree_with_its_repository() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    let (tree, linked) = (spot.join("tree"), spot.join("linked"));
    git(&tree, ["init", "-q"]);
    git(&tree, ["add", "a"]);
    let commit = ["-c", "user.name=n", "-c", "user.email=e@example.org", "commit", "-qm"];
    git(&tree, commit.into_iter().chain(["first"]));
    git(&tree, ["worktree", "add", "-q", "../linked"]);
    let script = format!("echo 1 > new; git add new; git {} second; git status --porcelain", commit.join(" "));
    let both = ["--tree", ".", "--tree", "../tree/.git"];
    for (option, head) in [("--discard", "first"), ("--apply", "second")] {
        assert_eq!(run(&spot, &[&both[..], &[option]].concat(), &script).within(&linked).succeeds().stdout, "");
        assert_eq!(git(&linked, ["log", "-1", "--format=%s"]).trim_end(), head);
        assert_eq!(git(&linked, ["status", "--porcelain"]), "");
    }
    git(&tree, ["fsck", "--strict"]);
    assert_eq!(left(&spot), [""; 0]);
}

#[test]
fn what_makes_no_sense_together_is_refused() {
    let Some(spot) = two() else { return };
    run(&spot, &["--tree", ".", "--tree", "sub"], "touch ../ran").fails(2).says(&["is inside"]).hints();
    run(&spot, &["--tree", ".", "--tree", "../tree"], "touch ../ran").fails(2).says(&["is the same"]).hints();
    run(&spot, &with(&["--keep", "../kept"]), "touch ../ran").fails(2).says(&["--keep"]).hints();
    run(&spot, &["--tree", "../other", "--tree", "a"], "touch ../ran").fails(1).hints();
    run(&spot, &["--tree", "../other", "--tree", "../home"], "touch ../ran").fails(3).hints();
    assert_eq!(left(&spot), [""; 0]);
    spot.holds(&["home", "other", "tree"]);
}

#[test]
fn everything_is_copied_before_the_first_entry_is_moved() {
    if !require_program("strace") {
        return;
    }
    let Some(spot) = two() else { return };
    let trace = spot.join("trace");
    let strace = ["strace", "-f", "-qq", "-o", trace.to_str().unwrap(), "-e", "trace=mkdirat,renameat2"];
    run(&spot, &with(&["--apply"]), "echo 2 > a; echo 3 > ../other/o").under(&strace).succeeds();
    let calls = fs_err::read_to_string(trace).unwrap();
    let calls: Vec<_> = calls.lines().collect();
    let staged: Vec<_> = calls.iter().enumerate().filter(|(_, call)| call.contains(", \"new\", 0700")).collect();
    let moved = calls.iter().position(|call| call.contains("renameat2(") && call.contains(", \"a\", ")).unwrap();
    assert!(staged.len() == 2 && staged.iter().all(|(at, _)| *at < moved), "{calls:#?}");
}
