//! For each aspect, a tree that differs in it alone is reported, and is not reported with the aspect left out.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use calve_testkit::{
    Aspect, Capability, Tree, assert_same, assert_same_except, deep, differences, is_root, remove_deep, require_root,
    rsync_differences,
};
use rustix::fs::FileType;

use crate::{cp_a, scratch};

/// The same small tree twice, with all times equal, for `change` to change the second.
struct Twins {
    _keep: tempfile::TempDir,
    a: PathBuf,
    b: PathBuf,
}

impl Twins {
    fn new(change: impl Fn(Tree) -> Tree) -> Self {
        let keep = scratch();
        let (a, b) = (keep.path().join("a"), keep.path().join("b"));
        settle(plant(&a));
        settle(change(plant(&b)));
        Self { _keep: keep, a, b }
    }

    fn differences(&self, left_out: &[Aspect]) -> Vec<String> {
        differences(&self.a, &self.b, left_out)
    }

    /// One difference, with these words in it, that is gone when the aspect is left out.
    #[track_caller]
    fn differ_only_in(&self, aspect: Aspect, words: &str) {
        let found = self.differences(&[]);
        assert!(found.len() == 1 && found[0].contains(words), "expected one with `{words}`: {found:#?}");
        assert_eq!(self.differences(&[aspect]), [""; 0]);
    }

    /// `rsync` is of the same opinion.
    #[track_caller]
    fn rsync_sees(&self, words: &str) {
        let found = rsync_differences(&self.a, &self.b);
        assert!(found.contains(words), "expected `{words}`: {found}");
    }
}

fn plant(root: &Path) -> Tree {
    Tree::new(root)
        .file("dir/file", b"contents")
        .file("dir/other", b"contents")
        .hard_link("dir/link", "dir/file")
        .symlink("symlink", "dir/file")
        .sparse("sparse", 1 << 20, &[(1 << 19, b"island")])
}

/// Gives everything that is there the same old time, directories last.
fn settle(tree: Tree) {
    let paths = ["dir/file", "dir/other", "dir/link", "symlink", "sparse", "extra", "dir", ""];
    let there = |path: &&str| rustix::fs::lstat(tree.path().join(path)).is_ok();
    let there: Vec<_> = paths.into_iter().filter(there).collect();
    there.into_iter().fold(tree, |tree, path| tree.mtime(path, 1_000_000_000, 1));
}

#[test]
fn twins_are_the_same() {
    let twins = Twins::new(|tree| tree);
    assert_same(&twins.a, &twins.b);
    assert_eq!(rsync_differences(&twins.a, &twins.b), "");
}

#[test]
fn contents_and_hard_links_are_compared_and_the_roots() {
    type Change = fn(Tree) -> Tree;
    let changes: [(Change, Aspect, &str); 7] = [
        (|tree| tree.file("dir/other", b"contenTs"), Aspect::Contents, "`dir/other`: contents differ, first at byte 6"),
        (
            |tree| {
                let file = fs_err::OpenOptions::new().write(true).open(tree.path().join("sparse")).unwrap();
                file.file().write_all_at(b"x", (1 << 20) - 1).unwrap();
                tree
            },
            Aspect::Contents,
            "`sparse`: contents differ, first at byte 1048575",
        ),
        (
            |tree| tree.sparse("sparse", 1 << 20, &[((1 << 19) + 4096, b"island")]),
            Aspect::Contents,
            "`sparse`: contents differ, first at byte 524288",
        ),
        (|tree| tree.file("dir/other", b"contents\0"), Aspect::Contents, "`dir/other`: size 8 became 9"),
        (
            |tree| {
                fs_err::remove_file(tree.path().join("dir/link")).unwrap();
                tree.file("dir/link", b"contents")
            },
            Aspect::HardLinks,
            "`dir/link`: a hard link to `dir/file`, became not a link",
        ),
        (
            |tree| {
                fs_err::remove_file(tree.path().join("dir/other")).unwrap();
                tree.hard_link("dir/other", "dir/file")
            },
            Aspect::HardLinks,
            "`dir/other`: not a link to an earlier name, became a hard link to `dir/file`",
        ),
        (|tree| tree.mode("", 0o700), Aspect::Modes, "`.`: mode 0755 became 0700"),
    ];
    for (change, aspect, words) in changes {
        let twins = Twins::new(change);
        twins.differ_only_in(aspect, words);
        if words.starts_with("`dir/other`: contents") || words.starts_with("`dir/link`") {
            twins.rsync_sees(words.split('`').nth(1).unwrap());
        }
    }
}

