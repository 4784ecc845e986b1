//! Plain copies are what standard libraries make; merging puts one into a directory that is there.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt};
use std::path::{Path, PathBuf};

use calve_core::internal::{KeptLinks, KeptTimes, KeptXattrs, LeftLinks, OverwriteRule, PlainCopy, merge_tree};
use calve_core::{CloneOptions, Error, Strategy};
use calve_testkit::{FileSystem, Tree, Volume, is_root, require_root};
use fs_err as fs;

use crate::cloning::{clone_with, names_in, options, refused};

const NOTHING: PlainCopy = PlainCopy { times: KeptTimes::None, xattrs: KeptXattrs::No, links: KeptLinks::Verbatim };

fn plain(plain: PlainCopy) -> CloneOptions {
    options(|options| options.internal.plain = Some(plain))
}

/// Type, mode, and contents or target, by path.
fn seen(root: &Path) -> BTreeMap<PathBuf, (u32, String)> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![root.to_path_buf()];
    while let Some(path) = waiting.pop() {
        let stat = fs::symlink_metadata(&path).unwrap();
        let contents = match stat.file_type() {
            kind if kind.is_dir() => {
                waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                String::new()
            }
            kind if kind.is_symlink() => fs::read_link(&path).unwrap().display().to_string(),
            kind if kind.is_fifo() => "FIFO".into(),
            _ => fs::read_to_string(&path).unwrap(),
        };
        found.insert(path.strip_prefix(root).unwrap().to_path_buf(), (stat.mode(), contents));
    }
    found
}

fn source(root: &Path) -> Tree {
    Tree::new(root)
        .file("d/e/deep", "deep")
        .file("d/script", "#!")
        .mode("d/script", 0o4711)
        .file("file", "contents")
        .hard_link("second", "file")
        .symlink("d/up", "../file")
        .symlink("absolute", "/etc/../etc")
        .mode("d/e", 0o2750)
        .mode("d", 0o1777)
}

const LONG_AGO: i64 = 1_000_000_000;

fn is_old(path: &Path) -> bool {
    fs::symlink_metadata(path).unwrap().mtime() == LONG_AGO
}

#[test]
fn a_plain_copy_has_names_contents_modes_and_nothing_else() {
    for file_system in [FileSystem::Btrfs, FileSystem::Xfs, FileSystem::Ext4] {
        let Some(volume) = Volume::new(file_system) else { continue };
        let (src, dst) = (volume.path().join("src"), volume.path().join("dst"));
        source(&src)
            .xattr("file", "user.note", "x")
            .owner("file", 1234, 1234)
            .mtime("file", LONG_AGO, 5)
            .mtime("d", LONG_AGO, 5)
            .mtime("", LONG_AGO, 5);
        // On btrfs, too: a snapshot would have everything.
        let report = clone_with(&plain(NOTHING), &src, &dst);
        assert!(matches!(report.strategy, Strategy::Reflink | Strategy::Copy), "{}", report.strategy);
        assert_eq!(seen(&dst), seen(&src));
        let file = fs::metadata(dst.join("file")).unwrap();
        assert_eq!((file.nlink(), file.uid(), file.gid()), (1, 0, 0));
        assert_eq!(
            rustix::fs::getxattr(dst.join("file"), "user.note", &mut [0; 8][..]),
            Err(rustix::io::Errno::NODATA)
        );
        let begun = fs::metadata(volume.path()).unwrap().mtime();
        for made in ["file", "d", ""].map(|name| dst.join(name)) {
            assert!(fs::symlink_metadata(&made).unwrap().mtime() >= begun - 60, "{}", made.display());
        }
        if volume.file_system() != FileSystem::Ext4 {
            assert_eq!(report.strategy, Strategy::Reflink);
        }
    }
}

#[test]
fn times_and_attributes_are_kept_as_far_as_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let src = folder.path().join("src");
    source(&src).mtime("file", LONG_AGO, 5).mtime("d/up", LONG_AGO, 5).mtime("d", LONG_AGO, 5).mtime("", LONG_AGO, 5);
    for (times, expected) in [(KeptTimes::OfFiles, [true, false, false, false]), (KeptTimes::OfAll, [true; 4])] {
        let dst = folder.path().join(format!("{times:?}"));
        clone_with(&plain(PlainCopy { times, ..NOTHING }), &src, &dst);
        assert_eq!(["file", "d/up", "d", ""].map(|name| is_old(&dst.join(name))), expected);
    }
    let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
    let (src, dst) = (volume.path().join("src"), volume.path().join("dst"));
    source(&src).xattr("file", "user.note", "x");
    clone_with(&plain(PlainCopy { xattrs: KeptXattrs::Yes, ..NOTHING }), &src, &dst);
    assert_eq!(rustix::fs::getxattr(dst.join("file"), "user.note", &mut [0; 8][..]), Ok(1));
}

