//! The overlay mount: writes stay above, and nothing is left when it is taken down.

use std::path::Path;
use std::process::Command;

use calve_core::internal::{OverlayMount, mount_overlay};
use calve_core::{Error, Strategy};
use calve_testkit::{
    Aspect, FileSystem, Tree, UnprivilegedUser, Volume, assert_same, assert_same_except, everything, fingerprint,
};
use fs_err as fs;
use rustix::io::Errno;

use crate::child;
use crate::cloning::{assert_errno, assert_holds, names_in, only, refused};

#[track_caller]
fn mount(src: impl AsRef<Path>, dst: impl AsRef<Path>) -> OverlayMount {
    match mount_overlay(src.as_ref(), dst.as_ref()) {
        Ok(mount) => mount,
        Err(error) => panic!("cannot mount over `{}`: {error}", src.as_ref().display()),
    }
}

/// Writes of every kind, which must not reach the lower tree.
fn write_everywhere(merged: &Path) {
    let path = |name: &str| merged.join(name);
    fs::write(path("changed"), "changed above").unwrap();
    fs::write(path("sub/changed"), "changed above").unwrap();
    fs::write(path("sub/new"), "new").unwrap();
    fs::remove_file(path("deleted")).unwrap();
    fs::remove_dir_all(path("gone")).unwrap();
    fs::create_dir(path("gone")).unwrap();
    fs::write(path("gone/fresh"), "fresh").unwrap();
    fs::rename(path("sub/moved"), path("moved")).unwrap();
    Tree::new(merged).mode("described", 0o600).mtime("described", 1, 2).symlink("link", "changed");
    assert_eq!(names_in(path("gone")), ["fresh"], "what was deleted does not shine through");
    assert!(!path("deleted").exists() && !path("sub/moved").exists());
    assert_eq!(fs::read_to_string(path("changed")).unwrap(), "changed above");
    assert_eq!(fs::read_to_string(path("untouched")).unwrap(), "below");
}

fn lower(at: &Path) -> Tree {
    let mut tree = Tree::new(at);
    for name in ["changed", "deleted", "described", "untouched", "gone/a", "gone/b/c", "sub/changed", "sub/moved"] {
        tree = tree.file(name, "below");
    }
    tree
}

#[test]
fn writes_do_not_reach_the_source_and_unmounting_leaves_nothing() {
    for file_system in FileSystem::ALL {
        let Some(volume) = Volume::new(file_system) else { return };
        let src = lower(&volume.path().join("src"));
        let before = fingerprint(src.path());
        let mounted = mount(src.path(), volume.path().join("dst"));
        assert_eq!(mounted.path(), volume.path().join("dst"));
        write_everywhere(mounted.path());
        let is_own = |name: &String| name.starts_with(".calve-overlay-");
        assert!(names_in(volume.path()).iter().any(is_own), "the changes are beside the mount point");
        mounted.unmount().unwrap();
        assert_holds(volume.path(), &["src"]);
        before.assert_unchanged(src.path());
        drop(mount(src.path(), volume.path().join("dst")));
        assert_holds(volume.path(), &["src"]);
    }
}

#[test]
fn it_shows_everything_as_the_source_has_it() {
    for file_system in FileSystem::ALL {
        let Some(volume) = Volume::new(file_system) else { return };
        let src = volume.path().join("src");
        everything(&src);
        Tree::new(&src).owner("", 12345, 23456).mode("", 0o2751).mtime("", 1_234_567_890, 5);
        let mounted = mount(&src, volume.path().join("dst"));
        // The index that would tie hard links together needs a lower layer that is never exchanged.
        assert_same_except(&src, mounted.path(), &[Aspect::Xattrs, Aspect::Holes]);
        mounted.unmount().unwrap();
        assert_holds(volume.path(), &["src"]);
    }
}

#[test]
fn characters_that_mean_something_to_mount_are_only_characters() {
    let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
    let directory = volume.path().join("a,b:c\\d e=f'\"\n,upperdir=g");
    let src = lower(&directory.join("src:1,2\\"));
    let mounted = mount(src.path(), directory.join("dst:1,2"));
    write_everywhere(mounted.path());
    mounted.unmount().unwrap();
    assert_holds(&directory, &["src:1,2\\"]);
}

#[test]
fn what_cannot_be_mounted_leaves_nothing() {
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    let src = lower(&volume.path().join("src"));
    Tree::new(volume.path()).file("dst", "1");
    let mount = |src: &str, dst: &str| mount_overlay(&volume.path().join(src), &volume.path().join(dst)).unwrap_err();
    assert!(matches!(mount("src", "dst"), Error::DestinationExists(_)));
    assert_errno(&mount("src/changed", "new"), Errno::NOTDIR);
    assert!(matches!(mount("missing", "new"), Error::Missing(_)));
    assert!(matches!(mount("src", "no/new"), Error::ParentMissing(_)));
    // A clone by overlay is refused to those who own no mount.
    let error = refused(&only(Strategy::Overlay), src.path(), volume.path().join("new"));
    assert!(matches!(error, Error::RequirementRefused { .. }), "{error}");
    assert_holds(volume.path(), &["src", "dst"]);
}

#[test]
fn without_privileges_it_works_in_a_user_namespace_and_is_refused_outside() {
    if let Some(directory) = child::directory() {
        let src = lower(&directory.join("src"));
        let before = fingerprint(src.path());
        if rustix::process::geteuid().is_root() {
            let mounted = mount(src.path(), directory.join("dst"));
            write_everywhere(mounted.path());
            mounted.unmount().unwrap();
        } else {
            let error = mount_overlay(src.path(), &directory.join("dst")).unwrap_err();
            assert_errno(&error, Errno::PERM);
            assert!(error.remedy().is_some());
        }
        before.assert_unchanged(src.path());
        assert_holds(&directory, &["src"]);
        fs::remove_dir_all(src.path()).unwrap();
        return;
    }
    for file_system in [FileSystem::Ext4, FileSystem::Xfs, FileSystem::Tmpfs] {
        let Some(volume) = Volume::new(file_system) else { return };
        let theirs = volume.path().join("theirs");
        Tree::new(volume.path()).dir("theirs").owner("theirs", UnprivilegedUser::UID, UnprivilegedUser::GID);
        let name = "overlay::without_privileges_it_works_in_a_user_namespace_and_is_refused_outside";
        child::run_copied(name, &volume, &theirs, |program| UnprivilegedUser::command(program));
        child::run_copied(name, &volume, &theirs, |program| {
            let mut command: Command = UnprivilegedUser::command("unshare");
            command.args(["--user", "--map-root-user", "--mount", "--"]).arg(program);
            command
        });
    }
}

#[test]
fn a_merged_tree_can_itself_be_cloned() {
    let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
    let src = lower(&volume.path().join("src"));
    let mounted = mount(src.path(), volume.path().join("merged"));
    write_everywhere(mounted.path());
    crate::cloning::clone(mounted.path(), volume.path().join("copy"));
    assert_same(mounted.path(), volume.path().join("copy"));
    mounted.unmount().unwrap();
    assert_holds(volume.path(), &["src", "copy"]);
}
