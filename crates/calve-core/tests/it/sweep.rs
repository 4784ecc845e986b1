//! The next clone in a place sweeps leftovers of killed processes there, and leaves files of users alone.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use calve_core::{CloneOptions, RemoveOptions, Strategy, clone_tree, remove_tree};
use calve_testkit::{FileSystem, Tree, Volume, fingerprint, node_modules_like};
use fs_err as fs;
use rustix::fs::FlockOperation;

use crate::cloning::{assert_holds, clone, clone_with, names_in, only, reap_in, subvolume};
use crate::rival::while_another;
use calve_core::report::WarningCode;

/// A hidden name as the engine makes it here, learned from a trash that it made: `.calve-staging-<uid>-<machine>-<boot>-…`.
fn staging_name(volume: &Volume, random: &str) -> String {
    let learn = volume.path().join("learn");
    fs::create_dir(&learn).unwrap();
    let trashed = remove_tree(&learn, &RemoveOptions::default()).unwrap().trashed.unwrap();
    reap_all(volume.path());
    let name = trashed.name.into_string().unwrap();
    let (rest, _) = name.rsplit_once('-').unwrap();
    format!("{}-{random}", rest.replacen("-trash-", "-staging-", 1))
}

fn reap_all(directory: &Path) {
    let reaped = reap_in(directory);
    assert!(reaped.failure.is_none(), "{reaped:?}");
}

/// Makes the lock of a staged tree, with the identity of what it protects written down in it.
fn make_lock(staged: &Path) {
    let stat = rustix::fs::lstat(staged).unwrap();
    fs::create_dir_all(lock_of(staged).join(format!("inode-{:x}", stat.st_ino))).unwrap();
}

/// A staged tree of which only the lock tells whether its maker lives.
fn staged(volume: &Volume, name: &str) -> PathBuf {
    let staged = volume.path().join(name);
    Tree::new(&staged)
        .file("half/a file", "1")
        .file("half/read-only/b", "2")
        .mode("half/read-only", 0o500)
        .mode("half", 0o300);
    make_lock(&staged);
    staged
}

