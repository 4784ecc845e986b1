//! Sources and destinations that make no sense are refused before anything is made.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{thread, time::Duration};

use calve_core::internal::BeforePublish;
use calve_core::{CancelToken, Choice, CloneOptions, Error, ExistingDestination, Strategy, clone_tree};
use calve_testkit::{FileSystem, Tree, Volume, deep, fingerprint, node_modules_like};
use fs_err as fs;
use rustix::io::Errno;

use crate::cloning::{assert_errno, assert_holds, options, refused, replacing};

const BOTH: [ExistingDestination; 2] = [ExistingDestination::Refuse, ExistingDestination::Replace];

fn with(existing: ExistingDestination) -> CloneOptions {
    options(|options| options.existing = existing)
}

fn volume() -> Option<Volume> {
    let volume = Volume::new(FileSystem::Btrfs)?;
    Tree::new(volume.path()).file("src/sub/file", "contents");
    Some(volume)
}

#[test]
fn a_destination_that_exists_or_has_no_parent_or_name_is_refused() {
    let Some(volume) = volume() else { return };
    let tree = Tree::new(volume.path())
        .dir("empty directory")
        .file("file", "")
        .symlink("dangling", "nowhere")
        .symlink("link to the source", "src")
        .symlink("link to a file", "file")
        .fifo("pipe");
    let before = fingerprint(tree.path());
    for name in ["empty directory", "file", "dangling", "link to the source", "link to a file", "pipe"] {
        let dst = volume.path().join(name);
        for src in ["src", "src/sub/file"] {
            let error = refused(&CloneOptions::default(), volume.path().join(src), &dst);
            assert!(matches!(&error, Error::DestinationExists(path) if *path == dst), "{error}");
            assert!(error.remedy().is_some());
        }
    }
    for existing in BOTH {
        let error = refused(&with(existing), volume.path().join("src"), volume.path().join("no/dst"));
        assert!(matches!(&error, Error::ParentMissing(path) if *path == volume.path().join("no")), "{error}");
        let error = refused(&with(existing), volume.path().join("src"), volume.path().join("src/sub/file/dst"));
        assert_errno(&error, Errno::NOTDIR);
        for dst in ["/", "empty directory/.", "empty directory/.."] {
            let error = refused(&with(existing), volume.path().join("src"), volume.path().join(dst));
            assert!(matches!(error, Error::DestinationExists(_) | Error::Protected { .. }), "{dst}: {error}");
        }
    }
    before.assert_unchanged(volume.path());
}

#[test]
fn a_source_that_is_not_there_or_cannot_be_cloned_is_named() {
    let Some(volume) = volume() else { return };
    let tree =
        Tree::new(volume.path()).socket("socket").symlink("dangling", "nowhere").symlink("to a file", "src/sub/file");
    let before = fingerprint(tree.path());
    let dst = volume.path().join("dst");
    for missing in ["missing", "missing/below", "missing/"] {
        let src = volume.path().join(missing);
        let error = refused(&CloneOptions::default(), &src, &dst);
        assert!(matches!(&error, Error::Missing(path) if *path == src), "{error}");
    }
    // With a slash the directory behind the link is meant.
    let error = refused(&CloneOptions::default(), volume.path().join("dangling/"), &dst);
    assert!(matches!(error, Error::Missing(_)), "{error}");
    assert_errno(&refused(&CloneOptions::default(), volume.path().join("to a file/"), &dst), Errno::NOTDIR);
    let error = refused(&CloneOptions::default(), volume.path().join("socket"), &dst);
    assert!(matches!(error, Error::NotClonable { kind: "socket", .. }), "{error}");
    before.assert_unchanged(volume.path());
}