#[test]
fn a_missing_and_an_added_entry_are_reported() {
    let twins = Twins::new(|tree| tree.file("extra", b""));
    assert_eq!(twins.differences(&[]), ["`extra`: should not be there"]);
    assert_eq!(differences(&twins.b, &twins.a, &[]), ["`extra`: missing"]);
    twins.rsync_sees("*deleting");
}

#[test]
fn another_kind_is_reported() {
    let twins = Twins::new(|tree| {
        fs_err::remove_file(tree.path().join("symlink")).unwrap();
        tree.file("symlink", b"dir/file")
    });
    let found = twins.differences(&[]);
    assert!(found[0].contains("`symlink`: is a Symlink and became a RegularFile"), "{found:#?}");
}

#[test]
fn modes_are_compared_to_the_last_of_twelve_bits() {
    for (path, mode) in [("dir/other", 0o645), ("dir/other", 0o4644), ("dir/other", 0o2644), ("dir", 0o1755)] {
        let twins = Twins::new(|tree| tree.mode(path, mode));
        twins.differ_only_in(Aspect::Modes, &format!("became {mode:04o}"));
    }
}

#[test]
fn owners_are_compared_of_symlinks_too() {
    if !require_root("another owner") {
        return;
    }
    for path in ["dir/other", "dir", "symlink"] {
        Twins::new(|tree| tree.owner(path, 12345, 0)).differ_only_in(Aspect::Owners, "owner 0:0 became 12345:0");
        Twins::new(|tree| tree.owner(path, 0, 12345)).differ_only_in(Aspect::Owners, "owner 0:0 became 0:12345");
    }
}

#[test]
fn one_nanosecond_is_reported_of_files_directories_symlinks_and_the_root() {
    for path in ["dir/other", "dir", "symlink", "", "sparse"] {
        let twins = Twins::new(|tree| tree);
        Tree::new(&twins.b).mtime(path, 1_000_000_000, 2);
        twins.differ_only_in(Aspect::Times, "mtime 1000000000.000000001 became 1000000000.000000002");
        twins.rsync_sees("t");
    }
}

#[test]
fn xattrs_are_compared_by_name_and_value() {
    let plain = Twins::new(|tree| tree.xattr("dir/other", "user.a", b"1"));
    plain.differ_only_in(Aspect::Xattrs, "xattr \"user.a\" (none) became \"1\"");
    plain.rsync_sees("x");
    let found = differences(&plain.b, &plain.a, &[]);
    assert!(found[0].contains("\"1\" became (none)"), "{found:#?}");
    Tree::new(&plain.a).xattr("dir/other", "user.a", b"");
    plain.differ_only_in(Aspect::Xattrs, "\"\" became \"1\"");
    Twins::new(|tree| tree.xattr("dir", "user.on a directory", b"1")).differ_only_in(Aspect::Xattrs, "on a directory");
    if is_root() {
        let link = Twins::new(|tree| tree.xattr("symlink", "trusted.a", b"1"));
        link.differ_only_in(Aspect::Xattrs, "`symlink`: xattr \"trusted.a\"");
        let capable = Twins::new(|tree| tree.capability("dir/other", Capability::NetRaw));
        capable.differ_only_in(Aspect::Xattrs, "security.capability");
    }
}

