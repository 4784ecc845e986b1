//! btrfs subvolumes are deleted as such, by a call whose cost does not grow with them.

use calve_core::RemoveOptions;
use calve_testkit::{FileSystem, Tree, UnprivilegedUser, Volume, wide};

use super::{reap_in, remove, waiting};
use crate::child;
use crate::cloning::{assert_holds, run, subvolume};

fn subvolumes(volume: &Volume) -> usize {
    run("btrfs", |btrfs| btrfs.args(["subvolume", "list"]).arg(volume.path())).lines().count()
}

fn snapshot(volume: &Volume, read_only: bool, of: &str, at: &str) {
    let (of, at) = (volume.path().join(of), volume.path().join(at));
    run("btrfs", |btrfs| btrfs.args(["-q", "subvolume", "snapshot"]).args(read_only.then_some("-r")).args([of, at]));
}

#[test]
#[cfg_attr(like_macos, ignore = "macOS has no subvolumes")]
fn subvolumes_nested_and_read_only_ones_too_are_deleted() {
    let Some(volume) = Volume::new(FileSystem::Btrfs) else { return };
    for wait in [true, false] {
        let [tree, outer, ordinary] = ["tree", "outer", "ordinary"].map(|name| volume.path().join(name));
        subvolume(&tree);
        wide(tree.join("many"), 500);
        Tree::new(&tree).dir("a/b");
        subvolume(tree.join("a/b/nested one"));
        Tree::new(&tree).file("a/b/nested one/deep/er/file", "1");
        subvolume(tree.join("a/b/nested one/deep/er/nested two"));
        snapshot(&volume, true, "tree", "tree/a/read-only");
        snapshot(&volume, true, "tree", "read-only");
        // A read-only one goes with the subvolume in it, and a subvolume with the ordinary tree that it is in.
        for root in [&outer, &ordinary] {
            if root == &outer {
                subvolume(root);
            }
            Tree::new(root).file("a/file", "1");
            subvolume(root.join("a/inner"));
            wide(root.join("a/inner/many"), 300);
        }
        run("btrfs", |btrfs| btrfs.args(["property", "set"]).arg(&outer).args(["ro", "true"]));
        assert!(subvolumes(&volume) >= 8);
        for name in ["tree", "read-only", "outer", "ordinary"] {
            let report = remove(volume.path().join(name), &if wait { waiting() } else { RemoveOptions::default() });
            let most = if name == "ordinary" { 50 } else { 100 };
            assert!(!wait || report.deleted < most, "entry by entry: {report:?}");
        }
        let reaped = reap_in(volume.path());
        assert!(reaped.failure.is_none(), "{reaped:?}");
        assert_holds(volume.path(), &[]);
        assert_eq!(subvolumes(&volume), 0);
    }
}

#[test]
#[cfg_attr(like_macos, ignore = "macOS has no subvolumes")]
fn an_owner_without_privileges_empties_and_removes_their_own() {
    if let Some(directory) = child::directory() {
        let directory = directory.join("theirs");
        subvolume(directory.join("tree"));
        Tree::new(directory.join("tree")).file("a/b/file", "1").mode("a/b", 0o500);
        subvolume(directory.join("tree/a/inner"));
        Tree::new(directory.join("tree")).file("a/inner/file", "1");
        run("btrfs", |btrfs| btrfs.args(["property", "set"]).arg(directory.join("tree")).args(["ro", "true"]));
        remove(directory.join("tree"), &waiting());
        assert_holds(&directory, &[]);
        return;
    }
    for builder in
        [Volume::builder(FileSystem::Btrfs), Volume::builder(FileSystem::Btrfs).mount_option("user_subvol_rm_allowed")]
    {
        let Some(volume) = builder.mount() else { return };
        Tree::new(volume.path()).dir("theirs").owner("theirs", UnprivilegedUser::UID, UnprivilegedUser::GID);
        let name = "remove::subvolumes::an_owner_without_privileges_empties_and_removes_their_own";
        child::run_copied(name, &volume, volume.path(), |program| UnprivilegedUser::command(program));
        assert_eq!(subvolumes(&volume), 0);
    }
}
