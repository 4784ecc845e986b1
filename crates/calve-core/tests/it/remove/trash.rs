//! The trash: one rename, a lock, and a reaper.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use calve_core::options::Background;
use calve_core::{CancelToken, Error, RemoveOptions, reap};
use calve_testkit::{FileSystem, Tree, Volume, deep, everything, wide};
use fs_err as fs;
use rustix::fs::FlockOperation;

use super::{reap_in, remove, waiting};
use crate::cloning::{assert_holds, has_trash, names_in};

#[test]
fn a_tree_is_renamed_to_a_hidden_sibling_and_reaped_later() {
    for file_system in FileSystem::ALL {
        let Some(volume) = Volume::new(file_system) else { return };
        let tree = volume.path().join("tree");
        everything(&tree);
        let inode = fs::symlink_metadata(&tree).unwrap().ino();
        assert!(!has_trash(volume.path()));
        let report = remove(&tree, &RemoveOptions::default());
        let trashed = report.trashed.unwrap();
        let name = trashed.name.to_str().unwrap();
        assert!(name.starts_with(".calve-trash-"), "{name}");
        let hidden = trashed.parent.join(name);
        assert_eq!(fs::symlink_metadata(&hidden).unwrap().ino(), inode, "it is the same directory, not a copy");
        assert_eq!(fs::symlink_metadata(&hidden).unwrap().permissions().mode() & 0o7777, 0o700);
        assert_eq!(report.deleted, 0);
        assert_holds(volume.path(), &[name, &format!("{name}.lock")]);
        assert!(has_trash(volume.path()));
        let reaped = reap_in(volume.path());
        assert!(reaped.failure.is_none(), "{reaped:?}");
        assert!(reaped.deleted > 100, "{reaped:?}");
        assert_holds(volume.path(), &[]);
        assert!(!has_trash(volume.path()));
        // Waiting means that everything is gone.
        everything(&tree);
        deep(tree.join("deep"), 300);
        let report = remove(&tree, &waiting());
        assert_eq!(report.trashed, None);
        assert!(report.deleted > 400, "{report:?}");
        assert_holds(volume.path(), &[]);
    }
}

#[test]
fn its_time_does_not_grow_with_the_tree() {
    let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
    wide(volume.path().join("tree"), 20_000);
    let tree = volume.path().join("tree");
    let mut fastest = std::time::Duration::MAX;
    // Something else may hold up a single one.
    for _ in 0..50 {
        let report = remove(&tree, &RemoveOptions::default());
        fastest = fastest.min(report.elapsed);
        let trashed = report.trashed.unwrap();
        fs::rename(trashed.parent.join(&trashed.name), &tree).unwrap();
        fs::remove_dir_all(trashed.parent.join(format!("{}.lock", trashed.name.to_string_lossy()))).unwrap();
        if fastest.as_millis() < 10 {
            break;
        }
    }
    assert!(fastest.as_millis() < 100, "{fastest:?}");
    remove(&tree, &waiting());
    assert_holds(volume.path(), &[]);
}

#[test]
fn two_thousand_levels_are_no_obstacle() {
    let Some(volume) = Volume::new(FileSystem::Tmpfs) else { return };
    let tree = volume.path().join("tree");
    let shape = deep(&tree, 2_000);
    // The root, and the file that hides the trash from git.
    assert_eq!(remove(&tree, &waiting()).deleted, shape.files + shape.directories + 1);
    assert_holds(volume.path(), &[]);
}

#[test]
fn trash_that_another_reaper_is_busy_with_is_left_to_it() {
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    Tree::new(volume.path()).file("tree/file", "1");
    let trashed = remove(volume.path().join("tree"), &RemoveOptions::default()).trashed.unwrap();
    let lock = fs::File::open(volume.path().join(format!("{}.lock", trashed.name.to_string_lossy()))).unwrap();
    rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).expect("nobody holds the lock of waiting trash");
    assert_eq!(reap_in(volume.path()).deleted, 0);
    assert!(volume.path().join(&trashed.name).join("file").exists());
    // A process that another test has just forked has it open too.
    rustix::fs::flock(&lock, FlockOperation::Unlock).unwrap();
    reap_in(volume.path());
    assert_holds(volume.path(), &[]);
}

#[test]
fn a_cancelled_reaper_leaves_the_rest_for_the_next() {
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    wide(volume.path().join("tree"), 200);
    remove(volume.path().join("tree"), &RemoveOptions::default());
    let stop = CancelToken::default();
    stop.cancel();
    let parent = fs::File::open(volume.path()).unwrap();
    let result = reap(parent.into_parts().0.into(), volume.path(), Background::No, &stop);
    assert!(matches!(result, Err(Error::Interrupted)), "{result:?}");
    assert!(has_trash(volume.path()));
    reap_in(volume.path());
    assert_holds(volume.path(), &[]);
}

#[test]
fn many_trees_are_reaped_at_once() {
    let Some(volume) = Volume::new(FileSystem::Btrfs) else { return };
    for number in 0..50 {
        let name = format!("tree-{number}");
        Tree::new(volume.path().join(&name)).file("a/b", "1").mode("a", 0o000);
        remove(volume.path().join(name), &RemoveOptions::default());
    }
    let names = names_in(volume.path());
    assert_eq!(names.len(), 100);
    // However old it is: what one reaper did not get to, every later one does.
    names.iter().for_each(|name| drop(Tree::new(volume.path()).mtime(name, 1, 1)));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert!(reap_in(volume.path()).failure.is_none()));
        }
    });
    assert_holds(volume.path(), &[]);
}

/// Whoever removes trash by its hidden name wants nothing of it to stay.
#[test]
fn trash_that_is_removed_by_its_name_goes_with_its_lock() {
    let place = tempfile::tempdir().unwrap();
    let moved = || {
        Tree::new(place.path().join("tree")).file("d/a", "1");
        let trashed = remove(place.path().join("tree"), &RemoveOptions::default()).trashed.unwrap();
        place.path().join(trashed.name)
    };
    remove(moved(), &waiting());
    assert_holds(place.path(), &[]);
    // It becomes other trash, which has a lock of its own.
    let again = remove(moved(), &RemoveOptions::default()).trashed.unwrap();
    let again = again.name.to_str().unwrap();
    assert_holds(place.path(), &[again, &format!("{again}.lock")]);
    // The lock alone is a directory like any other.
    fs::rename(place.path().join(again), place.path().join("kept")).unwrap();
    remove(place.path().join(format!("{again}.lock")), &waiting());
    assert_holds(place.path(), &["kept"]);
}
