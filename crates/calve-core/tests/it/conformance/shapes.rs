//! Trees that are large in one way.

use calve_core::Strategy;
use calve_testkit::{FileSystem, Tree, Volume, assert_same, deep, fingerprint, node_modules_like, remove_deep, wide};
use fs_err as fs;

use crate::cloning::{SHARING, clone, clone_with, only, options};

#[test]
#[cfg_attr(like_macos, ignore = "the stand-in for clonefile is slow")]
fn two_hundred_thousand_entries_in_one_directory() {
    let Some(volume) = Volume::with_size(FileSystem::Btrfs, 4 << 30) else { return };
    let [src, dst] = ["src", "dst"].map(|name| volume.path().join(name));
    let shape = wide(&src, 200_000);
    fs::create_dir(src.join("and a directory")).unwrap();
    Tree::new(&src).mtime("", 1_000_000_000, 77);
    let report = clone(&src, &dst);
    let entries = report.entries.unwrap();
    assert_eq!((entries.files, entries.directories), (shape.files, 2));
    assert_eq!(report.bytes.unwrap().apparent, shape.bytes);
    assert_same(&src, &dst);
}

#[test]
#[cfg_attr(any(target_os = "macos", like_macos), ignore = "macOS shares files by clonefile alone")]
fn a_wide_directory_on_file_systems_that_share() {
    for file_system in FileSystem::REFLINKING {
        let Some(volume) = Volume::new(file_system) else { return };
        let [src, dst] = ["src", "dst"].map(|name| volume.path().join(name));
        wide(&src, 10_000);
        Tree::new(&src).hard_link("zz/another name", "entry-0000007").mtime("", 1_000_000_000, 77);
        let report = clone_with(&only(Strategy::Reflink), &src, &dst);
        assert_eq!(report.entries.unwrap().hard_links, 1);
        assert_same(&src, &dst);
    }
}

#[test]
fn two_thousand_levels_which_no_path_can_reach() {
    for (file_system, strategy) in
        [(FileSystem::Ext4, Strategy::Copy), (FileSystem::Xfs, SHARING), (FileSystem::Tmpfs, Strategy::Hardlink)]
    {
        let Some(volume) = Volume::new(file_system) else { return };
        let [src, dst] = ["src", "dst"].map(|name| volume.path().join(name));
        let shape = deep(&src, 2_000);
        let report = clone_with(&only(strategy), &src, &dst);
        if strategy != Strategy::Clonefile {
            assert_eq!(report.entries.unwrap().directories, shape.directories + 1);
        }
        assert_same(&src, &dst);
        remove_deep(&src);
        remove_deep(&dst);
    }
}

#[test]
fn what_is_deep_can_be_verified_and_excluded_from() {
    let Some(volume) = Volume::new(FileSystem::Tmpfs) else { return };
    let [src, dst] = ["src", "dst"].map(|name| volume.path().join(name));
    let shape = deep(&src, 500);
    let picky = options(|options| {
        options.verify = calve_core::CloneVerification::Contents;
        options.exclude = vec!["note".into()];
    });
    let report = clone_with(&picky, &src, &dst);
    assert_eq!((report.skipped.len() as u64, report.entries.unwrap().files), (shape.files, 0));
    remove_deep(&dst);
}

#[test]
fn any_number_of_threads_makes_the_same_tree() {
    let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
    let src = volume.path().join("src");
    node_modules_like(&src, 1_500);
    wide(src.join("wide"), 3_000);
    deep(src.join("deep"), 40);
    let before = fingerprint(&src);
    for threads in [1, 2, 3, 8, 64] {
        let dst = volume.path().join(format!("dst-{threads}"));
        clone_with(&options(|options| options.threads = std::num::NonZeroUsize::new(threads)), &src, &dst);
        assert_same(&src, &dst);
    }
    before.assert_unchanged(&src);
}
