//! The choice of a strategy on each file system, and between two.

use calve_core::{CloneOptions, Error, Refusal, Requirement, Strategy, plan, probe};
use calve_testkit::{FileSystem, Tree, Volume, assert_same, everything, rsync_differences};

use crate::cloning::{assert_holds, clone, clone_with, options, refused, source_for, waiting};

fn requiring(requirement: Requirement) -> CloneOptions {
    options(|options| options.require = vec![requirement])
}

fn strategies(refused: &[Refusal]) -> Vec<Strategy> {
    refused.iter().map(|refusal| refusal.strategy).collect()
}

#[test]
#[cfg_attr(any(target_os = "macos", like_macos), ignore = "macOS shares files by clonefile alone")]
fn the_fastest_that_each_file_system_offers_is_taken() {
    use Strategy::{Clonefile, Copy, Reflink, Snapshot};
    let cases = [
        (FileSystem::Ext4, Copy, vec![Snapshot, Clonefile, Reflink]),
        (FileSystem::Tmpfs, Copy, vec![Snapshot, Clonefile, Reflink]),
        (FileSystem::Xfs, Reflink, vec![Snapshot, Clonefile]),
        (FileSystem::Btrfs, Snapshot, vec![]),
    ];
    for (file_system, expected, better) in cases {
        let Some(volume) = Volume::new(file_system) else { return };
        let (src, dst) = (source_for(Strategy::Snapshot, &volume, "src"), volume.path().join("dst"));
        Tree::new(&src).file("a/file", vec![b'x'; 100_000]);
        let planned = plan(&src, &dst, &CloneOptions::default()).unwrap();
        assert_eq!((planned.strategy, strategies(&planned.refused)), (expected, better.clone()));
        let probed = probe(&src, &dst).unwrap();
        assert_eq!((probed.chosen, probed.src.file_system.as_str()), (Some(expected), file_system.name()));
        assert_holds(volume.path(), &["src"]);
        let report = clone(&src, &dst);
        assert_eq!((report.strategy, strategies(&report.refused)), (expected, better));
        assert!(report.refused.iter().all(|refusal| !refusal.reason.is_empty()), "{:?}", report.refused);
        if file_system == FileSystem::Btrfs {
            let ordinary = Tree::new(volume.path().join("ordinary")).file("a/file", vec![b'x'; 100_000]);
            let report = clone(ordinary.path(), volume.path().join("reflinked"));
            assert_eq!((report.strategy, strategies(&report.refused)), (Reflink, vec![Snapshot, Clonefile]));
            assert_eq!(report.refused[0].remedy, Some(calve_core::error::Remedy::CloneIntoSubvolume));
        }
    }
}

#[test]
#[cfg_attr(any(target_os = "macos", like_macos), ignore = "macOS shares files by clonefile alone")]
fn a_requirement_that_cannot_be_met_makes_nothing() {
    for (file_system, met) in [
        (FileSystem::Ext4, &[][..]),
        (FileSystem::Tmpfs, &[]),
        (FileSystem::Xfs, &[Requirement::Cow]),
        (FileSystem::Btrfs, &[Requirement::Cow, Requirement::Instant]),
    ] {
        let Some(volume) = Volume::new(file_system) else { return };
        let (src, dst) = (source_for(Strategy::Snapshot, &volume, "src"), volume.path().join("dst"));
        Tree::new(&src).file("small", "1").file("large", vec![b'x'; 100_000]);
        for requirement in [Requirement::Cow, Requirement::Instant] {
            if met.contains(&requirement) {
                let report = clone_with(&requiring(requirement), &src, &dst);
                assert_eq!(report.bytes.map_or(0, |bytes| bytes.written), 0);
                calve_testkit::assert_same(&src, &dst);
                calve_core::remove_tree(&dst, &waiting()).unwrap();
                continue;
            }
            let error = refused(&requiring(requirement), &src, &dst);
            assert!(matches!(&error, Error::RequirementRefused { refused, .. } if !refused.is_empty()), "{error}");
            assert!(error.to_string().contains(&requirement.to_string()), "{error}");
            assert!(error.remedy().is_some());
            assert_holds(volume.path(), &["src"]);
        }
    }
}

#[test]
fn everything_is_kept_from_each_file_system_to_each_other() {
    for from in FileSystem::ALL {
        let Some(source) = Volume::new(from) else { return };
        let src = source_for(Strategy::Snapshot, &source, "src");
        everything(&src);
        for to in FileSystem::ALL.into_iter().filter(|to| *to != from) {
            let Some(target) = Volume::new(to) else { return };
            let dst = target.path().join("dst");
            let report = clone(&src, &dst);
            assert_eq!(report.strategy, Strategy::Copy, "{} to {}", from.name(), to.name());
            assert!(report.warnings.is_empty() && report.fell_back.is_empty(), "{report:?}");
            assert_same(&src, &dst);
            assert_eq!(rsync_differences(&src, &dst), "");
            for strategy in [Strategy::Reflink, Strategy::Hardlink, Strategy::Snapshot] {
                let error = refused(&crate::cloning::only(strategy), &src, target.path().join("no"));
                assert!(matches!(error, Error::RequirementRefused { .. }), "{error}");
            }
            assert_holds(target.path(), &["dst"]);
        }
    }
}

#[test]
fn two_volumes_of_one_kind_are_not_one_file_system() {
    for file_system in FileSystem::REFLINKING {
        let (Some(from), Some(to)) = (Volume::new(file_system), Volume::new(file_system)) else { return };
        let src = source_for(Strategy::Snapshot, &from, "src");
        Tree::new(&src).file("a", vec![b'x'; 100_000]);
        assert_eq!(clone(&src, to.path().join("dst")).strategy, Strategy::Copy);
        assert_same(&src, to.path().join("dst"));
    }
}

/// XFS shows an ACL to root a second time, as an attribute in its own form, which means nothing elsewhere.
#[test]
#[cfg_attr(any(target_os = "macos", like_macos), ignore = "macOS has no POSIX ACLs")]
fn the_acls_of_xfs_arrive_as_acls_and_nothing_else() {
    let (Some(from), Some(to)) = (Volume::new(FileSystem::Xfs), Volume::new(FileSystem::Ext4)) else { return };
    let tree = Tree::new(from.path().join("src")).file("a", "1").acl("a", "u:12345:rwx");
    clone(tree.path(), to.path().join("dst"));
    let mut names = [0; 512];
    let length = rustix::fs::llistxattr(to.path().join("dst/a"), &mut names[..]).unwrap();
    assert_eq!(String::from_utf8_lossy(&names[..length]), "system.posix_acl_access\0");
}
