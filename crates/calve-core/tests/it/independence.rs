//! After a clone the two trees have nothing in common: a change of the one never shows in the other.

use std::ffi::OsStr;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use calve_core::Strategy;
use calve_testkit::{FileSystem, SplitMix64, Tree, Volume, assert_same, fingerprint, random, rounds};
use fs_err as fs;
use rustix::fs::XattrFlags;

use crate::cloning::{clone_with, only, source_for};

const SEEDS: usize = 12;
const ENTRIES: u64 = 150;
const CHANGES: usize = 120;

fn trees_are_independent(file_system: FileSystem, strategy: Strategy) {
    let Some(volume) = Volume::new(file_system) else { return };
    // The paths in a failure name the seed.
    for seed in 0..rounds(SEEDS) as u64 {
        let src = source_for(strategy, &volume, &format!("src-{seed}"));
        let dst = volume.path().join(format!("dst-{seed}"));
        random(&src, seed, ENTRIES);
        let before = fingerprint(&src);
        assert_eq!(clone_with(&only(strategy), &src, &dst).strategy, strategy);
        before.assert_unchanged(&src);
        assert_same(&src, &dst);
        let mut vandal = Vandal { random: SplitMix64::new(seed), number: 0 };
        for (changed, other) in [(&dst, &src), (&src, &dst), (&dst, &src)] {
            let before = fingerprint(other);
            vandal.rage_in(changed);
            before.assert_unchanged(other);
        }
    }
}

/// A user who changes everything that can be changed, at random.
struct Vandal {
    random: SplitMix64,
    number: usize,
}

impl Vandal {
    fn rage_in(&mut self, root: &Path) {
        for _ in 0..CHANGES {
            let entries = entries_of(root);
            let Some(path) = (!entries.is_empty()).then(|| self.random.pick(&entries).clone()) else { return };
            self.change(root, &path);
        }
    }

    /// An edit that fails because of the kind of entry (a link to nowhere, say) is as good as any other change.
    fn change(&mut self, root: &Path, path: &Path) {
        self.number += 1;
        let kind = fs::symlink_metadata(path).unwrap().file_type();
        let above = path.parent().unwrap_or(root);
        let fresh = above.join(format!("new-{}", self.number));
        if kind.is_file() {
            match self.random.below(6) {
                0 => self.overwrite(path),
                1 => self.append(path),
                2 => self.resize(path),
                3 => drop(fs::rename(path, fresh)),
                4 => drop(fs::hard_link(path, fresh)),
                _ => drop(fs::remove_file(path)),
            }
        } else if kind.is_dir() {
            match self.random.below(4) {
                0 => drop(fs::write(path.join(format!("new-{}", self.number)), "new")),
                1 => drop(fs::create_dir(path.join(format!("new-{}", self.number)))),
                2 => drop(fs::rename(path, fresh)),
                _ => drop(fs_err::os::unix::fs::symlink("new", path.join(format!("new-{}", self.number)))),
            }
        } else {
            match self.random.below(2) {
                0 => drop(fs::rename(path, fresh)),
                _ => drop(fs::remove_file(path)),
            }
        }
        if path.symlink_metadata().is_ok() && !kind.is_symlink() {
            self.describe(path);
        }
    }

    fn overwrite(&mut self, path: &Path) {
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        let length = file.metadata().unwrap().len();
        let (at, size) = (self.random.below(length + 1), self.random.below(9000) as usize);
        let bytes = self.random.bytes(size);
        file.file().write_all_at(&bytes, at).unwrap();
    }

    fn append(&mut self, path: &Path) {
        use std::io::Write as _;
        let size = self.random.below(20_000) as usize;
        let bytes = self.random.bytes(size);
        fs::OpenOptions::new().append(true).open(path).unwrap().write_all(&bytes).unwrap();
    }

    fn resize(&mut self, path: &Path) {
        let length = self.random.below(400_000);
        fs::OpenOptions::new().write(true).open(path).unwrap().set_len(length).unwrap();
    }

    fn describe(&mut self, path: &Path) {
        let tree = Tree::new(path.parent().unwrap());
        let name: PathBuf = path.file_name().unwrap().into();
        let _ = match self.random.below(4) {
            0 => tree.mode(name, 0o700 | self.random.below(0o100) as u32),
            1 => tree.mtime(name, self.random.below(2_000_000_000) as i64, 1),
            2 => tree.owner(name, self.random.below(60_000) as u32, 7),
            _ => {
                let _ = rustix::fs::lsetxattr(path, OsStr::new("user.vandal"), b"was here", XattrFlags::empty());
                tree
            }
        };
    }
}

fn entries_of(root: &Path) -> Vec<PathBuf> {
    let mut entries = Vec::new();
    let mut waiting = vec![root.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                waiting.push(entry.path());
            }
            entries.push(entry.path());
        }
    }
    entries.sort();
    entries
}

#[test]
fn by_copy() {
    trees_are_independent(FileSystem::Ext4, Strategy::Copy);
    trees_are_independent(FileSystem::Tmpfs, Strategy::Copy);
}

#[test]
fn by_reflink() {
    trees_are_independent(FileSystem::Xfs, Strategy::Reflink);
    trees_are_independent(FileSystem::Btrfs, Strategy::Reflink);
}

#[test]
fn by_snapshot() {
    trees_are_independent(FileSystem::Btrfs, Strategy::Snapshot);
}
