//! A user without privileges: everything possible is kept, the rest is in the receipt, and nothing becomes more powerful.

use std::path::Path;

use calve_core::error::Operation;
use calve_core::{CloneOptions, Error, Strategy};
use calve_testkit::{
    Aspect, Capability, FileSystem, Tree, UnprivilegedUser, Volume, assert_same, assert_same_except, everything,
    fingerprint,
};
use rustix::io::Errno;

use crate::child;
use crate::cloning::{assert_errno, assert_holds, clone, clone_with, only, options, refused};
use calve_core::UnreadableEntry;
use calve_core::report::{SkipReason, WarningCode};

/// Each file system, with a directory `theirs` in which an unprivileged child runs the test `name`.
fn as_somebody_else(name: &str, file_systems: &[FileSystem], prepare: impl Fn(&Path)) {
    for file_system in file_systems {
        let Some(volume) = Volume::new(*file_system) else { return };
        Tree::new(volume.path()).dir("theirs").owner("theirs", UnprivilegedUser::UID, UnprivilegedUser::GID);
        prepare(&volume.path().join("theirs"));
        child::run_copied(name, &volume, volume.path().join("theirs"), |program| UnprivilegedUser::command(program));
    }
}

#[test]
fn an_owner_clones_everything_of_their_own() {
    if let Some(directory) = child::directory() {
        let src = directory.join("src");
        everything(&src);
        let before = fingerprint(&src);
        for strategy in [Strategy::Copy, Strategy::Reflink, Strategy::Hardlink] {
            let dst = directory.join(strategy.name());
            match calve_core::clone_tree(&src, &dst, &only(strategy)) {
                Err(Error::RequirementRefused { .. }) => assert_eq!(strategy, Strategy::Reflink),
                Err(error) => panic!("{error}"),
                Ok(report) => {
                    assert!(
                        report.warnings.iter().all(|warning| warning.code == WarningCode::NotIndependent),
                        "{:?}",
                        report.warnings
                    );
                    assert_same(&src, &dst);
                    if strategy != Strategy::Hardlink {
                        before.assert_unchanged(&src);
                    }
                }
            }
        }
        return;
    }
    as_somebody_else("conformance::privileges::an_owner_clones_everything_of_their_own", &FileSystem::ALL, |_| ());
}

#[test]
#[cfg_attr(any(target_os = "macos", like_macos), ignore = "macOS has no file capabilities")]
fn what_only_root_may_keep_is_told_and_set_id_bits_are_dropped() {
    if let Some(directory) = child::directory() {
        for strategy in [None, Some(Strategy::Copy)] {
            let dst = directory.join(strategy.map_or("any", Strategy::name));
            let mut options = strategy.map_or_else(CloneOptions::default, only);
            options.verify = calve_core::CloneVerification::Contents;
            let report = clone_with(&options, directory.join("src"), &dst);
            assert_same_except(
                directory.join("src"),
                &dst,
                &[Aspect::Owners, Aspect::Modes, Aspect::Xattrs, Aspect::Devices],
            );
            let codes: Vec<_> = report.warnings.iter().map(|warning| warning.code).collect();
            for code in [WarningCode::OwnerNotKept, WarningCode::XattrNotKept, WarningCode::SetIdDropped] {
                assert!(codes.contains(&code), "{code} in {codes:?}");
            }
            for (name, expected) in [("setuid", 0o755), ("setgid", 0o755), ("own-setuid", 0o4755), ("plain", 0o644)] {
                let stat = rustix::fs::lstat(dst.join(name)).unwrap();
                assert_eq!(stat.st_mode & 0o7777, expected, "{name}");
                assert_eq!(stat.st_uid, UnprivilegedUser::UID, "{name}");
            }
            let capability = rustix::fs::lgetxattr(dst.join("capable"), "security.capability", &mut [0; 64][..]);
            assert_eq!(capability, Err(Errno::NODATA));
        }
        return;
    }
    let name = "conformance::privileges::what_only_root_may_keep_is_told_and_set_id_bits_are_dropped";
    as_somebody_else(name, &[FileSystem::Ext4, FileSystem::Xfs, FileSystem::Tmpfs], |theirs| {
        Tree::new(theirs.join("src"))
            .file("setuid", "1")
            .mode("setuid", 0o4755)
            .file("setgid", "2")
            .mode("setgid", 0o2755)
            .file("own-setuid", "3")
            .owner("own-setuid", UnprivilegedUser::UID, UnprivilegedUser::GID)
            .mode("own-setuid", 0o4755)
            .file("plain", "4")
            .mode("plain", 0o644)
            .file("capable", "5")
            .mode("capable", 0o755)
            .capability("capable", Capability::NetRaw);
    });
}

