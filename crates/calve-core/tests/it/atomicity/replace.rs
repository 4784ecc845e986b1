//! `ExistingDestination::Replace`: the old tree and the new one change places in one step.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use calve_core::{CloneOptions, Error};
use calve_testkit::{BindMount, FileSystem, Tree, Volume, assert_same, few_rounds, fingerprint, rounds};
use fs_err as fs;

use crate::cloning::{assert_holds, clone_with, has_trash, names_in, reap_in, refused, replacing};

#[test]
fn a_reader_sees_the_old_tree_or_the_new_one_and_never_neither() {
    let rounds = rounds(200);
    for file_system in FileSystem::ALL {
        let Some(volume) = Volume::new(file_system) else { return };
        let [red, blue, dst] = ["red", "blue", "dst"].map(|name| volume.path().join(name));
        for colour in [&red, &blue] {
            let name = colour.file_name().unwrap().as_encoded_bytes();
            Tree::new(colour).file("marker", name).file("last", name);
        }
        clone_with(&CloneOptions::default(), &red, &dst);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut seen = std::collections::BTreeMap::<String, usize>::new();
                while !done.load(Ordering::Relaxed) {
                    // One open directory is one tree; both files are in it, and agree.
                    let tree =
                        rustix::fs::open(&dst, rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty()).unwrap();
                    let colour = fs::read_to_string(dst.join("marker")).unwrap();
                    for name in ["marker", "last"] {
                        rustix::fs::accessat(&tree, name, rustix::fs::Access::EXISTS, rustix::fs::AtFlags::empty())
                            .unwrap();
                    }
                    *seen.entry(colour).or_default() += 1;
                }
                seen
            });
            for round in 0..rounds {
                let src = if round % 2 == 0 { &blue } else { &red };
                let report = clone_with(&replacing(), src, &dst);
                assert!(report.trashed.is_some(), "the old tree went to the trash");
                // A reader that is in the old tree may stay there.
                assert_same(src, &dst);
            }
            done.store(true, Ordering::Relaxed);
            let seen = reader.join().unwrap();
            assert!(seen.keys().all(|colour| colour == "red" || colour == "blue"), "{seen:?}");
            assert!(few_rounds() || seen.len() == 2, "the reader saw both trees: {seen:?}");
        });
        assert!(has_trash(volume.path()));
        let reaped = reap_in(volume.path());
        assert!(reaped.failure.is_none() && reaped.deleted >= rounds as u64 * 3, "{reaped:?}");
        assert!(!has_trash(volume.path()));
        assert_holds(volume.path(), &["red", "blue", "dst"]);
    }
}

#[test]
fn what_was_replaced_waits_whole_in_the_trash() {
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    let [src, dst] = ["src", "dst"].map(|name| volume.path().join(name));
    Tree::new(&src).file("new", "new");
    Tree::new(&dst).file("old/file", "old");
    let trashed = clone_with(&replacing(), &src, &dst).trashed.unwrap();
    assert_eq!(trashed.parent, volume.path());
    assert_eq!(fs::read_to_string(trashed.parent.join(trashed.name).join("old/file")).unwrap(), "old");
    assert_eq!(names_in(&dst), ["new"]);
    // Where nothing is, it is an ordinary clone.
    let absent = volume.path().join("absent");
    assert_eq!(clone_with(&replacing(), &src, &absent).trashed, None);
    assert_same(&src, absent);
}

#[test]
fn any_kind_of_thing_is_replaced_by_any_other() {
    let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
    let tree = Tree::new(volume.path())
        .file("src-directory/inside", "1")
        .file("src-file", "2")
        .symlink("src-link", "nowhere")
        .fifo("src-pipe")
        .file("outside/safe", "3")
        .file("outside file", "4");
    let outside = fingerprint(tree.path().join("outside"));
    for old in ["directory", "file", "link", "link to a file", "dangling link", "pipe"] {
        for new in ["src-directory", "src-file", "src-link", "src-pipe"] {
            let dst = volume.path().join("dst");
            let tree = Tree::new(volume.path());
            let _ = match old {
                "directory" => tree.file("dst/old", "old").mode("dst", 0o500),
                "file" => tree.file("dst", "old"),
                "link" => tree.symlink("dst", "outside"),
                "link to a file" => tree.symlink("dst", "outside file"),
                "dangling link" => tree.symlink("dst", "not yet there"),
                _ => tree.fifo("dst"),
            };
            clone_with(&replacing(), volume.path().join(new), &dst);
            let made = fs::symlink_metadata(&dst).unwrap().file_type();
            assert_eq!(made, fs::symlink_metadata(volume.path().join(new)).unwrap().file_type(), "{old} by {new}");
            let _ = fs::remove_file(&dst).or_else(|_| fs::remove_dir_all(&dst));
            reap_in(volume.path());
            let kept = ["src-directory", "src-file", "src-link", "src-pipe", "outside", "outside file"];
            assert_holds(volume.path(), &kept);
        }
    }
    // Writes never go through a link.
    outside.assert_unchanged(volume.path().join("outside"));
    assert_eq!(fs::read_to_string(volume.path().join("outside file")).unwrap(), "4");
}

#[test]
#[cfg_attr(target_os = "macos", ignore = "macOS has no bind mounts")]
fn what_must_not_be_removed_is_not_replaced_either() {
    let (Some(volume), Some(elsewhere)) = (Volume::new(FileSystem::Ext4), Volume::new(FileSystem::Tmpfs)) else {
        return;
    };
    let [src, dst] = ["src", "dst"].map(|name| volume.path().join(name));
    Tree::new(&src).file("a", "a");
    Tree::new(&dst).file("kept/b", "b");
    let mut protecting = replacing();
    protecting.protect = vec![dst.join("kept")];
    assert!(matches!(refused(&protecting, &src, &dst), Error::Protected { .. }));
    {
        let _mount = BindMount::new(&src, dst.join("kept"));
        assert!(matches!(refused(&replacing(), &src, &dst), Error::Protected { .. }));
    }
    let before = fingerprint(&dst);
    {
        let _mount = BindMount::new(elsewhere.path(), &dst);
        assert!(matches!(refused(&replacing(), &src, &dst), Error::Protected { .. }));
    }
    before.assert_unchanged(&dst);
    assert_holds(volume.path(), &["src", "dst"]);
}