#[test]
fn links_are_resolved_or_refused_if_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (src, dst) = (folder.path().join("src"), folder.path().join("dst"));
    source(&src);
    clone_with(&plain(PlainCopy { links: KeptLinks::Absolute(src.clone()), ..NOTHING }), &src, &dst);
    assert_eq!(fs::read_link(dst.join("d/up")).unwrap(), src.join("file"));
    assert_eq!(fs::read_link(dst.join("absolute")).unwrap(), Path::new("/etc/../etc"));
    let error = refused(&plain(PlainCopy { links: KeptLinks::Refuse, ..NOTHING }), &src, folder.path().join("other"));
    assert!(matches!(error, Error::NotClonable { .. }), "{error}");
    let (left, other) = (LeftLinks::default(), folder.path().join("other"));
    clone_with(&plain(PlainCopy { links: KeptLinks::Listed(left.clone()), ..NOTHING }), &src, &other);
    let links = left.lock().clone();
    assert_eq!(links, ["absolute", "d/up"].map(PathBuf::from).into());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!([&other, &other.join("d")].map(|directory| mode(directory)), [0o700; 2], "as made");
    assert!(other.join("d").is_dir() && !links.iter().any(|link| other.join(link).is_symlink()));
}

#[test]
fn what_is_no_file_directory_or_link_is_refused_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    for kind in ["fifo", "socket"] {
        let src = folder.path().join(kind);
        let tree = source(&src);
        if kind == "fifo" {
            tree.fifo("d/odd")
        } else {
            tree.socket("d/odd")
        };
        let error = refused(&plain(NOTHING), &src, folder.path().join("dst"));
        assert!(matches!(error, Error::NotClonable { .. }), "{error}");
        assert_eq!(names_in(folder.path()), [kind]);
        fs::remove_dir_all(&src).unwrap();
    }
}

/// A destination that has some of the source's directories and files.
fn destination(root: &Path) -> Tree {
    Tree::new(root).file("own", "own").file("d/script", "mine").file("file", "mine").dir("d/e").mode("d", 0o700)
}

#[test]
fn merging_replaces_files_or_not_and_leaves_directories_as_they_are() {
    let file_systems = [FileSystem::Btrfs, FileSystem::Xfs, FileSystem::Ext4, FileSystem::Tmpfs];
    let volumes: Vec<_> = file_systems.into_iter().filter_map(Volume::new).collect();
    let places = volumes.iter().map(|volume| volume.path().to_path_buf()).chain([std::env::temp_dir()]);
    for place in places {
        for (overwrite, script) in [(OverwriteRule::Yes, "#!"), (OverwriteRule::No, "mine")] {
            let folder = tempfile::tempdir_in(&place).unwrap();
            let (src, dst) = (folder.path().join("src"), folder.path().join("dst"));
            source(&src);
            destination(&dst).hard_link("d/other name", "file");
            merge_tree(&src, &dst, &plain(NOTHING), overwrite).unwrap();
            assert_eq!(names_in(&dst), ["absolute", "d", "file", "own", "second"], "{}", place.display());
            assert_eq!(fs::read_to_string(dst.join("d/script")).unwrap(), script);
            // Replaced, not written to.
            assert_eq!(fs::read_to_string(dst.join("d/other name")).unwrap(), "mine");
            assert_eq!(fs::read_to_string(dst.join("d/e/deep")).unwrap(), "deep");
            assert_eq!(fs::metadata(dst.join("d")).unwrap().permissions().mode() & 0o7777, 0o700);
            assert_eq!(names_in(folder.path()), ["dst", "src"], "what was staged is gone");
        }
    }
}

