//! Every strategy on every file system keeps everything, by two oracles that share no code with the engine.

use std::path::Path;

use calve_core::error::StatedRequirement;
use calve_core::{CloneReport, Error, Strategy};
use calve_testkit::{FileSystem, Volume, assert_same, everything, fingerprint, rsync_differences};
use fs_err as fs;

use crate::cloning::{assert_holds, clone_with, only, refused, source_for, verified};

const STRATEGIES: [Strategy; 4] = [Strategy::Snapshot, Strategy::Reflink, Strategy::Copy, Strategy::Hardlink];

fn is_offered(strategy: Strategy, file_system: FileSystem) -> bool {
    match strategy {
        Strategy::Snapshot | Strategy::Reflink if cfg!(any(target_os = "macos", like_macos)) => false,
        Strategy::Snapshot => file_system == FileSystem::Btrfs,
        Strategy::Reflink => FileSystem::REFLINKING.contains(&file_system),
        _ => true,
    }
}

fn conforms(file_system: FileSystem) {
    for strategy in STRATEGIES {
        let Some(volume) = Volume::new(file_system) else { return };
        let src = source_for(strategy, &volume, "src");
        assert_eq!(everything(&src), [""; 0]);
        if is_offered(strategy, file_system) {
            keeps_everything(strategy, &volume, &src);
        } else {
            declines(strategy, &volume, &src);
        }
    }
}

fn keeps_everything(strategy: Strategy, volume: &Volume, src: &Path) {
    let dst = volume.path().join("dst");
    let before = fingerprint(src);
    let report = clone_with(&verified(strategy), src, &dst);
    assert_eq!(report.strategy, strategy);
    assert_same(src, &dst);
    assert_eq!(rsync_differences(src, &dst), "", "{strategy} on {}", volume.file_system().name());
    if strategy != Strategy::Hardlink {
        // A hard link is a change of the source's link count and change time.
        before.assert_unchanged(src);
    }
    assert!(report.fell_back.is_empty(), "{:?}", report.fell_back);
    assert!(report.skipped.is_empty() && report.changed.is_empty(), "{report:?}");
    assert_holds(volume.path(), &["src", "dst"]);
    counts_are_right(&report, src);
}

/// The receipt against a count of the test's own, by `find`.
fn counts_are_right(report: &CloneReport, src: &Path) {
    let (Some(entries), Some(bytes)) = (report.entries, report.bytes) else {
        assert_eq!(report.strategy, Strategy::Snapshot, "only a snapshot does not walk the tree");
        return;
    };
    let found = Found::in_tree(src);
    assert_eq!(entries.directories, found.directories);
    assert_eq!(entries.symlinks + entries.files + entries.hard_links, found.symlinks + found.files, "{entries:?}");
    assert_eq!((entries.fifos, entries.devices), (found.fifos, found.devices));
    assert_eq!(entries.total(), found.total());
    assert_eq!(entries.files, found.file_inodes, "each inode counts once");
    assert_eq!(bytes.apparent, found.bytes, "each inode counts once");
    assert_eq!(
        bytes.shared + bytes.written + bytes.inlined.unwrap() + found.hole_bytes(report),
        bytes.apparent,
        "{bytes:?}"
    );
    match report.strategy {
        Strategy::Copy => assert_eq!((bytes.shared, bytes.inlined), (0, Some(0))),
        Strategy::Hardlink => assert_eq!((bytes.written, bytes.inlined), (0, Some(0))),
        _ => {}
    }
}

#[derive(Default)]
struct Found {
    directories: u64,
    files: u64,
    file_inodes: u64,
    symlinks: u64,
    fifos: u64,
    devices: u64,
    bytes: u64,
    data_bytes: u64,
    stored_bytes: u64,
}

impl Found {
    fn in_tree(root: &Path) -> Self {
        use std::os::unix::fs::{FileTypeExt, MetadataExt};
        let mut found = Self::default();
        let mut inodes = std::collections::HashSet::new();
        let mut waiting = vec![root.to_path_buf()];
        while let Some(path) = waiting.pop() {
            let stat = fs::symlink_metadata(&path).unwrap();
            let kind = stat.file_type();
            if kind.is_dir() {
                found.directories += 1;
                waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            } else if kind.is_symlink() {
                found.symlinks += 1;
            } else if kind.is_fifo() {
                found.fifos += 1;
            } else if kind.is_file() {
                found.files += 1;
                if inodes.insert(stat.ino()) {
                    found.file_inodes += 1;
                    found.bytes += stat.len();
                    found.data_bytes += data_bytes(&path);
                    found.stored_bytes += stat.len().min(stat.blocks() * 512);
                }
            } else {
                found.devices += 1;
            }
        }
        found
    }

    fn total(&self) -> u64 {
        self.directories + self.files + self.symlinks + self.fifos + self.devices
    }

    /// Holes are neither shared nor written. A copy looks for them, the others go by the number of blocks.
    fn hole_bytes(&self, report: &CloneReport) -> u64 {
        self.bytes - if report.strategy == Strategy::Copy { self.data_bytes } else { self.stored_bytes }
    }
}

/// Returns how many bytes of a file are no hole.
fn data_bytes(path: &Path) -> u64 {
    use rustix::fs::{SeekFrom, seek};
    let file = fs::File::open(path).unwrap();
    let size = file.metadata().unwrap().len();
    let (mut data, mut position) = (0, 0);
    while let Ok(start) = seek(&file, SeekFrom::Data(position)) {
        let end = seek(&file, SeekFrom::Hole(start)).unwrap().min(size);
        data += end - start;
        position = end;
    }
    data
}

/// A strategy that cannot work says so and makes nothing.
fn declines(strategy: Strategy, volume: &Volume, src: &Path) {
    let before = fingerprint(src);
    let error = refused(&only(strategy), src, volume.path().join("dst"));
    let Error::RequirementRefused { requirement, refused, .. } = &error else { panic!("{error}") };
    assert_eq!(*requirement, StatedRequirement::Strategy(strategy));
    assert_eq!(refused.len(), 1);
    assert!(!refused[0].reason.is_empty());
    assert_holds(volume.path(), &["src"]);
    before.assert_unchanged(src);
}

#[test]
fn every_strategy_on_ext4() {
    conforms(FileSystem::Ext4);
}

#[test]
fn every_strategy_on_xfs() {
    conforms(FileSystem::Xfs);
}

#[test]
fn every_strategy_on_btrfs() {
    conforms(FileSystem::Btrfs);
}

#[test]
fn every_strategy_on_tmpfs() {
    conforms(FileSystem::Tmpfs);
}
