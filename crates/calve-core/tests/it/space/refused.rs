//! What the kernel does not share is left alone, and it is said why.

use std::path::Path;
use std::process::Command;

use calve_core::Error;
use calve_core::space::DedupeReport;
use calve_testkit::{BindMount, FileSystem, SplitMix64, Tree, Volume, fingerprint, require_program, skip};
use fs_err as fs;

use super::{dry, plain, share, share_with, usage, volumes};
use crate::cloning::run;

#[track_caller]
fn left_alone(report: &DedupeReport, words: &str) {
    assert!(report.left_alone.iter().any(|left| left.reason.to_string().contains(words)), "no {words:?} in {report:?}");
}

/// Swaps to a file for as long as it lives.
struct Swap<'a>(&'a Path);

impl<'a> Swap<'a> {
    fn on(file: &'a Path) -> Option<Self> {
        let output = Command::new("swapon").arg(file).output().unwrap();
        if !output.status.success() {
            skip(&format!("swapon: {}", String::from_utf8_lossy(&output.stderr)));
            return None;
        }
        Some(Self(file))
    }
}

impl Drop for Swap<'_> {
    fn drop(&mut self) {
        run("swapoff", |command| command.arg(self.0));
    }
}

#[test]
fn swap_files_are_left_alone() {
    if !require_program("swapon") {
        return;
    }
    for volume in volumes() {
        let root = volume.path().join("tree");
        Tree::new(&root).file("a", "").file("b", "").mode("a", 0o600).mode("b", 0o600);
        if volume.file_system() == FileSystem::Btrfs {
            // A file to swap to may not be copied on write, and the two have to agree.
            run("chattr", |command| command.arg("+C").args([root.join("a"), root.join("b")]));
        }
        fs::write(root.join("a"), vec![0; 1 << 20]).unwrap();
        run("mkswap", |command| command.arg(root.join("a")));
        fs::write(root.join("b"), fs::read(root.join("a")).unwrap()).unwrap();
        volume.settle();
        let before = fingerprint(&root);
        {
            let file = root.join("a");
            let Some(_swap) = Swap::on(&file) else { return };
            left_alone(&share_with(&root.join("b"), &root.join("a")), "in use as swap");
            left_alone(&share(&[&root]), "in use as swap");
        }
        before.assert_unchanged(&root);
        assert_eq!(share(&[&root]).shared.files, 1, "nobody swaps to it any more");
    }
}

#[test]
fn files_that_differ_in_copy_on_write_are_left_alone() {
    let Some(volume) = Volume::new(FileSystem::Btrfs) else { return };
    let content = SplitMix64::new(1).bytes(100_000);
    let [a, b] = ["a", "b"].map(|name| volume.path().join(name));
    Tree::new(&a).file("x", &content);
    Tree::new(&b).file("x", "");
    run("chattr", |command| command.arg("+C").arg(b.join("x")));
    fs::write(b.join("x"), &content).unwrap();
    volume.settle();
    let before = fingerprint(volume.path());
    left_alone(&share(&[&a, &b]), "copy-on-write turned off");
    left_alone(&share_with(&a, &b), "copy-on-write turned off");
    before.assert_unchanged(volume.path());
}

#[test]
fn a_file_without_copy_on_write_does_not_keep_the_others_of_its_set_apart() {
    let Some(volume) = Volume::new(FileSystem::Btrfs) else { return };
    let content = SplitMix64::new(1).bytes(100_000);
    let root = volume.path().join("t");
    // Two without, three with copy-on-write, whichever comes first; and one without, alone.
    Tree::new(&root).file("1", "").file("3", "").file("alone", "");
    run("chattr", |command| command.arg("+C").args(["1", "3", "alone"].map(|name| root.join(name))));
    for name in ["1", "2", "3", "4", "5"] {
        fs::write(root.join(name), &content).unwrap();
    }
    let other = SplitMix64::new(2).bytes(100_000);
    fs::write(root.join("alone"), &other).unwrap();
    fs::write(root.join("partner"), &other).unwrap();
    volume.settle();
    let before = fingerprint(&root);
    for options in [dry(), plain()] {
        let report = calve_core::space::dedupe(&[&root], &options).unwrap();
        assert_eq!((report.shared.files, report.groups), (3, 2), "{report:?}");
        left_alone(&report, "copy-on-write turned off");
    }
    before.assert_unchanged(&root);
    assert_eq!(share(&[&root]).shared.files, 0, "nothing is left to share");
}

