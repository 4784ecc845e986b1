//! What must not be removed, however it is spelled.

use std::env;
use std::path::Path;
use std::process::Command;

use calve_core::error::Protection;
use calve_core::internal::check_removable;
use calve_core::{Error, RemoveOptions, remove_tree};
use calve_testkit::{FileSystem, Tree, Volume, fingerprint};
use fs_err as fs;
use rustix::io::Errno;

use super::{refused, remove, waiting};
use crate::child;
use crate::cloning::{assert_errno, assert_holds};

#[track_caller]
fn is_protected(path: impl AsRef<Path>, options: &RemoveOptions) -> String {
    let error = refused(path.as_ref(), options);
    let Error::Protected { reason, .. } = error else { panic!("{}: {error}", path.as_ref().display()) };
    assert!(matches!(check_removable(path.as_ref(), options), Err(Error::Protected { .. })));
    reason.to_string()
}

#[test]
fn the_root_and_what_has_no_name_of_its_own() {
    let Some(volume) = Volume::new(FileSystem::Tmpfs) else { return };
    Tree::new(volume.path()).file("tree/sub/file", "1").symlink("root", "/");
    let before = fingerprint(volume.path());
    for path in ["/", "//", "/.", "/..", "."] {
        is_protected(path, &RemoveOptions::default());
    }
    for path in ["tree/.", "tree/sub/.."] {
        is_protected(volume.path().join(path), &RemoveOptions::default());
    }
    before.assert_unchanged(volume.path());
}

#[test]
#[cfg_attr(target_os = "macos", ignore = "macOS has no bind mounts")]
fn mount_points_and_whatever_has_one_below() {
    let (Some(volume), Some(other)) = (Volume::new(FileSystem::Ext4), Volume::new(FileSystem::Tmpfs)) else { return };
    Tree::new(other.path()).file("precious", "1");
    Tree::new(volume.path()).file("source/file", "1").dir("tree/a/b c");
    let before = fingerprint(other.path());
    assert!(is_protected(volume.path(), &waiting()).contains("mount point"));
    for (what, at) in [(other.path().to_path_buf(), "tree/a/b c"), (volume.path().join("source"), "tree/a/bound")] {
        let mount = volume.bind(&what, at);
        for path in ["tree", "tree/", "tree/a", "source/../tree"] {
            let reason = is_protected(volume.path().join(path), &waiting());
            assert!(reason.contains(&*mount.path().to_string_lossy()), "{reason}");
        }
        assert!(is_protected(volume.path().join(at), &waiting()).contains("mount point"));
    }
    before.assert_unchanged(other.path());
    assert!(volume.path().join("source/file").exists());
    // A file that is a mount point stays, too.
    Tree::new(volume.path()).file("tree/target", "1");
    let mount = calve_testkit::BindMount::new(volume.path().join("source/file"), volume.path().join("tree/target"));
    assert!(is_protected(volume.path().join("tree"), &waiting()).contains("mounted below"));
    assert_errno(&refused(mount.path(), &waiting()), Errno::BUSY);
    drop(mount);
    assert_holds(volume.path(), &["source", "tree"]);
    remove(volume.path().join("tree"), &waiting());
    assert_holds(volume.path(), &["source"]);
}

#[test]
fn protected_places_and_whatever_contains_one() {
    let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
    Tree::new(volume.path()).file("homes/user/file", "1").symlink("alias", "homes/user").file("homes/other/file", "1");
    let mut options = waiting();
    for protect in ["homes/user", "alias", "alias/../user"] {
        options.protect = vec![volume.path().join("missing"), volume.path().join(protect)];
        for path in ["homes", "homes/user", "homes/./user/", "homes/other/../user"] {
            assert!(is_protected(volume.path().join(path), &options).contains("protected"), "{path}");
        }
    }
    remove(volume.path().join("homes/other"), &options);
    // The link is not what it points to.
    remove(volume.path().join("alias"), &waiting());
    assert_holds(volume.path().join("homes/user"), &["file"]);
}

