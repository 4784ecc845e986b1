//! Accidents of other tools, and of this one. Each test names what it guards against.

use std::path::Path;

use calve_core::{RemoveOptions, Strategy, clone_tree, remove_tree};
use calve_testkit::{FileSystem, Tree, Volume, assert_same, fingerprint, spawn_written};
use fs_err as fs;
use rustix::fs::{FileType, Timestamps};

use crate::cloning::{assert_holds, clone, clone_with, names_in, only, options, reap_in, verified};

fn mode(path: impl AsRef<Path>) -> u32 {
    rustix::fs::lstat(path.as_ref()).unwrap().st_mode & 0o7777
}

/// uv#18181: executables were not executable any more.
#[test]
fn executables_stay_executable() {
    for file_system in FileSystem::ALL {
        let Some(volume) = Volume::new(file_system) else { return };
        Tree::new(volume.path().join("src")).file("bin/tool", "#!/bin/sh\nexit 0\n").mode("bin/tool", 0o755);
        for strategy in [Strategy::Copy, Strategy::Reflink] {
            let dst = volume.path().join(strategy.name());
            if clone_tree(&volume.path().join("src"), &dst, &only(strategy)).is_ok() {
                let mut tool = std::process::Command::new(dst.join("bin/tool"));
                assert!(spawn_written(&mut tool).wait().unwrap().success());
            }
        }
    }
}

/// Until it is published, other users cannot look into a clone of a private tree.
#[test]
fn a_staged_tree_is_private() {
    let Some(volume) = Volume::new(FileSystem::Tmpfs) else { return };
    let src = volume.path().join("src");
    calve_testkit::wide(&src, 3_000);
    let directory = volume.path().join("place");
    fs::create_dir(&directory).unwrap();
    let mut seen = 0;
    std::thread::scope(|scope| {
        let work = scope.spawn(|| {
            for number in 0..20 {
                clone(&src, directory.join(format!("dst-{number}")));
            }
        });
        while !work.is_finished() {
            for name in names_in(&directory).into_iter().filter(|name| name.starts_with(".calve-staging-")) {
                if let Ok(stat) = rustix::fs::lstat(directory.join(&name))
                    && rustix::fs::lstat(directory.join(&name)).is_ok_and(|again| again.st_ino == stat.st_ino)
                    && stat.st_mode & 0o077 != 0
                {
                    // The last thing before the rename is the final mode.
                    assert_eq!(stat.st_mode & 0o7777, mode(&src), "{name}");
                }
                seen += 1;
            }
        }
    });
    assert!(seen > 0);
}

/// Sockets and FIFOs hung copiers, or ended them half way.
#[test]
fn sockets_and_pipes_neither_hang_nor_end_it() {
    for file_system in FileSystem::ALL {
        let Some(volume) = Volume::new(file_system) else { return };
        let tree =
            Tree::new(volume.path().join("src")).fifo("a pipe").socket("b socket").file("c", "1").fifo("sub/pipe");
        let report = clone(tree.path(), volume.path().join("dst"));
        assert_eq!(names_in(volume.path().join("dst")), ["a pipe", "c", "sub"]);
        assert_eq!(report.skipped.iter().map(|entry| entry.reason.text()).collect::<Vec<_>>(), ["socket"]);
        assert_eq!(report.entries.unwrap().fifos, 2);
    }
}

/// A linked worktree's `.git` file that was copied drives the parent repository: it arrives as it is, and nothing is written by it.
#[test]
fn a_git_file_is_a_file_like_any_other() {
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    let tree = Tree::new(volume.path())
        .file("main/.git/worktrees/linked/HEAD", "ref: refs/heads/linked\n")
        .file("linked/.git", "gitdir: ../main/.git/worktrees/linked\n");
    let before = fingerprint(tree.path().join("main"));
    clone(tree.path().join("linked"), tree.path().join("copy"));
    remove_tree(&tree.path().join("copy"), &RemoveOptions::default()).unwrap();
    reap_in(tree.path());
    before.assert_unchanged(tree.path().join("main"));
    assert_holds(tree.path(), &["main", "linked"]);
}

/// Clones staged in TMPDIR were cleaned up half way, by their old modification times: they are staged beside DST.
#[test]
fn nothing_is_staged_elsewhere() {
    let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
    let tree = Tree::new(volume.path()).file("src/a/b", vec![b'x'; 50_000]).dir("x/place").dir("x/other");
    Tree::new(tree.path()).mtime("src/a", 0, 0).mtime("src", 0, 0);
    let before = [fingerprint(tree.path().join("src")), fingerprint(tree.path().join("x/other"))];
    clone(tree.path().join("src"), tree.path().join("x/place/dst"));
    before[0].assert_unchanged(tree.path().join("src"));
    before[1].assert_unchanged(tree.path().join("x/other"));
    assert_holds(tree.path(), &["src", "x"]);
}

