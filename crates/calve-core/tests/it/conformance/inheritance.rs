//! What DST's parent bequeaths to new entries, and the process's umask, are not in the clone.

use std::path::Path;
use std::process::Command;

use calve_core::Strategy;
use calve_testkit::{FileSystem, Tree, Volume, assert_same, everything, rsync_differences};
use fs_err as fs;
use rustix::fs::Mode;

use crate::child;
use crate::cloning::{assert_holds, clone_with, only, source_for};

const STRATEGIES: [Strategy; 3] = [Strategy::Snapshot, Strategy::Reflink, Strategy::Copy];

#[test]
#[cfg_attr(any(target_os = "macos", like_macos), ignore = "macOS has no POSIX ACLs")]
fn default_acls_and_groups_of_the_parent_do_not_leak() {
    for file_system in FileSystem::ALL {
        for strategy in STRATEGIES {
            if strategy == Strategy::Snapshot && file_system != FileSystem::Btrfs
                || strategy == Strategy::Reflink && !FileSystem::REFLINKING.contains(&file_system)
            {
                continue;
            }
            let Some(volume) = Volume::new(file_system) else { return };
            let src = source_for(strategy, &volume, "src");
            everything(&src);
            Tree::new(volume.path())
                .dir("parent")
                .owner("parent", 1, 54321)
                .mode("parent", 0o2775)
                .acl("parent", "d:u:12345:rwx,d:g:23456:rw,d:o::rwx");
            let dst = volume.path().join("parent/dst");
            clone_with(&only(strategy), &src, &dst);
            assert_same(&src, &dst);
            assert_eq!(rsync_differences(&src, &dst), "");
            let single = volume.path().join("parent/single");
            clone_with(&only(Strategy::Copy), src.join("modes/0600"), &single);
            assert_eq!(
                crate::cloning::run("getfacl", |getfacl| getfacl.args(["-cn", "--skip-base"]).arg(&single)).trim(),
                ""
            );
            assert_holds(volume.path().join("parent"), &["dst", "single"]);
        }
    }
}

#[test]
#[cfg_attr(any(target_os = "macos", like_macos), ignore = "macOS shares files by clonefile alone")]
fn a_project_of_the_parent_does_not_stand_in_the_way() {
    let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
    let tree = Tree::new(volume.path()).file("src/a/file", vec![b'x'; 50_000]).dir("parent");
    crate::cloning::run("xfs_io", |io| io.args(["-c", "chproj 42", "-c", "chattr +P"]).arg(tree.path().join("parent")));
    clone_with(&only(Strategy::Reflink), tree.path().join("src"), tree.path().join("parent/dst"));
    assert_same(tree.path().join("src"), tree.path().join("parent/dst"));
}

#[test]
#[cfg_attr(any(target_os = "macos", like_macos), ignore = "macOS shares files by clonefile alone")]
fn no_umask_shows_in_a_clone() {
    if let Some(directory) = child::directory() {
        let mask = directory.file_name().unwrap().to_string_lossy().into_owned();
        rustix::process::umask(Mode::from_raw_mode(rustix::fs::RawMode::from_str_radix(&mask, 8).unwrap()));
        let src = directory.parent().unwrap().join("src");
        for (number, strategy) in [Strategy::Copy, Strategy::Reflink].into_iter().enumerate() {
            clone_with(&only(strategy), &src, directory.join(number.to_string()));
            clone_with(&only(strategy), src.join("modes/0777"), directory.join(format!("single-{number}")));
        }
        return;
    }
    let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
    let src = volume.path().join("src");
    everything(&src);
    for mask in ["000", "022", "077", "777"] {
        let directory = volume.path().join(mask);
        fs::create_dir(&directory).unwrap();
        child::run("conformance::inheritance::no_umask_shows_in_a_clone", &directory, |program| Command::new(program));
        for number in 0..2 {
            assert_same(&src, directory.join(number.to_string()));
            assert_eq!(mode(&directory.join(format!("single-{number}"))), 0o777);
        }
    }
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::MetadataExt as _;
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}
