//! On a file system by FUSE, which can do little, and of which a file cannot be read.

use calve_core::error::Operation;
use calve_core::{CloneOptions, Error, Strategy};
use calve_testkit::{Aspect, FileSystem, FuseVolume, SplitMix64, Tree, Volume, assert_same_except};
use rustix::io::Errno;

use super::races::two_trees_and_two_files_race;
use crate::cloning::{assert_errno, assert_holds, clone, clone_with, names_in, only, options, refused, replacing};

#[test]
fn a_file_that_cannot_be_read_is_named_and_nothing_is_left() {
    let Some(volume) = FuseVolume::with_unreadable("broken") else { return };
    let Some(elsewhere) = Volume::new(FileSystem::Ext4) else { return };
    Tree::new(volume.path().join("src")).file("fine", "1").file("deep/er/broken", "2").file("zz/fine", "3");
    for directory in [volume.path(), elsewhere.path()] {
        let error = refused(&CloneOptions::default(), volume.path().join("src"), directory.join("dst"));
        assert_errno(&error, Errno::IO);
        let broken = volume.path().join("src/deep/er/broken");
        assert!(matches!(&error, Error::Io { operation: Operation::Read, path, .. } if *path == broken), "{error}");
        assert!(error.remedy().is_some());
    }
    assert_holds(elsewhere.path(), &[]);
    assert_holds(volume.path(), &["src"]);
    let leaving_out = options(|options| options.exclude = vec!["broken".into()]);
    clone_with(&leaving_out, volume.path().join("src"), elsewhere.path().join("dst"));
}

#[test]
fn a_file_system_without_rename_noreplace_xattrs_and_holes_will_do() {
    let Some(volume) = FuseVolume::new() else { return };
    let tree = Tree::new(volume.path().join("src"))
        .file("a/file", SplitMix64::new(7).bytes(300_000))
        .hard_link("a/second", "a/file")
        .symlink("link", "a/file")
        .fifo("pipe")
        .mode("a/file", 0o751)
        .mtime("a/file", 1_000_000_000, 123_456_789)
        .mtime("a", 1_000_000_001, 7);
    let dst = volume.path().join("dst");
    let report = clone(tree.path(), &dst);
    assert_eq!(report.strategy, Strategy::Copy);
    assert_same_except(tree.path(), &dst, &[Aspect::Xattrs, Aspect::Holes]);
    clone(tree.path().join("a/file"), volume.path().join("single"));
    assert_holds(volume.path(), &["src", "dst", "single"]);
    let error = refused(&only(Strategy::Reflink), tree.path(), volume.path().join("no"));
    assert!(matches!(error, Error::RequirementRefused { .. }), "{error}");
    assert_holds(volume.path(), &["src", "dst", "single"]);
}

#[test]
fn exactly_one_wins_without_rename_noreplace() {
    let Some(volume) = FuseVolume::new() else { return };
    two_trees_and_two_files_race(volume.path(), 60, &[Aspect::Xattrs, Aspect::Holes]);
}

#[test]
fn where_names_cannot_be_exchanged_nothing_is_replaced() {
    let Some(volume) = FuseVolume::new() else { return };
    let [src, dst] = ["src", "dst"].map(|name| volume.path().join(name));
    Tree::new(&src).file("new", "new");
    Tree::new(&dst).file("old", "old");
    let error = refused(&replacing(), &src, &dst);
    assert!(matches!(&error, Error::ReplaceUnsupported(path) if *path == dst), "{error}");
    assert_eq!(names_in(&dst), ["old"]);
    assert_holds(volume.path(), &["src", "dst"]);
}