#[test]
#[cfg_attr(target_os = "macos", ignore = "macOS has no bind mounts")]
fn the_source_and_what_is_inside_it_are_no_destination_however_they_are_spelled() {
    let Some(volume) = volume() else { return };
    Tree::new(volume.path()).symlink("alias", "src/sub").symlink("other", ".").dir("elsewhere");
    let bounds = (volume.bind(volume.path().join("src"), "bound"), volume.bind(volume.path(), "all"));
    let before = fingerprint(volume.path().join("src"));
    for existing in BOTH {
        for dst in
            ["src/dst", "src/sub/dst", "src/sub/../dst", "alias/dst", "other/src/dst", "bound/dst", "bound/sub/dst"]
        {
            let error = refused(&with(existing), volume.path().join("src"), volume.path().join(dst));
            assert!(matches!(error, Error::DestinationInsideSource { .. }), "{dst}: {error}");
        }
        for dst in ["src", "src/", "./src", "other/src", "elsewhere/../src", "all/src"] {
            let error = refused(&with(existing), volume.path().join("src"), volume.path().join(dst));
            assert!(matches!(error, Error::Same { .. }), "{dst}: {error}");
        }
        for dst in ["src/sub/file", "other/src/sub/file", "all/src/sub/file"] {
            let error = refused(&with(existing), volume.path().join("src/sub/file"), volume.path().join(dst));
            assert!(matches!(error, Error::Same { .. }), "{dst}: {error}");
        }
    }
    drop(bounds);
    before.assert_unchanged(volume.path().join("src"));
}

/// Peers have filled disks by cloning a clone into itself, without end.
#[test]
#[cfg_attr(any(target_os = "macos", like_macos), ignore = "macOS has no bind mounts")]
fn a_bind_mount_of_a_part_of_the_source_is_inside_it_too() {
    for strategy in [Strategy::Copy, Strategy::Reflink] {
        let Some(volume) = volume() else { return };
        let bound = volume.bind(volume.path().join("src/sub"), "bound");
        let before = fingerprint(volume.path().join("src"));
        // Should it not be noticed, the clone has to end for the test to tell.
        let stop = CancelToken::default();
        let done = Arc::new(AtomicBool::new(false));
        let watch = thread::spawn({
            let (stop, done) = (stop.clone(), Arc::clone(&done));
            move || {
                for _ in 0..6_000 {
                    if done.load(Ordering::Relaxed) {
                        return;
                    }
                    thread::sleep(Duration::from_millis(10));
                }
                stop.cancel();
            }
        });
        let options = options(|options| {
            options.strategy = Choice::Only(strategy);
            options.cancel = stop;
        });
        let error = refused(&options, volume.path().join("src"), volume.path().join("bound/dst"));
        done.store(true, Ordering::Relaxed);
        watch.join().unwrap();
        assert!(matches!(error, Error::DestinationInsideSource { .. }), "{error}");
        drop(bound);
        assert_eq!(before.changes(&fingerprint(volume.path().join("src"))), Vec::<String>::new());
    }
}

#[test]
#[cfg_attr(any(target_os = "macos", like_macos), ignore = "macOS has no bind mounts")]
fn a_source_inside_the_destination_is_refused() {
    let Some(volume) = volume() else { return };
    let before = fingerprint(volume.path());
    for src in ["src/sub", "src/sub/file"] {
        let error = refused(&replacing(), volume.path().join(src), volume.path().join("src"));
        assert!(matches!(error, Error::SourceInsideDestination { .. }), "{src}: {error}");
    }
    before.assert_unchanged(volume.path());
    let bound = volume.bind(volume.path().join("src/sub"), "bound");
    for src in ["bound", "bound/file"] {
        let error = refused(&replacing(), volume.path().join(src), volume.path().join("src"));
        assert!(matches!(error, Error::SourceInsideDestination { .. }), "{src}: {error}");
    }
    drop(bound);
    assert_holds(volume.path().join("src/sub"), &["file"]);
}

#[test]
fn a_link_does_not_replace_what_it_leads_to() {
    let Some(volume) = volume() else { return };
    Tree::new(volume.path())
        .symlink("to", "src")
        .symlink("in", "src/sub")
        .symlink("at", "src/sub/file")
        .symlink("gone", "no")
        .symlink("via", "to")
        .symlink("src/out", "../gone")
        .symlink("through", "src/out");
    let before = fingerprint(volume.path());
    let within = [("to", "src"), ("in", "src"), ("at", "src"), ("at", "src/sub"), ("at", "src/sub/file")];
    for (link, dst) in
        [("via", "to"), ("via", "src"), ("through", "src"), ("through", "gone")].into_iter().chain(within)
    {
        let error = refused(&replacing(), volume.path().join(link), volume.path().join(dst));
        assert!(matches!(error, Error::Same { .. } | Error::SourceInsideDestination { .. }), "{link} {dst}: {error}");
    }
    before.assert_unchanged(volume.path());
    let replace = |link, dst| clone_tree(&volume.path().join(link), &volume.path().join(dst), &replacing()).unwrap();
    replace("gone", "src/sub/file");
    replace("to", "at");
}

