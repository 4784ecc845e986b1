//! The receipt: its shape is a promise to programs.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use calve_testkit::{FileSystem, Tree, assert_same, everything, git};
use serde_json::{Value, json};

use super::subvolume;
use crate::program::{cp, keys};
use crate::spot::{Spot, nothing_left};

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
    // A path that is not UTF-8 is given in base 64.
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

#[test]
fn a_copy_of_a_linked_worktree_comes_with_a_warning() {
    let spot = Spot::anywhere();
    spot.tree("main").file("a", b"1");
    for arguments in [
        &["init", "-q"][..],
        &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "one"],
        &["worktree", "add", "-q", "../linked"],
    ] {
        git(spot.join("main"), arguments);
    }
    let warning = "git commands in a copy of a linked worktree change the index and HEAD of the original";
    cp().args(["-n", "linked", "copy"]).within(&spot).succeeds().says(&[warning, "`calve worktree add`"]);
    for arguments in [&["linked", "copy"][..], &["-q", "linked", "quiet"]] {
        cp().args(arguments).within(&spot).succeeds().says(&[warning]);
    }
    for arguments in [&["main", "other"][..], &["--exclude", ".git", "linked", "without"]] {
        let ran = cp().args(arguments).within(&spot).succeeds();
        assert!(!ran.stderr.contains(warning), "{arguments:?}: {}", ran.stderr);
    }
}
