//! A clone that was made while its source was written to becomes what the source is when that is over.

use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use calve_core::internal::FollowedSource;
use calve_core::space::{DiskUsageOptions, disk_usage};
use calve_core::{CancelToken, Choice, CloneOptions, RemoveOptions, Strategy, clone_tree, remove_tree};
use calve_testkit::{FileSystem, SplitMix64, Volume, assert_same, few_rounds, node_modules_like, rounds};
use fs_err as fs;
use rustix::fs::{FallocateFlags, fallocate};

use crate::spare::DISKS;
use crate::spare::edits::Editor;

/// The strategy of the clones there.
fn strategy(file_system: FileSystem) -> Choice {
    Choice::Only(if file_system == FileSystem::Ext4 { Strategy::Copy } else { Strategy::Reflink })
}

struct FollowFixture {
    volume: Volume,
    followed: FollowedSource,
}

impl FollowFixture {
    fn new(file_system: FileSystem, make: impl FnOnce(PathBuf)) -> Option<Self> {
        let volume = Volume::new(file_system)?;
        make(volume.path().join("src"));
        Some(Self::of(file_system, volume))
    }

    fn of(file_system: FileSystem, volume: Volume) -> Self {
        let (src, clone) = (volume.path().join("src"), volume.path().join("clone"));
        fs::create_dir_all(volume.path().join("beside")).unwrap();
        let (beside, cancel) = (volume.path().join("beside"), CancelToken::default());
        let followed = FollowedSource::record(&src, &beside, strategy(file_system), &cancel).unwrap().unwrap();
        let mut options = CloneOptions::default();
        options.strategy = strategy(file_system);
        clone_tree(&src, &clone, &options).unwrap();
        Self { volume, followed }
    }

    fn src(&self) -> PathBuf {
        self.volume.path().join("src")
    }

    fn clone(&self) -> PathBuf {
        self.volume.path().join("clone")
    }

    fn catch_up(&mut self) {
        let clone = self.clone();
        self.followed.catch_up(&clone, &CancelToken::default()).unwrap();
    }

    #[track_caller]
    fn caught_up(&mut self) {
        self.catch_up();
        assert_same(self.src(), self.clone());
    }

    #[track_caller]
    fn finish(self) -> bool {
        self.finish_and_clear().1
    }

    /// Returns whether the clone is complete, and the volume without it.
    #[track_caller]
    fn finish_and_clear(self) -> (Volume, bool) {
        let (src, clone) = (self.src(), self.clone());
        let is_complete = self.followed.finish(&clone, &CancelToken::default()).unwrap();
        if is_complete {
            assert_same(&src, &clone);
        }
        remove_tree(&clone, &RemoveOptions::default()).unwrap();
        (self.volume, is_complete)
    }
}

const LARGE_BYTES: u64 = 32 << 20;

fn with_large_file(src: PathBuf) {
    node_modules_like(src.clone(), 300);
    fs::write(src.join("large"), SplitMix64::new(7).bytes(LARGE_BYTES as usize)).unwrap();
}

fn write_blocks(src: &Path, random: &mut SplitMix64, blocks: u32) {
    let file = fs::OpenOptions::new().write(true).open(src.join("large")).unwrap();
    for _ in 0..blocks {
        file.file().write_all_at(&random.bytes(8192), random.below(LARGE_BYTES / 8192) * 8192).unwrap();
    }
}

#[test]
fn edits_of_every_kind_are_followed() {
    for file_system in DISKS {
        let made = FollowFixture::new(file_system, |src| _ = node_modules_like(src, 400));
        let Some(mut fixture) = made else { continue };
        let mut editor = Editor::of(fixture.src(), 41);
        let (rounds, mut complete) = (rounds(30), 0);
        for _ in 0..rounds {
            for _ in 0..editor.random.below(3) {
                (0..editor.random.below(5)).for_each(|_| editor.edit());
                fixture.catch_up();
            }
            (0..editor.random.below(5)).for_each(|_| editor.edit());
            let (volume, is_complete) = fixture.finish_and_clear();
            complete += usize::from(is_complete);
            fixture = FollowFixture::of(file_system, volume);
        }
        assert!(few_rounds() || complete * 3 > rounds, "{file_system:?}: {complete} of {rounds}; {:?}", editor.kinds);
    }
}

