//! Whatever is done to a tree shows in its fingerprint; reading it does not.

use calve_testkit::{Tree, fingerprint};
use std::path::Path;

use crate::scratch;

fn plant() -> tempfile::TempDir {
    let dir = scratch();
    Tree::new(dir.path())
        .file("dir/file", b"contents")
        .symlink("dir/symlink", "file")
        .fifo("fifo")
        .mtime("dir/file", 5, 5);
    dir
}

#[track_caller]
fn shows(change: impl Fn(&Path), words: &str) {
    let dir = plant();
    let before = fingerprint(dir.path());
    change(dir.path());
    let after = fingerprint(dir.path());
    let changes = before.changes(&after).join("\n");
    assert!(changes.contains(words), "expected `{words}`: {changes}");
}

#[test]
fn reading_leaves_it_the_same() {
    let dir = plant();
    let before = fingerprint(dir.path());
    fs_err::read(dir.path().join("dir/file")).unwrap();
    before.assert_unchanged(dir.path());
}

#[test]
fn a_write_that_restores_everything_a_replaced_file_and_a_hard_link_from_outside_show() {
    let rewrite = |dir: &Path| {
        Tree::new(dir).file("dir/file", b"contents").mtime("dir/file", 5, 5);
    };
    shows(rewrite, "`dir/file`: ctime");
    let replace = |dir: &Path| {
        Tree::new(dir).file("new", b"contents").mtime("new", 5, 5);
        fs_err::rename(dir.join("new"), dir.join("dir/file")).unwrap();
    };
    shows(replace, "device and inode");
    let outside = scratch();
    let link = |dir: &Path| fs_err::hard_link(dir.join("dir/file"), outside.path().join("link")).unwrap();
    shows(link, "links 1 became 2");
}

#[test]
fn what_is_new_or_gone_shows() {
    shows(|dir| drop(Tree::new(dir).file("dir/a new one", b"")), "`dir/a new one`: new");
    shows(|dir| fs_err::remove_file(dir.join("fifo")).unwrap(), "`fifo`: gone");
    shows(
        |dir| {
            fs_err::remove_file(dir.join("dir/file")).unwrap();
            fs_err::create_dir(dir.join("created and removed")).unwrap();
            fs_err::remove_dir(dir.join("created and removed")).unwrap();
        },
        "`.`: mtime",
    );
}

#[test]
#[should_panic(expected = "mode 0644 became 0600")]
fn the_panic_names_what_was_changed() {
    let dir = plant();
    let before = fingerprint(dir.path());
    Tree::new(dir.path()).mode("dir/file", 0o600);
    before.assert_unchanged(dir.path());
}