#[test]
fn what_cannot_be_read_is_named_and_nothing_is_left_or_left_out_if_that_is_asked_for() {
    if let Some(directory) = child::directory() {
        for (src, path, operation) in [
            ("file", "file/sub/secret", Operation::Open),
            ("directory", "directory/sub/closed", Operation::OpenDirectory),
            ("unsearchable", "unsearchable/sub/file", Operation::Open),
        ] {
            let error = refused(&CloneOptions::default(), directory.join(src), directory.join("dst"));
            assert_errno(&error, Errno::ACCESS);
            let Error::Io { path: named, operation: tried, .. } = &error else { panic!("{error}") };
            assert_eq!((named, *tried), (&directory.join(path), operation), "{error}");
            assert_eq!(error.remedy(), Some(calve_core::error::Remedy::AllowReading));
            assert_holds(&directory, &["file", "directory", "unsearchable", "src"]);
        }
        let leaving_out = options(|options| options.exclude = vec!["secret".into(), "closed/".into()]);
        clone_with(&leaving_out, directory.join("file"), directory.join("a"));
        clone_with(&leaving_out, directory.join("directory"), directory.join("b"));
        let skipping = options(|options| options.unreadable = UnreadableEntry::Skip);
        let report = clone_with(&skipping, directory.join("src"), directory.join("dst"));
        let mut skipped: Vec<_> =
            report.skipped.iter().map(|skip| (skip.path.to_str().unwrap(), &skip.reason)).collect();
        skipped.sort_by_key(|(path, _)| *path);
        assert_eq!(skipped, [("closed", &SkipReason::Unreadable), ("sub/secret", &SkipReason::Unreadable)]);
        assert_holds(directory.join("dst"), &["file", "sub"]);
        assert_holds(directory.join("dst/sub"), &["fine"]);
        return;
    }
    let test = "what_cannot_be_read_is_named_and_nothing_is_left_or_left_out_if_that_is_asked_for";
    as_somebody_else(&format!("conformance::privileges::{test}"), &FileSystem::ALL, |theirs| {
        Tree::new(theirs)
            .file("file/sub/secret", "1")
            .mode("file/sub/secret", 0o600)
            .file("directory/sub/closed/file", "2")
            .mode("directory/sub/closed", 0o700)
            .file("unsearchable/sub/file", "3")
            .mode("unsearchable/sub", 0o744)
            .file("src/file", "1")
            .file("src/sub/fine", "2")
            .file("src/sub/secret", "3")
            .mode("src/sub/secret", 0o000)
            .file("src/closed/file", "4")
            .mode("src/closed", 0o000);
    });
}

#[test]
fn a_device_is_left_out_and_told_and_a_parent_that_cannot_be_written_to_is_named() {
    if let Some(directory) = child::directory() {
        let report = clone(directory.join("src"), directory.join("dst"));
        assert_eq!(report.skipped.len(), 1, "{:?}", report.skipped);
        assert_eq!(report.skipped[0].path, Path::new("null"));
        assert_holds(directory.join("dst"), &["file"]);
        let ours = directory.parent().unwrap().join("ours");
        let error = refused(&CloneOptions::default(), directory.join("src"), ours.join("dst"));
        assert_errno(&error, Errno::ACCESS);
        assert!(error.to_string().contains(&*ours.to_string_lossy()), "{error}");
        assert!(error.remedy().is_some());
        return;
    }
    let test = "a_device_is_left_out_and_told_and_a_parent_that_cannot_be_written_to_is_named";
    as_somebody_else(&format!("conformance::privileges::{test}"), &[FileSystem::Ext4], |theirs| {
        let null = rustix::fs::FileType::CharacterDevice;
        Tree::new(theirs.join("src")).device("null", null, 1, 3).file("file", "1").mode("file", 0o644);
        Tree::new(theirs.parent().unwrap()).dir("ours").mode("ours", 0o755);
    });
}

/// A tree of root's that others may read is cloned by another user, with O_NOATIME refused.
#[test]
fn somebody_elses_tree_can_be_cloned() {
    if let Some(directory) = child::directory() {
        clone(directory.join("src"), directory.join("dst"));
        assert_same_except(directory.join("src"), directory.join("dst"), &[Aspect::Owners]);
        return;
    }
    as_somebody_else("conformance::privileges::somebody_elses_tree_can_be_cloned", &FileSystem::ALL, |theirs| {
        Tree::new(theirs.join("src"))
            .file("a/b", "1")
            .mode("a/b", 0o444)
            .mode("a", 0o555)
            .symlink("c", "a")
            .mtime("a", 7, 7);
    });
}