fn lock_of(staged: &Path) -> PathBuf {
    let mut name = staged.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

fn hold(lock: &Path) -> OwnedFd {
    let lock = fs::File::open(lock).unwrap();
    rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    lock.into_parts().0.into()
}

#[test]
fn what_a_killed_run_left_is_swept_by_the_next_clone_in_that_place() {
    for file_system in FileSystem::ALL {
        let Some(volume) = Volume::new(file_system) else { return };
        let left = staged(&volume, &staging_name(&volume, "0123456789abcdef"));
        let lone_lock = volume.path().join(format!("{}.lock", staging_name(&volume, "1123456789abcdef")));
        fs::create_dir(&lone_lock).unwrap();
        Tree::new(volume.path()).file("elsewhere/file", "1");
        let report = clone(volume.path().join("elsewhere/file"), volume.path().join("dst"));
        assert_holds(volume.path(), &["elsewhere", "dst"]);
        let swept: Vec<_> = report.warnings.iter().filter(|warning| warning.code == WarningCode::Swept).collect();
        assert_eq!(swept.len(), 1, "{:?}", report.warnings);
        assert_eq!(swept[0].path.as_deref(), Some(&*left));
    }
}

/// After a restart the boot is another one, and so may be the number of the device.
#[test]
fn what_was_left_before_a_restart_is_swept() {
    for file_system in [FileSystem::Ext4, FileSystem::Xfs] {
        let Some(volume) = Volume::new(file_system) else { return };
        let name = staging_name(&volume, "0123456789abcdef");
        let fields: Vec<&str> = name.split('-').collect();
        let [prefix, purpose, user, machine, _, random] = fields[..] else { panic!("{name}") };
        let left = staged(&volume, &[prefix, purpose, user, machine, "00000000", random].join("-"));
        Tree::new(volume.path()).file("elsewhere/file", "1");
        volume.restart();
        assert!(left.exists());
        clone(volume.path().join("elsewhere/file"), volume.path().join("dst"));
        assert_holds(volume.path(), &["elsewhere", "dst"]);
    }
}

/// A user who may rename entries of a directory can give another user's tree a hidden name. It must survive root's next run there.
#[test]
fn a_tree_that_was_only_given_a_hidden_name_is_never_touched() {
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    Tree::new(volume.path()).file("file", "1");
    let without_lock = staged(&volume, &staging_name(&volume, "0123456789abcdef"));
    fs::remove_dir_all(lock_of(&without_lock)).unwrap();
    let exchanged = staged(&volume, &staging_name(&volume, "1123456789abcdef"));
    fs::rename(&exchanged, volume.path().join("what was staged")).unwrap();
    Tree::new(&exchanged).file("precious", "1");
    let foreign_lock = staged(&volume, &staging_name(&volume, "2123456789abcdef"));
    Tree::new(volume.path()).owner(lock_of(&foreign_lock).file_name().unwrap().to_str().unwrap(), 12345, 12345);
    let before = [&without_lock, &exchanged, &foreign_lock].map(fingerprint);
    let report = clone(volume.path().join("file"), volume.path().join("dst"));
    assert!(report.warnings.iter().any(|warning| warning.code == WarningCode::NotSwept), "{:?}", report.warnings);
    for (before, tree) in before.iter().zip([&without_lock, &exchanged, &foreign_lock]) {
        before.assert_unchanged(tree);
    }
}

#[test]
#[cfg_attr(any(target_os = "macos", like_macos), ignore = "macOS has no subvolumes")]
fn a_snapshot_that_a_killed_run_left_is_swept_with_what_is_nested_in_it() {
    let Some(volume) = Volume::new(FileSystem::Btrfs) else { return };
    let left = volume.path().join(staging_name(&volume, "0123456789abcdef"));
    subvolume(&left);
    Tree::new(&left).file("a/file", "1");
    subvolume(left.join("a/nested"));
    // Its identity is not known before it is made, and its maker was killed right after.
    fs::create_dir_all(lock_of(&left).join("subvolume")).unwrap();
    Tree::new(volume.path()).file("file", "1");
    clone(volume.path().join("file"), volume.path().join("dst"));
    assert_holds(volume.path(), &["file", "dst"]);
}

#[test]
fn a_staged_tree_whose_maker_lives_is_never_touched() {
    let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
    let alive = staged(&volume, &staging_name(&volume, "0123456789abcdef"));
    let lock = hold(&lock_of(&alive));
    let before = fingerprint(&alive);
    Tree::new(volume.path()).file("file", "1");
    clone(volume.path().join("file"), volume.path().join("first"));
    before.assert_unchanged(&alive);
    assert!(lock_of(&alive).exists());
    // Not by closing it: a child that another test has just forked holds it until it is another program.
    rustix::fs::flock(&lock, FlockOperation::Unlock).unwrap();
    clone(volume.path().join("file"), volume.path().join("second"));
    assert_holds(volume.path(), &["file", "first", "second"]);
}

#[test]
fn names_of_other_users_and_machines_and_purposes_are_never_touched() {
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    let own = staging_name(&volume, "0123456789abcdef");
    let fields: Vec<&str> = own.split('-').collect();
    let [prefix, purpose, user, machine, boot, random] = fields[..] else { panic!("{own}") };
    let other_user = (rustix::process::geteuid().as_raw() + 1).to_string();
    let unlike = [
        [prefix, purpose, &other_user, machine, boot, random].join("-"),
        [prefix, purpose, user, "00000000", "00000000", random].join("-"),
        [prefix, "overlay", user, machine, boot, random].join("-"),
        [prefix, "unknown", user, machine, boot, random].join("-"),
        [prefix, purpose, user, machine, boot, "0123"].join("-"),
        [prefix, purpose, user, machine, boot, random, "more"].join("-"),
        ".calve".to_owned(),
        ".calve-staging".to_owned(),
    ];
    for name in &unlike {
        staged(&volume, name);
    }
    let names = names_in(volume.path());
    let before = fingerprint(volume.path());
    Tree::new(volume.path()).file("file", "1");
    clone(volume.path().join("file"), volume.path().join("dst"));
    fs::remove_file(volume.path().join("file")).unwrap();
    fs::remove_file(volume.path().join("dst")).unwrap();
    assert_eq!(names_in(volume.path()), names);
    let changes = before.changes(&fingerprint(volume.path()));
    assert!(changes.iter().all(|change| change.starts_with("`.`") || change.starts_with("``")), "{changes:?}");
    // The same machine after a restart, and another container on this kernel.
    for name in [
        [prefix, purpose, user, machine, "00000000", random].join("-"),
        [prefix, purpose, user, "00000000", boot, random].join("-"),
    ] {
        let left = staged(&volume, &name);
        Tree::new(volume.path()).file("file", "1");
        clone(volume.path().join("file"), volume.path().join("dst"));
        assert!(!left.exists(), "{name}");
        fs::remove_file(volume.path().join("dst")).unwrap();
    }
}

#[test]
#[cfg_attr(target_os = "macos", ignore = "macOS has no bind mounts")]
fn a_hidden_name_that_is_a_link_or_a_mount_leads_nowhere() {
    let (Some(volume), Some(other)) = (Volume::new(FileSystem::Ext4), Volume::new(FileSystem::Tmpfs)) else { return };
    Tree::new(other.path()).file("precious/file", "1");
    let before = fingerprint(other.path());
    let link = staging_name(&volume, "0123456789abcdef");
    Tree::new(volume.path()).file("file", "1").symlink(&link, other.path()).dir(format!("{link}.lock"));
    let mounted = staging_name(&volume, "1123456789abcdef");
    let below = staging_name(&volume, "2123456789abcdef");
    for name in [&mounted, &below] {
        Tree::new(volume.path()).dir(name);
        make_lock(&volume.path().join(name));
    }
    let mounts =
        (volume.bind(other.path(), &mounted), volume.bind(other.path().join("precious"), format!("{below}/sub")));
    let report = clone(volume.path().join("file"), volume.path().join("dst"));
    assert!(report.warnings.iter().any(|warning| warning.code == WarningCode::NotSwept), "{:?}", report.warnings);
    drop(mounts);
    before.assert_unchanged(other.path());
    fs::remove_file(volume.path().join("dst")).unwrap();
    clone(volume.path().join("file"), volume.path().join("dst"));
    // No run of Calve makes a link of that name: it is a user's, and stays.
    assert_holds(volume.path(), &["file", "dst", &link, &format!("{link}.lock")]);
}

/// A directory in which both a slow clone is made and quick ones sweep.
fn sweeping_while_staging(file_system: FileSystem, rounds: usize) {
    let Some(volume) = Volume::new(file_system) else { return };
    let src = volume.path().join("src");
    node_modules_like(&src, 40);
    Tree::new(volume.path()).file("tiny", "1").dir("place");
    let directory = volume.path().join("place");
    let sweeps = AtomicUsize::new(0);
    let sweep = || {
        let dst = directory.join("quick");
        clone_with(&CloneOptions::default(), volume.path().join("tiny"), &dst);
        fs::remove_file(&dst).unwrap();
        reap_all(&directory);
        sweeps.fetch_add(1, Ordering::Relaxed);
    };
    while_another(sweep, || {
        for round in 0..10 * rounds {
            // The other thread may have had little time for it.
            if round >= rounds && sweeps.load(Ordering::Relaxed) >= rounds / 4 {
                break;
            }
            let dst = directory.join("slow");
            if let Err(error) = clone_tree(&src, &dst, &only(Strategy::Copy)) {
                panic!("round {round}: {error}");
            }
            remove_tree(&dst, &RemoveOptions::default()).unwrap();
        }
    });
    assert!(sweeps.into_inner() >= rounds / 4, "too few sweeps to tell");
    reap_all(&directory);
    assert_holds(&directory, &[]);
}

#[test]
fn sweeping_a_thousand_times_while_another_is_staging_loses_nothing() {
    sweeping_while_staging(FileSystem::Tmpfs, 1_000);
    sweeping_while_staging(FileSystem::Btrfs, 200);
}

#[test]
#[cfg_attr(target_os = "macos", ignore = "APFS and HFS+ refuse names that are not UTF-8")]
fn names_that_no_utf8_can_hold_are_passed_over() {
    use std::os::unix::ffi::OsStrExt;
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    let odd = std::ffi::OsStr::from_bytes(b".calve-staging-\xff");
    Tree::new(volume.path()).file("file", "1").dir(odd);
    clone(volume.path().join("file"), volume.path().join("dst"));
    assert!(volume.path().join(odd).exists());
}
