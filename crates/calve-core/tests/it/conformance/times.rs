//! Modification times that the destination's file system cannot hold: the receipt says so, and verification expects what it can hold.

use std::path::Path;

use calve_core::report::WarningCode;
use calve_core::{CloneReport, Strategy};
use calve_testkit::{Aspect, FileSystem, Tree, Volume, assert_same, assert_same_except};
use rustix::fs::Stat;

use crate::cloning::{clone_with, verified};

/// A second after January 2038, and one before 1901.
const FAR: [i64; 2] = [2_200_000_000, -2_200_000_000];

/// An ext4 with whole seconds until 2038, and an XFS with nanoseconds until then.
fn limited() -> [Option<Volume>; 2] {
    [(FileSystem::Ext4, ["-I", "128"]), (FileSystem::Xfs, ["-m", "bigtime=0"])]
        .map(|(file_system, mkfs)| Volume::builder(file_system).mkfs_args(mkfs).mount())
}

fn copied(src: &Path, dst: &Path) -> CloneReport {
    let report = clone_with(&verified(Strategy::Copy), src, dst);
    assert_same_except(src, dst, &[Aspect::Times]);
    report
}

/// The number of entries that lost their times, as the receipt has it.
fn lost(report: &CloneReport) -> Option<(&str, &Path)> {
    let mut told = report.warnings.iter().filter(|warning| warning.code == WarningCode::TimesNotKept);
    let first = told.next()?;
    assert!(told.next().is_none() && report.warnings.len() == 1, "{:?}", report.warnings);
    let message = first.message.strip_prefix("exact modification time not kept on ").unwrap();
    Some((message.split(':').next().unwrap(), first.path.as_deref().unwrap()))
}

fn seconds(path: &Path) -> (i64, i64) {
    let Stat { st_mtime, st_mtime_nsec, .. } = rustix::fs::lstat(path).unwrap();
    (st_mtime, i64::try_from(st_mtime_nsec).unwrap())
}

#[test]
fn times_that_cannot_be_held_are_told() {
    let Some(from) = Volume::new(FileSystem::Tmpfs) else { return };
    let src = from.path().join("src");
    let tree = Tree::new(&src).file("fine", "1").file("far/late", "2").symlink("far/link", "late").dir("far/early");
    let tree = tree.mtime("fine", 1_600_000_000, 123_456_789).mtime("far/late", FAR[0], 0);
    tree.mtime("far/link", FAR[0], 0).mtime("far/early", FAR[1], 0).mtime("far", 1_600_000_000, 0).mtime("", 1, 0);
    for (volume, [count, nanoseconds]) in limited().into_iter().zip([["4 entries", "0"], ["3 entries", "123456789"]]) {
        let Some(volume) = volume else { return };
        let dst = volume.path().join("dst");
        assert_eq!(lost(&copied(&src, &dst)).map(|(count, _)| count), Some(count));
        assert_eq!(seconds(&dst.join("fine")), (1_600_000_000, nanoseconds.parse().unwrap()));
        assert_eq!(seconds(&dst.join("far/late")), (i32::MAX.into(), 0));
        assert_eq!(seconds(&dst.join("far/early")), (i32::MIN.into(), 0));
    }
}

#[test]
fn times_that_can_be_held_are_kept() {
    let Some(from) = Volume::new(FileSystem::Tmpfs) else { return };
    let src = from.path().join("src");
    let tree = Tree::new(&src).file("a", "1").dir("b").symlink("c", "a");
    tree.mtime("a", i64::from(i32::MAX) - 1, 0).mtime("b", -5, 0).mtime("c", 0, 0).mtime("", 7, 0);
    for volume in limited() {
        let Some(volume) = volume else { return };
        assert_eq!(lost(&copied(&src, &volume.path().join("dst"))), None);
        assert_same(&src, volume.path().join("dst"));
    }
}

/// The root of the source, and a source that is one file.
#[test]
fn roots_have_times_too() {
    let Some(from) = Volume::new(FileSystem::Tmpfs) else { return };
    let [src, file] = ["src", "src/file"].map(|name| from.path().join(name));
    Tree::new(&src).file("file", "1").mtime("file", FAR[0], 0).mtime("", FAR[0], 0);
    let [_, Some(volume)] = limited() else { return };
    assert_eq!(lost(&copied(&src, &volume.path().join("dst"))).unwrap().0, "2 entries");
    let one = clone_with(&verified(Strategy::Copy), &file, volume.path().join("one"));
    assert_eq!(lost(&one).unwrap().0, "one entry");
}
