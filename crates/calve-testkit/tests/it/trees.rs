//! The ready-made trees are what they claim, the same each time, and survive a good copy.

use std::path::Path;
use std::process::Command;

use calve_testkit::{
    Aspect, FileSystem, Shape, Volume, assert_same, assert_same_except, everything, is_root, node_modules_like, random,
    rsync_differences, wide,
};

use crate::{cp_a, scratch};

#[test]
fn everything_is_kept_by_a_good_copy_on_every_file_system() {
    for file_system in FileSystem::ALL {
        let Some(volume) = Volume::new(file_system) else {
            continue;
        };
        let (src, dst) = (volume.path().join("src"), volume.path().join("dst"));
        assert_eq!(everything(&src), [""; 0], "{file_system:?}");
        cp_a(&src, &dst);
        assert_same(&src, &dst);
        assert_eq!(rsync_differences(&src, &dst), "", "{file_system:?}");
    }
}

#[test]
fn everything_is_the_same_across_file_systems() {
    let (Some(xfs), Some(btrfs)) = (Volume::new(FileSystem::Xfs), Volume::new(FileSystem::Btrfs)) else {
        return;
    };
    let (src, dst) = (xfs.path().join("src"), btrfs.path().join("dst"));
    everything(&src);
    cp_a(&src, &dst);
    assert_same(&src, &dst);
    cp_a(&dst, &xfs.path().join("back"));
    assert_same(&src, xfs.path().join("back"));
}

#[test]
fn everything_loses_something_in_each_lazy_copy() {
    if !is_root() {
        return;
    }
    let dir = scratch();
    let src = dir.path().join("src");
    everything(&src);
    for (number, (args, words)) in [
        (vec!["-PR", "--preserve=mode,ownership,links,xattr"], "mtime"),
        (vec!["-PR", "--preserve=mode,ownership,timestamps,xattr"], "a hard link"),
        (vec!["-PR", "--preserve=mode,timestamps,links,xattr"], "owner"),
        (vec!["-PR", "--preserve=mode,ownership,timestamps,links"], "xattr \"user."),
        (vec!["-PR", "--preserve=ownership,timestamps,links,xattr"], "mode"),
    ]
    .into_iter()
    .enumerate()
    {
        let dst = dir.path().join(number.to_string());
        let status = Command::new("cp").args(args).arg("-T").arg(&src).arg(&dst).status().unwrap();
        assert!(status.success());
        let found = calve_testkit::differences(&src, &dst, &[]);
        assert!(found.iter().any(|line| line.contains(words)), "expected `{words}`: {found:#?}");
    }
}

#[test]
fn node_modules_are_counted_right_and_mostly_small() {
    let dir = scratch();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    let shape = node_modules_like(&a, 1000);
    assert_eq!(shape, node_modules_like(&b, 1000));
    assert_same_except(&a, &b, &[Aspect::Times]);
    assert_eq!(shape, counted(&a));
    assert_eq!((shape.files, shape.symlinks), (1000, 34));
    assert!((4..10).contains(&(shape.bytes / shape.files / 1024)), "{shape:?}");
}

#[test]
fn wide_is_flat() {
    let dir = scratch();
    assert_eq!(wide(dir.path().join("wide"), 2345), counted(&dir.path().join("wide")));
}

#[test]
fn random_trees_depend_on_the_seed_alone() {
    for seed in 0..8 {
        let dir = scratch();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        random(&a, seed, 150);
        random(&b, seed, 150);
        // What was given no time of its own has that of its making.
        assert_same_except(&a, &b, &[Aspect::Times]);
        random(dir.path().join("c"), seed + 1, 150);
        let other = calve_testkit::differences(&a, &dir.path().join("c"), &[]);
        assert!(!other.is_empty());
        cp_a(&a, &dir.path().join("copy"));
        assert_same(&a, dir.path().join("copy"));
    }
}

fn counted(dir: &Path) -> Shape {
    let mut shape = Shape::default();
    for entry in fs_err::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs_err::symlink_metadata(&path).unwrap();
        if metadata.is_dir() {
            let below = counted(&path);
            shape.directories += 1 + below.directories;
            shape.files += below.files;
            shape.symlinks += below.symlinks;
            shape.bytes += below.bytes;
        } else if metadata.is_symlink() {
            assert!(path.exists(), "{} dangles", path.display());
            shape.symlinks += 1;
        } else {
            shape.files += 1;
            shape.bytes += metadata.len();
        }
    }
    shape
}