#[test]
fn with_trees_to_share_with_each_file_is_shared_with_one_of_its_kind() {
    let Some(volume) = Volume::new(FileSystem::Btrfs) else { return };
    let content = SplitMix64::new(1).bytes(100_000);
    let [kept, mine] = ["kept", "mine"].map(|name| volume.path().join(name));
    Tree::new(&kept).file("1", "").file("2", "");
    Tree::new(&mine).file("1", "").file("2", "").file("3", "");
    run("chattr", |command| command.arg("+C").args([kept.join("2"), mine.join("1"), mine.join("3")]));
    for file in [kept.join("1"), kept.join("2"), mine.join("1"), mine.join("2"), mine.join("3")] {
        fs::write(file, &content).unwrap();
    }
    volume.settle();
    let report = share_with(&kept, &mine);
    assert_eq!((report.shared.files, report.left_alone.len()), (3, 0), "{report:?}");
    // Without one of their kind they are not shared with each other either.
    fs::remove_file(kept.join("2")).unwrap();
    for name in ["1", "3"] {
        let file = mine.join(name);
        fs::remove_file(&file).unwrap();
        fs::write(&file, "").unwrap();
        run("chattr", |command| command.arg("+C").arg(&file));
        fs::write(&file, &content).unwrap();
    }
    volume.settle();
    let report = share_with(&kept, &mine);
    assert_eq!(report.shared.files, 0, "{report:?}");
    assert_eq!(report.left_alone.iter().map(|left| left.files).sum::<u64>(), 2, "{report:?}");
}

#[test]
fn elsewhere_it_is_refused_with_what_would_help() {
    let xfs = || Volume::builder(FileSystem::Xfs).mkfs_args(["-m", "reflink=0"]).mount();
    let content = SplitMix64::new(1).bytes(1 << 20);
    for volume in [Volume::new(FileSystem::Ext4), Volume::new(FileSystem::Tmpfs), xfs()] {
        let Some(volume) = volume else { return };
        let tree = Tree::new(volume.path().join("t")).file("a", &content).file("b", &content);
        volume.settle();
        let error = calve_core::space::dedupe(&[volume.path()], &plain()).unwrap_err();
        assert!(matches!(error, Error::NoDedupe { .. }), "{error}");
        assert_eq!(error.remedy(), Some(calve_core::error::Remedy::MoveToSharingFileSystem));
        if volume.file_system() == FileSystem::Xfs {
            // The figures of one without reflinks are exact.
            let found = usage(&[tree.path()]).total;
            let shared = (found.shared_within, found.shared_outside_max);
            assert_eq!((found.exclusive, shared), (found.allocated, (0, 0)), "{found:?}");
        }
    }
}

#[test]
fn files_on_another_file_system_are_left_alone_and_the_first_is_named() {
    for volume in volumes() {
        let Some(other) = Volume::new(FileSystem::Ext4) else { return };
        let content = SplitMix64::new(1).bytes(100_000);
        Tree::new(volume.path().join("t")).file("a", &content).dir("below");
        Tree::new(other.path()).file("b", &content).file("c", &content);
        let _mounted = BindMount::new(other.path(), volume.path().join("t/below"));
        let report = share(&[&volume.path().join("t")]);
        left_alone(&report, "on a file system that cannot share");
        let left = &report.left_alone[0];
        assert_eq!((left.files, left.first_path.parent()), (2, Some(&*volume.path().join("t/below"))), "{report:?}");
    }
}

#[test]
fn a_file_system_that_became_read_only_is_left_alone() {
    for volume in volumes() {
        let content = SplitMix64::new(1).bytes(100_000);
        Tree::new(volume.path().join("t")).file("a", &content).file("b", &content);
        volume.settle();
        volume.remount_read_only();
        for options in [dry(), plain()] {
            let report = calve_core::space::dedupe(&[volume.path().join("t")], &options).unwrap();
            left_alone(&report, "read-only");
            assert_eq!((report.shared.files, report.shared.bytes), (0, 0), "{report:?}");
        }
    }
}
