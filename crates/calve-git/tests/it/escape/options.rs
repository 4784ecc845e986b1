//! What an audit can be asked.

use std::path::PathBuf;

use calve_git::escape::{Action, AuditOptions, ReferenceKind};
use calve_testkit::Tree;

use super::{Pair, fixing, outline};

#[test]
fn a_tree_that_is_still_being_made_gets_the_path_that_it_will_have() {
    let pair = Pair::at("main", ".staged");
    pair.file("bin/x", "#!{old}/x\n").file("lib/y", "").link("abs", "{old}/lib/y").link("rel", "../main/lib/y");
    let mut options = fixing();
    options.will_be = Some(pair.folder().join("final"));
    let found = pair.audited(&options);
    assert_eq!(found.findings.len(), 3, "{found:?}");
    let last = pair.folder().join("final");
    assert_eq!(fs_err::read_to_string(pair.new_tree().join("bin/x")).unwrap(), format!("#!{}/x\n", last.display()));
    assert_eq!(fs_err::read_link(pair.new_tree().join("abs")).unwrap(), last.join("lib/y"));
    assert_eq!(fs_err::read_link(pair.new_tree().join("rel")).unwrap(), PathBuf::from("lib/y"));
}

#[test]
fn only_what_is_asked_for_is_looked_at() {
    let pair = Pair::new();
    for path in ["a/bin/x", "b/bin/x", "c/bin/x"] {
        pair.file(path, "#!{old}/x\n");
    }
    pair.link("l", "{old}/a")
        .link("m", "{old}/a")
        .file("node_modules/.cache/x/y", "{old}")
        .file("node_modules/bin/x", "#!{old}/x");
    let mut options = fixing();
    options.scan.below = ["a", "b/bin/x", "l", "not there", "node_modules/.cache/x"].map(PathBuf::from).to_vec();
    let found = pair.audited(&options);
    let expected = [
        (ReferenceKind::Shebang, "a/bin/x", Action::Repaired),
        (ReferenceKind::Shebang, "b/bin/x", Action::Repaired),
        (ReferenceKind::AbsoluteLink, "l", Action::Repaired),
        (ReferenceKind::WebCache, "node_modules/.cache/x", Action::Dropped),
    ];
    assert_eq!(outline(&found.findings), expected);
}

#[test]
fn other_worktrees_must_not_be_named_either() {
    let pair = Pair::new();
    let other = pair.folder().join("other");
    Tree::new(pair.new_tree())
        .file("bin/x", format!("#!{}/x {}/y\n", other.display(), pair.old().display()).as_bytes());
    assert_eq!(pair.audited(&AuditOptions::default()).findings.len(), 1);
    let mut options = fixing();
    options.others = vec![other];
    assert_eq!(pair.audited(&options).findings.len(), 1);
    pair.has("bin/x", "#!{new}/x {new}/y\n");
}

#[test]
fn a_worktree_inside_is_not_looked_into() {
    let pair = Pair::new();
    let inside = pair.new_tree().join(".worktrees/a");
    Tree::new(&inside).file("bin/x", pair.spelled("#!{old}/x\n").as_bytes());
    let mut options = fixing();
    options.others = vec![inside];
    assert_eq!(pair.audited(&options).findings.len(), 0);
}

#[test]
fn every_entry_is_come_across_once() {
    let pair = Pair::new();
    for number in 0..300 {
        pair.file(&format!("d{}/e{}/f{number}", number % 7, number % 13), "");
    }
    let report = pair.audited(&AuditOptions::default());
    // 300 files, 7 directories, and 7 times 13 in them.
    assert_eq!(report.entries, 300 + 7 + 7 * 13);
}