#[test]
fn a_source_that_is_written_to_all_the_time_is_followed() {
    for file_system in DISKS {
        let Some(mut fixture) = FollowFixture::new(file_system, with_large_file) else { continue };
        let (src, stop) = (fixture.src(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = SplitMix64::new(3);
                while !stop.load(Ordering::Relaxed) {
                    write_blocks(&src, &mut random, 4);
                    let name = src.join(format!("temporary-{}", random.below(5)));
                    match random.below(2) {
                        0 => fs::write(&name, random.bytes(100)).unwrap(),
                        _ => _ = fs::remove_file(&name),
                    }
                }
            });
            (0..8).for_each(|_| fixture.catch_up());
            stop.store(true, Ordering::Relaxed);
        });
        assert!(fixture.finish(), "{file_system:?}");
    }
}

#[test]
fn a_large_file_gets_only_the_ranges_that_were_written_to() {
    for file_system in [FileSystem::Xfs, FileSystem::Btrfs] {
        let Some(mut fixture) = FollowFixture::new(file_system, with_large_file) else { continue };
        let inode = |fixture: &FollowFixture| fs::metadata(fixture.clone().join("large")).unwrap().ino();
        let (made, mut random) = (inode(&fixture), SplitMix64::new(5));
        for _ in 0..3 {
            write_blocks(&fixture.src(), &mut random, 40);
            fixture.caught_up();
        }
        // Shorter and longer.
        let file = fs::OpenOptions::new().write(true).open(fixture.src().join("large")).unwrap();
        for size in [LARGE_BYTES - 12_345, LARGE_BYTES + 77, LARGE_BYTES / 2 + 1, LARGE_BYTES] {
            file.set_len(size).unwrap();
            fixture.caught_up();
        }
        // A hole, and space that is only reserved, a part of which is written to then.
        fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 1 << 20, 3 << 20).unwrap();
        fallocate(&file, FallocateFlags::empty(), LARGE_BYTES, 4 << 20).unwrap();
        fixture.caught_up();
        file.file().write_all_at(&random.bytes(8192), LARGE_BYTES + 8192).unwrap();
        fixture.caught_up();
        assert_eq!(inode(&fixture), made, "{file_system:?}: it was made anew");
        let usage = disk_usage(&[fixture.clone()], &DiskUsageOptions::default()).unwrap();
        assert!(usage.total.exclusive < 8 << 20, "{file_system:?}: {} bytes are not shared", usage.total.exclusive);
        assert!(fixture.finish());
    }
}

#[test]
fn a_file_of_several_names_is_not_followed() {
    let Some(mut fixture) = FollowFixture::new(FileSystem::Xfs, with_large_file) else { return };
    fs::hard_link(fixture.src().join("large"), fixture.src().join("other")).unwrap();
    fixture.catch_up();
    assert!(!fixture.finish());
}

#[test]
fn a_directory_that_was_away_is_noticed() {
    let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
    let (src, away) = (volume.path().join("src"), volume.path().join("away"));
    node_modules_like(src.clone(), 300);
    fs::create_dir_all(src.join("base/inner")).unwrap();
    fs::write(src.join("base/inner/file"), "1").unwrap();
    let (beside, cancel) = (volume.path().join("beside"), CancelToken::default());
    fs::create_dir(&beside).unwrap();
    for again in [false, true] {
        let clone = volume.path().join("clone");
        let mut followed = FollowedSource::record(&src, &beside, strategy(FileSystem::Xfs), &cancel).unwrap().unwrap();
        fs::rename(src.join("base"), &away).unwrap();
        clone_tree(&src, &clone, &CloneOptions::default()).unwrap();
        if again {
            followed.catch_up(&clone, &cancel).unwrap();
        }
        fs::rename(&away, src.join("base")).unwrap();
        // After the record has followed, it is a new directory.
        assert_eq!(followed.finish(&clone, &cancel).unwrap(), again);
        if again {
            assert_same(&src, &clone);
        }
        remove_tree(&clone, &RemoveOptions::default()).unwrap();
    }
}

#[test]
fn a_subvolume_is_not_followed() {
    let Some(volume) = Volume::new(FileSystem::Btrfs) else { return };
    let src = volume.path().join("src");
    calve_core::internal::make_snapshotable_directory(&src).unwrap();
    assert!(FollowedSource::record(&src, volume.path(), Choice::default(), &CancelToken::default()).unwrap().is_none());
}