#[test]
fn a_merge_that_cannot_be_done_leaves_everything_as_it_was() {
    type Spoil = fn(&Path, &Path);
    let spoilers: [(&str, Spoil); 8] = [
        ("a file for a directory", |_, dst| {
            fs::write(dst.join("d/e/deep"), "")
                .and_then(|()| fs::remove_file(dst.join("d/e/deep")))
                .and_then(|()| fs::remove_dir(dst.join("d/e")))
                .and_then(|()| fs::write(dst.join("d/e"), ""))
                .unwrap()
        }),
        ("a directory for a file", |_, dst| fs::create_dir(dst.join("second")).unwrap()),
        ("a file for a link", |_, dst| fs::write(dst.join("absolute"), "").unwrap()),
        ("one file", |src, dst| {
            fs::remove_file(dst.join("file")).and_then(|()| fs::hard_link(src.join("file"), dst.join("file"))).unwrap()
        }),
        ("a set-group-ID directory", |_, dst| {
            fs::set_permissions(dst.join("d"), std::fs::Permissions::from_mode(0o2755)).unwrap()
        }),
        ("a FIFO", |src, _| drop(Tree::new(src).fifo("d/fifo"))),
        ("a link for the destination", |_, dst| {
            fs::rename(dst, dst.with_extension("x")).and_then(|()| std::os::unix::fs::symlink("dst.x", dst)).unwrap()
        }),
        ("a link for a directory", |_, dst| {
            fs::remove_dir(dst.join("d/e")).and_then(|()| std::os::unix::fs::symlink("/", dst.join("d/e"))).unwrap()
        }),
    ];
    for (what, spoil) in spoilers {
        let folder = tempfile::tempdir().unwrap();
        let (src, dst) = (folder.path().join("src"), folder.path().join("dst"));
        source(&src);
        destination(&dst);
        spoil(&src, &dst);
        let before = seen(folder.path());
        merge_tree(&src, &dst, &plain(NOTHING), OverwriteRule::Yes).expect_err(what);
        assert_eq!(seen(folder.path()), before, "{what}");
    }
}

#[test]
fn what_hands_something_down_is_not_merged_into() {
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    let (src, dst) = (volume.path().join("src"), volume.path().join("dst"));
    source(&src);
    destination(&dst).acl("d", "default:user:1234:rwx");
    merge_tree(&src, &dst, &plain(NOTHING), OverwriteRule::Yes).unwrap_err();
    assert_eq!(fs::read_to_string(dst.join("d/script")).unwrap(), "mine");
}

#[test]
fn source_and_destination_of_a_merge_are_not_inside_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let src = folder.path().join("src");
    source(&src);
    let merge = |from: &str, to: &str| {
        merge_tree(&folder.path().join(from), &folder.path().join(to), &plain(NOTHING), OverwriteRule::Yes).unwrap_err()
    };
    assert!(matches!(merge("src", "src"), Error::Same { .. }));
    assert!(matches!(merge("src", "src/d"), Error::DestinationInsideSource { .. }));
    assert!(matches!(merge("src/d", "src"), Error::SourceInsideDestination { .. }));
}

#[test]
fn a_destination_that_changes_type_during_a_merge_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (src, dst) = (folder.path().join("src"), folder.path().join("dst"));
    source(&src);
    destination(&dst);
    let spoiled = dst.clone();
    // The last look is taken between the check and the moves.
    let options = options(|options| {
        options.internal.plain = Some(NOTHING);
        options.internal.before_publish = Some(calve_core::internal::BeforePublish::new(move || {
            fs::remove_file(spoiled.join("d/script")).unwrap();
            fs::create_dir(spoiled.join("d/script")).unwrap();
            fs::create_dir(spoiled.join("second")).unwrap();
        }));
    });
    merge_tree(&src, &dst, &options, OverwriteRule::Yes).unwrap_err();
    assert!(fs::metadata(dst.join("second")).unwrap().is_dir() && fs::metadata(dst.join("d/script")).unwrap().is_dir());
}

#[test]
fn a_directory_that_cannot_be_written_to_is_not_moved() {
    if is_root() {
        // Root may; the tests run a second time as nobody.
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (src, dst) = (folder.path().join("src"), folder.path().join("dst"));
    source(&src).mode("d", 0o555);
    Tree::new(&dst).file("own", "");
    let before = seen(&dst);
    let failed = merge_tree(&src, &dst, &plain(NOTHING), OverwriteRule::Yes);
    fs::set_permissions(src.join("d"), std::fs::Permissions::from_mode(0o755)).unwrap();
    failed.unwrap_err();
    assert_eq!(seen(&dst), before);
}

#[test]
fn a_plain_copy_of_somebody_elses_program_belongs_to_the_caller() {
    if !require_root("a file of another owner") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (src, dst) = (folder.path().join("src"), folder.path().join("dst"));
    Tree::new(&src).file("program", "#!").owner("program", 1234, 1234).mode("program", 0o6755);
    clone_with(&plain(NOTHING), &src, &dst);
    let copy = fs::metadata(dst.join("program")).unwrap();
    assert_eq!((copy.uid(), copy.mode() & 0o7777), (0, 0o6755), "as the standard libraries do");
}