#[test]
fn acls_are_compared() {
    // With its mask equal to the group's bits the mode stays what it was.
    let access = Twins::new(|tree| tree.acl("dir/other", "u:12345:r"));
    access.differ_only_in(Aspect::Xattrs, "system.posix_acl_access");
    access.rsync_sees("a");
    Twins::new(|tree| tree.acl("dir", "d:u:12345:r")).differ_only_in(Aspect::Xattrs, "system.posix_acl_default");
}

#[test]
fn a_filled_hole_is_reported() {
    let twins = Twins::new(|tree| tree);
    let file = fs_err::OpenOptions::new().write(true).open(twins.b.join("sparse")).unwrap();
    file.file().write_all_at(&vec![0; 1 << 19], 0).unwrap();
    file.sync_all().unwrap();
    drop(file);
    Tree::new(&twins.b).mtime("sparse", 1_000_000_000, 1);
    twins.differ_only_in(Aspect::Holes, "bytes allocated became");
}

#[test]
fn another_target_is_reported() {
    let twins = Twins::new(|tree| {
        fs_err::remove_file(tree.path().join("symlink")).unwrap();
        tree.symlink("symlink", "dir/./file")
    });
    assert_eq!(twins.differences(&[]), ["`symlink`: target \"dir/file\" became \"dir/./file\""]);
}

#[test]
fn another_device_number_is_reported() {
    if !require_root("a device node") {
        return;
    }
    let twins = Twins::new(|tree| tree.device("extra", FileType::CharacterDevice, 1, 3));
    settle(Tree::new(&twins.a).device("extra", FileType::CharacterDevice, 1, 5));
    twins.differ_only_in(Aspect::Devices, "device (1, 5) became (1, 3)");
}

#[test]
fn a_missing_socket_is_reported_unless_left_out() {
    let twins = Twins::new(|tree| tree.socket("extra"));
    assert_eq!(twins.differences(&[]), ["`extra`: should not be there"]);
    assert_eq!(twins.differences(&[Aspect::Sockets]), [""; 0]);
}

#[test]
fn what_cannot_be_read_is_reported() {
    let Some(volume) = calve_testkit::FuseVolume::with_unreadable("broken") else {
        return;
    };
    let (a, b) = (volume.path().join("a"), volume.path().join("b"));
    for root in [&a, &b] {
        Tree::new(root).file("broken", b"1").mtime("broken", 1, 1).mtime("", 1, 1);
    }
    let found = differences(&a, &b, &[]);
    assert!(found.len() == 1 && found[0].contains("cannot be read in the first tree"), "{found:#?}");
}

#[test]
fn trees_of_two_thousand_levels_are_compared() {
    let keep = scratch();
    let (a, b) = (keep.path().join("a"), keep.path().join("b"));
    deep(&a, 2000);
    deep(&b, 2000);
    assert_same_except(&a, &b, &[Aspect::Times]);
    deep(keep.path().join("c"), 1999);
    let found = differences(&a, &keep.path().join("c"), &[Aspect::Times]);
    assert!(found.iter().any(|line| line.contains("missing")), "{found:#?}");
    for tree in ["a", "b", "c"] {
        remove_deep(keep.path().join(tree));
        assert!(!keep.path().join(tree).exists());
    }
}

#[test]
#[should_panic(expected = "`dir/other`: mode 0644 became 0600")]
fn assert_same_names_the_difference() {
    let twins = Twins::new(|tree| tree.mode("dir/other", 0o600));
    assert_same(&twins.a, &twins.b);
}

#[test]
fn a_good_copy_is_the_same() {
    let twins = Twins::new(|tree| tree);
    let copy = twins.a.with_file_name("copy");
    cp_a(&twins.a, &copy);
    assert_same(&twins.a, &copy);
    assert_eq!(rsync_differences(&twins.a, &copy), "");
}
