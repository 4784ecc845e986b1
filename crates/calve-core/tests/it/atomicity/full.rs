//! Running out of room, before and in the middle, and other failures half way: nothing is left.

use std::path::Path;

use calve_core::bulk::{WriteEntry, WriteOptions};
use calve_core::error::RoomUnit;
use calve_core::{CloneOptions, Error, Strategy};
use calve_testkit::{FileSystem, SplitMix64, Tree, Volume, assert_same, fingerprint};
use fs_err as fs;
use rustix::io::Errno;

use crate::cloning::{assert_errno, assert_holds, clone, only, refused, run, subvolume, write_files};

const MIB: usize = 1 << 20;

fn noise(bytes: usize) -> Vec<u8> {
    SplitMix64::new(bytes as u64).bytes(bytes)
}

fn small_volume(file_system: FileSystem) -> Option<Volume> {
    Volume::with_size(file_system, 16 * MIB as u64)
}

#[test]
fn what_does_not_fit_is_refused_before_it_is_written() {
    let Some(from) = Volume::new(FileSystem::Tmpfs) else { return };
    let src = from.path().join("src");
    // XFS cannot be smaller than 300 MB.
    Tree::new(&src).file("large", vec![b'x'; 320 * MIB]).file("small", "1");
    for file_system in FileSystem::ALL {
        let Some(volume) = small_volume(file_system) else { return };
        for src in [src.clone(), src.join("large")] {
            let error = refused(&CloneOptions::default(), &src, volume.path().join("dst"));
            let Error::NoRoom { needed, available, unit: RoomUnit::Bytes, .. } = &error else { panic!("{error}") };
            assert!(*needed >= 320 * MIB as u64 && available < needed, "{error}");
            assert!(error.remedy().is_some());
            let planned = calve_core::plan(&src, &volume.path().join("dst"), &CloneOptions::default());
            assert!(matches!(planned, Err(Error::NoRoom { .. })), "{planned:?}");
            assert_holds(volume.path(), &[]);
        }
    }
}

#[test]
fn a_disk_that_runs_full_in_the_middle_is_named_and_left_as_it_was() {
    for file_system in [FileSystem::Ext4, FileSystem::Tmpfs, FileSystem::Btrfs] {
        let Some(volume) = small_volume(file_system) else { return };
        let src = volume.path().join("src");
        Tree::new(&src).file("first", "1").file("z/last", noise(5 * MIB / 2));
        let left = |volume: &Volume| {
            let room = rustix::fs::statvfs(volume.path()).unwrap();
            room.f_bavail * room.f_frsize
        };
        // Only as much stays free as the sum of the sizes needs, which is less than the tree needs.
        let mut filler = 0;
        while left(&volume) > 3 * MIB as u64 {
            let piece = usize::try_from(left(&volume) - 3 * MIB as u64).unwrap().clamp(4096, MIB);
            if fs::write(volume.path().join(format!("filler-{filler}")), noise(piece)).is_err() {
                break;
            }
            volume.settle();
            filler += 1;
        }
        for number in 0..200 {
            Tree::new(&src).file(format!("many/{number}"), noise(5000));
        }
        volume.settle();
        let before = fingerprint(&src);
        let names = crate::cloning::names_in(volume.path());
        let error = refused(&only(Strategy::Copy), &src, volume.path().join("dst"));
        let named = matches!(error, Error::NoRoom { .. }) || error.errno() == Some(Errno::NOSPC.raw_os_error());
        assert!(named, "{}: {error}", file_system.name());
        assert_eq!(crate::cloning::names_in(volume.path()), names, "{}", file_system.name());
        before.assert_unchanged(&src);
    }
}

#[test]
#[cfg_attr(target_os = "macos", ignore = "macOS has no such limit")]
fn a_file_system_without_inodes_is_named() {
    let Some(from) = Volume::new(FileSystem::Tmpfs) else { return };
    let src = from.path().join("src");
    for number in 0..400 {
        Tree::new(&src).file(format!("{}/{number}", number % 7), "1");
    }
    let ext4 = Volume::builder(FileSystem::Ext4).size_bytes(64 << 20).mkfs_args(["-N", "256"]).mount();
    let tmpfs = Volume::builder(FileSystem::Tmpfs).mount_option("nr_inodes=256").mount();
    for volume in [ext4, tmpfs].into_iter().flatten() {
        let error = refused(&CloneOptions::default(), &src, volume.path().join("dst"));
        assert!(matches!(&error, Error::NoRoom { unit: RoomUnit::Inodes, needed, .. } if *needed > 400), "{error}");
        assert_holds(volume.path(), &[]);
        // Unnoticed before: hard links need no inode, but directories do.
        let own = volume.path().join("own");
        for number in 0..130 {
            fs::create_dir_all(own.join(number.to_string())).unwrap();
        }
        let error = refused(&only(Strategy::Hardlink), &own, volume.path().join("dst"));
        assert_errno(&error, Errno::NOSPC);
        assert_eq!(error.remedy(), Some(calve_core::error::Remedy::FreeSpace));
        assert_holds(volume.path(), &["own"]);
    }
}

/// btrfs has quotas of its own, for subvolumes; those of users and projects are an option of the kernel's build.
#[test]
#[cfg_attr(target_os = "macos", ignore = "macOS has no such limit")]
fn a_quota_is_named() {
    let (Some(volume), Some(from)) = (Volume::new(FileSystem::Btrfs), Volume::new(FileSystem::Tmpfs)) else { return };
    let limited = volume.path().join("limited");
    subvolume(&limited);
    run("btrfs", |btrfs| btrfs.args(["quota", "enable"]).arg(volume.path()));
    run("btrfs", |btrfs| btrfs.args(["qgroup", "limit", "4M"]).arg(&limited));
    let src = from.path().join("src");
    for number in 0..20 {
        Tree::new(&src).file(number.to_string(), noise(MIB));
    }
    let error = refused(&CloneOptions::default(), &src, limited.join("dst"));
    assert_errno(&error, Errno::DQUOT);
    assert_eq!(error.remedy(), Some(calve_core::error::Remedy::FreeQuota));
    assert_holds(&limited, &[]);
    let contents = noise(20 * MIB);
    let entries = [WriteEntry { path: Path::new("written"), contents: &contents }];
    let error = write_files(&limited, &entries, WriteOptions::default()).unwrap_err();
    assert_errno(&error, Errno::DQUOT);
    assert_eq!(error.remedy(), Some(calve_core::error::Remedy::FreeQuotaForRest));
    let _ = fs::remove_file(limited.join("written"));
    for number in 1..20 {
        fs::remove_file(src.join(number.to_string())).unwrap();
    }
    // btrfs counts removed files as free from its next commit on.
    run("btrfs", |btrfs| btrfs.args(["filesystem", "sync"]).arg(&limited));
    clone(&src, limited.join("dst"));
    assert_same(&src, limited.join("dst"));
}
