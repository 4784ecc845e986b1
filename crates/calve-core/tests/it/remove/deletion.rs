//! Deleting what resists.

use calve_core::{CloneOptions, Error, RemoveOptions, clone_tree};
use calve_testkit::{FileSystem, Tree, UnprivilegedUser, Volume, everything, fingerprint};
use fs_err as fs;
use rustix::io::Errno;

use super::{reap_in, refused, remove, waiting};
use crate::child;
use crate::cloning::{assert_errno, assert_holds, run};

fn chattr(flags: &str, path: &std::path::Path) {
    run("chattr", |chattr| chattr.arg(flags).arg(path));
}

#[test]
#[cfg_attr(target_os = "macos", ignore = "macOS has no chattr")]
fn an_immutable_file_is_named_and_deleted_when_it_is_no_more() {
    for file_system in [FileSystem::Ext4, FileSystem::Xfs, FileSystem::Btrfs] {
        let Some(volume) = Volume::new(file_system) else { return };
        let tree = Tree::new(volume.path().join("tree")).file("a/stuck", "1").file("a/b/c", "2").file("d", "3");
        chattr("+i", &tree.path().join("a/stuck"));
        let error = refused(tree.path(), &waiting());
        assert_errno(&error, Errno::PERM);
        let Error::Io { path, .. } = &error else { panic!("{error}") };
        assert!(path.ends_with("a/stuck") && path.starts_with(volume.path()), "{error}");
        // Everything else is gone, and the rest is named by a path that exists.
        assert!(path.exists(), "{error}");
        assert_eq!(crate::cloning::names_in(path.parent().unwrap()), ["stuck"]);
        let reaped = reap_in(volume.path());
        assert!(reaped.failure.unwrap().to_string().contains("a/stuck"));
        chattr("-i", path);
        assert!(reap_in(volume.path()).failure.is_none());
        assert_holds(volume.path(), &[]);
    }
}

#[test]
#[cfg_attr(target_os = "macos", ignore = "macOS has no chattr")]
fn trash_that_is_removed_again_leaves_no_lock_of_its_old_name() {
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    let trash = || {
        let names = crate::cloning::names_in(volume.path());
        let (locks, mut trees): (Vec<_>, Vec<_>) =
            names.into_iter().filter(|name| name.contains("trash")).partition(|name| name.ends_with(".lock"));
        assert_eq!((locks.len(), trees.len()), (1, 1), "{locks:?} {trees:?}");
        volume.path().join(trees.remove(0))
    };
    let tree = Tree::new(volume.path().join("tree")).file("d/x/f", "1");
    chattr("+i", &tree.path().join("d/x"));
    refused(tree.path(), &waiting());
    let first = trash();
    refused(&first, &waiting());
    let second = trash();
    assert_ne!(first, second);
    chattr("-i", &second.join("d/x"));
    // A lock whose tree somebody has deleted by hand is not warned of, and goes.
    fs::remove_dir_all(&second).unwrap();
    Tree::new(volume.path().join("source")).file("a", "1");
    let cloned = clone_tree(&volume.path().join("source"), &volume.path().join("dst"), &CloneOptions::default());
    assert_eq!(cloned.unwrap().warnings, []);
    assert_holds(volume.path(), &["source", "dst"]);
}

#[test]
#[cfg_attr(target_os = "macos", ignore = "macOS has no chattr")]
fn an_immutable_directory_cannot_be_moved_and_is_named() {
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    let tree = Tree::new(volume.path().join("tree")).file("file", "1");
    chattr("+i", tree.path());
    let before = fingerprint(tree.path());
    for options in [RemoveOptions::default(), waiting()] {
        assert_errno(&refused(tree.path(), &options), Errno::PERM);
        assert_holds(volume.path(), &["tree"]);
    }
    before.assert_unchanged(tree.path());
    chattr("-i", tree.path());
}

/// As a user who owns the tree and nothing else.
#[test]
fn an_unprivileged_owner_removes_what_is_read_only_to_its_owner() {
    if let Some(directory) = child::directory() {
        let directory = directory.join("theirs");
        for wait in [true, false] {
            let tree = directory.join("tree");
            everything(&tree);
            Tree::new(&tree)
                .file("closed/inside/file", "1")
                .mode("closed/inside", 0o000)
                .mode("closed", 0o400)
                .mode("", 0o500);
            let report = remove(&tree, &if wait { waiting() } else { RemoveOptions::default() });
            assert_eq!(report.trashed.is_none(), wait, "{report:?}");
            let reaped = reap_in(&directory);
            assert!(reaped.failure.is_none(), "{reaped:?}");
            assert_holds(&directory, &[]);
        }
        // A parent that cannot be written to: nothing can be renamed in it, but its descendants can be deleted.
        Tree::new(&directory).file("fixed/tree/a/file", "1").mode("fixed", 0o555);
        let error = refused(directory.join("fixed/tree"), &RemoveOptions::default());
        assert_errno(&error, Errno::ACCESS);
        assert!(error.to_string().contains("remove the emptied directory"), "{error}");
        assert_holds(directory.join("fixed/tree"), &[]);
        return;
    }
    for file_system in FileSystem::ALL {
        let Some(volume) = Volume::new(file_system) else { return };
        Tree::new(volume.path()).dir("theirs").owner("theirs", UnprivilegedUser::UID, UnprivilegedUser::GID);
        let name = "remove::deletion::an_unprivileged_owner_removes_what_is_read_only_to_its_owner";
        child::run_copied(name, &volume, volume.path(), |program| UnprivilegedUser::command(program));
    }
}

#[test]
#[cfg_attr(target_os = "macos", ignore = "macOS has no chattr")]
fn where_the_parent_permits_no_rename_the_tree_is_deleted_in_place() {
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    let tree = Tree::new(volume.path()).file("parent/tree/a/file", "1").file("parent/tree/b", "2");
    // Nothing can be created in it, and nothing renamed or removed; entries of the tree can.
    chattr("+a", &tree.path().join("parent"));
    let error = refused(volume.path().join("parent/tree"), &RemoveOptions::default());
    chattr("-a", &volume.path().join("parent"));
    assert_errno(&error, Errno::PERM);
    assert_holds(volume.path().join("parent/tree"), &[]);
    for name in crate::cloning::names_in(volume.path().join("parent")) {
        assert!(name == "tree" || name.ends_with(".lock"), "{name}");
    }
}

#[test]
fn files_with_other_names_elsewhere_keep_those() {
    let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
    Tree::new(volume.path()).file("kept/file", "1").hard_link("tree/same file", "kept/file").mode("kept/file", 0o400);
    remove(volume.path().join("tree"), &waiting());
    assert_eq!(fs::read_to_string(volume.path().join("kept/file")).unwrap(), "1");
}