#[test]
fn a_read_only_file_system_is_named() {
    let Some(volume) = volume() else { return };
    volume.remount_read_only();
    let error = refused(&CloneOptions::default(), volume.path().join("src"), volume.path().join("dst"));
    assert_errno(&error, Errno::ROFS);
    assert!(error.to_string().contains(&*volume.path().to_string_lossy()), "{error}");
    assert_eq!(error.remedy(), Some(calve_core::error::Remedy::ChooseWritableFileSystem));
}

#[test]
fn a_source_on_a_read_only_file_system_can_be_cloned_elsewhere() {
    let (Some(from), Some(to)) = (volume(), Volume::new(FileSystem::Xfs)) else { return };
    from.remount_read_only();
    crate::cloning::clone(from.path().join("src"), to.path().join("dst"));
    calve_testkit::assert_same(from.path().join("src"), to.path().join("dst"));
}

#[test]
#[cfg_attr(any(target_os = "macos", like_macos), ignore = "clonefile counts nothing")]
fn what_is_cancelled_at_the_last_look_gets_no_name() {
    for file_system in FileSystem::ALL {
        let Some(volume) = Volume::new(file_system) else { return };
        let (src, dst) = (volume.path().join("src"), volume.path().join("dst"));
        Tree::new(&src).file("sub/file", "contents");
        Tree::new(&dst).file("old", "contents");
        let old = fingerprint(&dst);
        for (existing, target) in [(ExistingDestination::Replace, "dst"), (ExistingDestination::Refuse, "new")] {
            let mut options = with(existing);
            let (stop, progress) = (options.cancel.clone(), Arc::clone(&options.progress));
            options.internal.before_publish = Some(BeforePublish::new(move || {
                assert_eq!(progress.entries(), 3, "all is made by then");
                stop.cancel();
            }));
            assert!(matches!(refused(&options, &src, volume.path().join(target)), Error::Interrupted));
            assert_holds(volume.path(), &["src", "dst"]);
        }
        old.assert_unchanged(&dst);
    }
}

#[test]
fn a_cancelled_clone_leaves_nothing() {
    for file_system in FileSystem::ALL {
        let Some(volume) = Volume::new(file_system) else { return };
        let src = volume.path().join("src");
        node_modules_like(&src, 1_000);
        deep(src.join("deep"), 60);
        let before = fingerprint(&src);
        let mut interrupted = 0;
        let delays = [0, 1, 3, 10, 30, 60, 100, 200];
        for (round, delay) in delays.into_iter().cycle().take(20 * delays.len()).enumerate() {
            if round >= delays.len() && interrupted > 0 {
                break;
            }
            let stop = CancelToken::default();
            let options = options(|options| options.cancel = stop.clone());
            let result = thread::scope(|scope| {
                scope.spawn(|| {
                    thread::sleep(Duration::from_millis(delay));
                    stop.cancel();
                });
                calve_core::clone_tree(&src, &volume.path().join("dst"), &options)
            });
            match result {
                Err(Error::Interrupted) => {
                    interrupted += 1;
                    assert_holds(volume.path(), &["src"]);
                }
                Err(other) => panic!("{other}"),
                Ok(_) => {
                    assert_holds(volume.path(), &["src", "dst"]);
                    calve_testkit::remove_deep(volume.path().join("dst"));
                }
            }
        }
        assert!(interrupted > 0, "no clone on {} was interrupted", file_system.name());
        before.assert_unchanged(&src);
        calve_testkit::remove_deep(&src);
        let _ = fs::remove_dir(volume.path().join("lost+found"));
    }
}