/// Trash inside a project is not cloned with it.
#[test]
fn trash_inside_the_source_is_not_cloned() {
    let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
    let tree = Tree::new(volume.path().join("src")).file("old/a", "1").file("sub/old/b", "1").file("kept", "1");
    for old in ["old", "sub/old"] {
        remove_tree(&tree.path().join(old), &RemoveOptions::default()).unwrap();
    }
    // Of another user, on another machine.
    Tree::new(tree.path()).dir(".calve-staging-99-b-c-d/x").dir(".calve-staging-99-b-c-d.lock").file(".calve.toml", "");
    for strategy in [Strategy::Reflink, Strategy::Copy, Strategy::Hardlink] {
        let dst = volume.path().join(strategy.name());
        let report = clone_with(&verified(strategy), tree.path(), &dst);
        assert_eq!(names_in(&dst), [".calve.toml", "kept", "sub"]);
        assert_eq!(names_in(dst.join("sub")), [""; 0]);
        assert!(
            report.skipped.iter().all(|skipped| skipped.reason == calve_core::report::SkipReason::CalvesOwn),
            "{:?}",
            report.skipped
        );
        assert!(report.skipped.len() >= 4);
    }
}

/// Node's `fs.cp` makes relative symlinks absolute; others follow them.
#[test]
fn symlinks_are_verbatim() {
    let Some(volume) = Volume::new(FileSystem::Btrfs) else { return };
    let targets = ["../up", "a/./b/../c", "/absolute", "trailing/", "//double", "self"];
    let mut tree = Tree::new(volume.path().join("src"));
    for (number, target) in targets.iter().enumerate() {
        tree = tree.symlink(number.to_string(), target);
    }
    clone(tree.path(), volume.path().join("dst"));
    for (number, target) in targets.iter().enumerate() {
        assert_eq!(fs::read_link(volume.path().join("dst").join(number.to_string())).unwrap(), Path::new(target));
    }
}

/// A silent fallback: a copy under the name of something better (uv on Linux, for a long time; vibe, which probed elsewhere).
#[test]
fn a_copy_is_called_a_copy() {
    let (Some(xfs), Some(ext4)) = (Volume::new(FileSystem::Xfs), Volume::new(FileSystem::Ext4)) else { return };
    Tree::new(xfs.path().join("src")).file("a", vec![b'x'; 100_000]);
    let report = clone(xfs.path().join("src"), ext4.path().join("dst"));
    assert_eq!(report.strategy, Strategy::Copy);
    assert_eq!((report.bytes.unwrap().shared, report.bytes.unwrap().written), (0, 100_000));
    assert!(report.refused.iter().any(|refusal| refusal.strategy == Strategy::Reflink));
}

/// The source's access times say who read it last; a clone is no reader.
#[test]
fn access_times_of_the_source_are_spared() {
    let Some(volume) = Volume::builder(FileSystem::Ext4).mount_option("strictatime").mount() else { return };
    let tree = Tree::new(volume.path().join("src")).file("sub/file", "1").file("large", vec![b'x'; 100_000]);
    let paths = ["", "sub", "sub/file", "large"].map(|path| tree.path().join(path));
    let old = rustix::fs::Timespec { tv_sec: 1_000_000, tv_nsec: 5 };
    for path in &paths {
        let times = Timestamps { last_access: old, last_modification: old };
        rustix::fs::utimensat(rustix::fs::CWD, path, &times, rustix::fs::AtFlags::empty()).unwrap();
    }
    let verified = options(|options| options.verify = calve_core::CloneVerification::Contents);
    clone_with(&verified, tree.path(), volume.path().join("dst"));
    clone_with(&only(Strategy::Hardlink), tree.path(), volume.path().join("linked"));
    for path in &paths {
        assert_eq!(rustix::fs::lstat(path).unwrap().st_atime, 1_000_000, "{}", path.display());
    }
}

/// Files of /proc say that they are empty, and are not.
#[test]
fn files_without_a_size_have_contents() {
    let Some(volume) = Volume::new(FileSystem::Tmpfs) else { return };
    // The first claims to be empty, the second to have a page.
    for (path, changed) in [("/proc/version", 0), ("/sys/kernel/fscaps", 1)] {
        let copy = volume.path().join("copy");
        let report = clone(path, &copy);
        let contents = fs::read(&copy).unwrap();
        assert_eq!(fs::read(path).unwrap(), contents);
        let (bytes, length) = (report.bytes.unwrap(), contents.len() as u64);
        assert_eq!((bytes.apparent, bytes.written, report.changed.len()), (length, length, changed), "{path}");
        fs::remove_file(copy).unwrap();
    }
}

/// Hard links of symlinks and pipes became files of their own (found by this suite).
#[test]
fn links_of_what_is_no_regular_file_are_links() {
    for file_system in FileSystem::ALL {
        let Some(volume) = Volume::new(file_system) else { return };
        let tree = Tree::new(volume.path().join("src"))
            .symlink("a/link", "x")
            .hard_link("b/link", "a/link")
            .fifo("a/pipe")
            .hard_link("b/pipe", "a/pipe")
            .device("a/null", FileType::CharacterDevice, 1, 3)
            .hard_link("b/null", "a/null");
        for strategy in [Strategy::Copy, Strategy::Hardlink] {
            let dst = volume.path().join(strategy.name());
            assert_eq!(clone_with(&only(strategy), tree.path(), &dst).entries.unwrap().hard_links, 3);
            assert_same(tree.path(), &dst);
        }
    }
}