#[test]
fn an_ancestor_of_the_current_directory() {
    if let Some(directory) = child::directory() {
        env::set_current_dir(directory.join("tree/sub/here")).unwrap();
        for path in [
            directory.join("tree"),
            directory.join("tree/sub"),
            directory.join("tree/sub/here"),
            "../../sub".into(),
            "../here".into(),
        ] {
            assert!(is_protected(&path, &waiting()).contains("current directory"), "{}", path.display());
        }
        remove("../sibling", &waiting());
        return;
    }
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    Tree::new(volume.path()).file("tree/sub/here/file", "1").dir("tree/sub/sibling");
    let name = "remove::refusals::an_ancestor_of_the_current_directory";
    child::run(name, volume.path(), |program| Command::new(program));
    assert_holds(volume.path().join("tree/sub"), &["here"]);
    assert_holds(volume.path().join("tree/sub/here"), &["file"]);
}

#[test]
fn what_is_not_there_is_named() {
    let Some(volume) = Volume::new(FileSystem::Tmpfs) else { return };
    for path in ["missing", "missing/below"] {
        let path = volume.path().join(path);
        let error = refused(&path, &waiting());
        assert!(matches!(&error, Error::Missing(missing) if *missing == path), "{error}");
        assert!(check_removable(&path, &waiting()).is_err());
    }
}

#[test]
fn a_symlink_is_removed_and_not_followed() {
    let Some(volume) = Volume::new(FileSystem::Btrfs) else { return };
    Tree::new(volume.path())
        .file("target/file", "1")
        .symlink("link", "target")
        .symlink("dangling", "nowhere")
        .fifo("pipe");
    let before = fingerprint(volume.path().join("target"));
    // A slash at the end means the directory behind the link, which is not what would go: `rm -r` refuses as well.
    let error = refused(volume.path().join("link/"), &waiting());
    assert!(matches!(error, Error::LinkWithSlash(_)), "{error}");
    for name in ["link", "dangling", "pipe"] {
        let report = remove(volume.path().join(name), &RemoveOptions::default());
        assert_eq!((report.deleted, report.trashed), (1, None));
    }
    before.assert_unchanged(volume.path().join("target"));
    assert_holds(volume.path(), &["target"]);
    fs::remove_file(volume.path().join("target/file")).unwrap();
}

#[test]
#[cfg_attr(any(target_os = "macos", like_macos), ignore = "macOS has no such attributes")]
fn what_cannot_be_removed_is_told_before() {
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    if !calve_testkit::require_root("attributes of files") {
        return;
    }
    Tree::new(volume.path()).file("tree/a", "1").file("closed/a", "1").file("file", "1").file("added/a", "1");
    let chattr = |flag: &str, names: &[&str]| {
        let paths = names.iter().map(|name| volume.path().join(name));
        crate::cloning::run("chattr", |command| command.arg(flag).args(paths));
    };
    let all = ["tree", "closed/a", "file", "added/a"];
    let both = |name: &str| {
        let path = volume.path().join(name);
        (check_removable(&path, &waiting()).is_err(), remove_tree(&path, &waiting()).is_err())
    };
    chattr("+i", &["tree", "closed", "file"]);
    chattr("+a", &["added"]);
    let told = all.map(both);
    chattr("-i", &["tree", "closed", "file"]);
    chattr("-a", &["added"]);
    assert_eq!(told, [(true, true); 4]);
    volume.remount_read_only();
    assert_eq!(all.map(both), [(true, true); 4]);
    volume.remount_writable();
    assert_eq!(all.map(|name| check_removable(&volume.path().join(name), &waiting()).is_ok()), [true; 4]);
}

/// Only looked at, and not by [`is_protected`].
#[test]
fn directories_of_the_system() {
    for path in ["/etc", "/usr", "/usr/../etc/", "/usr/bin/../../var"] {
        match check_removable(Path::new(path), &RemoveOptions::default()) {
            Err(Error::Protected { reason: Protection::System | Protection::MountPoint(_), .. }) => {}
            other => panic!("{path}: {other:?}"),
        }
    }
}
