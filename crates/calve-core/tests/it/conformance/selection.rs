//! Exclusions, and mounts below.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use calve_core::{Error, Mounts, Strategy};
use calve_testkit::{Aspect, FileSystem, Tree, Volume, assert_same_except, fingerprint};

use crate::cloning::{assert_holds, clone, clone_with, names_in, only, options, refused, source_for};

fn excluding(patterns: &[&str]) -> calve_core::CloneOptions {
    options(|options| options.exclude = patterns.iter().map(|pattern| (*pattern).to_owned()).collect())
}

#[test]
fn excluded_entries_are_left_out_and_told() {
    for file_system in FileSystem::ALL {
        let Some(volume) = Volume::new(file_system) else { return };
        let src = source_for(Strategy::Snapshot, &volume, "src");
        Tree::new(&src)
            .file("keep.txt", "1")
            .file("drop.log", "2")
            .file("sub/drop.log", "3")
            .file("sub/keep.txt", "4")
            .file("target/huge", "5")
            .file("sub/target/kept", "6")
            .file("sub/cache/dropped", "7")
            .file("cache", "8")
            .socket("sub/socket");
        let before = fingerprint(&src);
        let mut options = excluding(&["*.log", "/target", "cache/"]);
        options.verify = calve_core::CloneVerification::Contents;
        let report = clone_with(&options, &src, volume.path().join("dst"));
        assert_ne!(report.strategy, Strategy::Snapshot, "a snapshot has everything");
        let skipped: Vec<(PathBuf, &str)> =
            report.skipped.iter().map(|entry| (entry.path.clone(), entry.reason.text())).collect();
        let expected = [
            ("drop.log", "excluded"),
            ("sub/cache", "excluded"),
            ("sub/drop.log", "excluded"),
            ("sub/socket", "socket"),
            ("target", "excluded"),
        ];
        assert_eq!(skipped, expected.map(|(path, reason)| (PathBuf::from(path), reason)));
        assert_holds(volume.path().join("dst"), &["keep.txt", "cache", "sub"]);
        assert_holds(volume.path().join("dst/sub"), &["keep.txt", "target"]);
        before.assert_unchanged(&src);
    }
}

#[test]
#[cfg_attr(target_os = "macos", ignore = "APFS and HFS+ refuse names that are not UTF-8")]
fn a_later_pattern_takes_back_what_an_earlier_one_left_out() {
    let Some(volume) = Volume::new(FileSystem::Tmpfs) else { return };
    let not_utf8 = |ending: &str| OsString::from_vec([b"\xff", ending.as_bytes()].concat());
    let src = Tree::new(volume.path().join("src"))
        .file("a.log", "1")
        .file("keep.log", "2")
        .file("sub/keep.log", "3")
        .file("sub/b.log", "4")
        .file("out/keep.log", "5")
        .file(not_utf8(".log"), "6")
        .file(not_utf8("-keep.log"), "7");
    clone_with(&excluding(&["*.log", "out/", "!*keep.log"]), src.path(), volume.path().join("dst"));
    assert_holds(volume.path().join("dst/sub"), &["keep.log"]);
    let mut found: Vec<_> =
        fs_err::read_dir(volume.path().join("dst")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    found.sort();
    assert_eq!(found, [OsString::from("keep.log"), "sub".into(), not_utf8("-keep.log")]);
    // What comes last decides.
    clone_with(&excluding(&["!keep.log", "*.log"]), src.path(), volume.path().join("other"));
    assert_holds(volume.path().join("other"), &["out", "sub"]);
}

#[test]
fn a_pattern_that_means_nothing_is_refused() {
    let Some(volume) = Volume::new(FileSystem::Tmpfs) else { return };
    Tree::new(volume.path().join("src")).file("a", "1");
    for pattern in ["[", "/", "", "!", "#x"] {
        let error = refused(&excluding(&[pattern]), volume.path().join("src"), volume.path().join("dst"));
        assert!(matches!(&error, Error::Pattern { pattern: named, .. } if named == pattern), "{pattern}: {error}");
        assert!(error.remedy().is_some());
    }
    assert_holds(volume.path(), &["src"]);
}

fn with_a_mount(strategy: Strategy, file_system: FileSystem) -> Option<(Volume, Volume, PathBuf)> {
    let (volume, other) = (Volume::new(file_system)?, Volume::new(FileSystem::Tmpfs)?);
    let src = source_for(strategy, &volume, "src");
    Tree::new(&src).file("file", "1").file("sub/file", "2").file("sub/point/hidden by the mount", "3");
    Tree::new(other.path()).file("mounted/file", "4").mode("mounted", 0o750).file("file", "5");
    Some((volume, other, src))
}

#[test]
#[cfg_attr(target_os = "macos", ignore = "macOS has no bind mounts")]
fn what_is_mounted_below_is_read_or_on_one_file_system_an_empty_directory_and_told() {
    for file_system in FileSystem::ALL {
        let Some((volume, other, src)) = with_a_mount(Strategy::Copy, file_system) else { return };
        let mount = volume.bind(other.path(), "src/sub/point");
        let report = clone(&src, volume.path().join("dst"));
        assert_same_except(&src, volume.path().join("dst"), &[]);
        assert!(report.skipped.is_empty());
        let mut stay = options(|options| options.mounts = Mounts::Stay);
        stay.verify = calve_core::CloneVerification::Contents;
        let report = clone_with(&stay, &src, volume.path().join("alone"));
        drop(mount);
        assert_eq!(names_in(volume.path().join("dst/sub/point")), ["file", "mounted"]);
        assert_eq!(names_in(volume.path().join("alone/sub/point")), Vec::<String>::new());
        assert_eq!(names_in(volume.path().join("alone/sub")), ["file", "point"]);
        let skipped: Vec<&Path> = report.skipped.iter().map(|entry| entry.path.as_path()).collect();
        assert_eq!(skipped, [Path::new("sub/point")]);
    }
}

#[test]
#[cfg_attr(any(target_os = "macos", like_macos), ignore = "macOS has no subvolumes")]
fn a_tree_with_a_mount_is_not_snapshotted() {
    let Some((volume, other, src)) = with_a_mount(Strategy::Snapshot, FileSystem::Btrfs) else { return };
    let mount = volume.bind(other.path(), "src/sub/point");
    let error = refused(&only(Strategy::Snapshot), &src, volume.path().join("dst"));
    let Error::RequirementRefused { refused, .. } = &error else { panic!("{error}") };
    assert!(refused[0].reason.contains("point"), "{error}");
    assert_holds(volume.path(), &["src"]);
    let report = clone(&src, volume.path().join("dst"));
    assert_eq!((report.strategy, report.refused[0].strategy), (Strategy::Reflink, Strategy::Snapshot));
    assert_same_except(&src, volume.path().join("dst"), &[Aspect::Sockets]);
    drop(mount);
}

#[test]
#[cfg_attr(target_os = "macos", ignore = "macOS has no bind mounts")]
fn a_mounted_source_can_be_cloned_to_a_place_outside() {
    let (Some(volume), Some(other)) = (Volume::new(FileSystem::Btrfs), Volume::new(FileSystem::Xfs)) else { return };
    Tree::new(other.path()).file("file", "1");
    let mount = volume.bind(other.path(), "mounted");
    clone(mount.path(), volume.path().join("dst"));
    assert_same_except(mount.path(), volume.path().join("dst"), &[]);
    drop(mount);
}
