//! Sources that are one entry.

use std::path::Path;

use calve_core::{CloneVerification, Strategy};
use calve_testkit::{FileSystem, Tree, Volume, assert_same, fingerprint};
use fs_err as fs;

use crate::cloning::{assert_holds, clone, clone_with, only, options, refused};

/// Compares two entries that are no directories, by way of directories that hold them alone.
fn assert_same_entry(a: &Path, b: &Path) {
    let names = ["a", "b"].map(|name| a.parent().unwrap().join(format!("compare-{name}")));
    for (entry, directory) in [a, b].iter().zip(&names) {
        fs::create_dir(directory).unwrap();
        let linked = rustix::fs::linkat(
            rustix::fs::CWD,
            *entry,
            rustix::fs::CWD,
            directory.join("entry"),
            rustix::fs::AtFlags::empty(),
        );
        linked.unwrap();
        Tree::new(directory).mtime("", 1, 1);
    }
    assert_same(&names[0], &names[1]);
    for directory in names {
        fs::remove_dir_all(directory).unwrap();
    }
}

#[test]
fn a_file_a_link_a_pipe_and_a_device() {
    for file_system in FileSystem::ALL {
        let Some(volume) = Volume::new(file_system) else { return };
        let null = rustix::fs::FileType::CharacterDevice;
        let tree = Tree::new(volume.path())
            .file("file", vec![b'x'; 100_000])
            .xattr("file", "user.kept", b"1")
            .owner("file", 12345, 23456)
            .mode("file", 0o4751)
            .mtime("file", 1_000_000_000, 123)
            .file("empty", "")
            .mode("empty", 0o000)
            .sparse("sparse", 8 << 20, &[(4 << 20, b"island")])
            .symlink("link", "file")
            .mtime("link", 1_000_000_001, 5)
            .symlink("dangling", "nowhere")
            .fifo("pipe")
            .owner("pipe", 5, 6)
            .device("null", null, 1, 3)
            .mtime("pipe", 1_000_000_002, 6);
        for name in ["file", "empty", "sparse", "link", "dangling", "pipe", "null"] {
            let dst = volume.path().join(format!("dst-{name}"));
            let verified = options(|options| options.verify = CloneVerification::Contents);
            let report = clone_with(&verified, tree.path().join(name), &dst);
            assert_eq!(report.entries.unwrap().total(), 1, "{name}");
            assert!(report.warnings.is_empty() && report.changed.is_empty(), "{report:?}");
            assert_same_entry(&tree.path().join(name), &dst);
        }
        assert_eq!(crate::cloning::names_in(volume.path()).iter().filter(|name| name.starts_with('.')).count(), 0);
    }
}

#[test]
fn a_file_with_other_names_is_cloned_as_one() {
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    let tree = Tree::new(volume.path()).file("file", "1").hard_link("other", "file");
    let before = fingerprint(tree.path());
    clone(tree.path().join("file"), volume.path().join("dst"));
    assert_eq!(rustix::fs::lstat(volume.path().join("dst")).unwrap().st_nlink, 1);
    fs::remove_file(volume.path().join("dst")).unwrap();
    let changes = before.changes(&fingerprint(tree.path()));
    assert!(changes.len() <= 1, "only the directory that held the clone: {changes:?}");
}

#[test]
fn a_link_to_a_directory_is_a_link_and_with_a_slash_the_directory() {
    let Some(volume) = Volume::new(FileSystem::Btrfs) else { return };
    Tree::new(volume.path()).file("directory/file", "1").symlink("link", "directory");
    clone(volume.path().join("link"), volume.path().join("a"));
    clone(volume.path().join("link/"), volume.path().join("b"));
    assert_eq!(fs::read_link(volume.path().join("a")).unwrap(), Path::new("directory"));
    assert!(fs::symlink_metadata(volume.path().join("b")).unwrap().is_dir());
    assert_holds(volume.path(), &["directory", "link", "a", "b"]);
    // What only trees have is refused to a file.
    let error = refused(&only(Strategy::Snapshot), volume.path().join("directory/file"), volume.path().join("dst"));
    assert!(error.to_string().contains("not a directory"), "{error}");
    assert_holds(volume.path(), &["directory", "link", "a", "b"]);
}
