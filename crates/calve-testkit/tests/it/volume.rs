//! Volumes are what they claim, and leave nothing behind.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use calve_testkit::{FileSystem, Tree, Volume, is_root, require_root};

fn is_mounted(path: &Path) -> bool {
    fs_err::read_to_string("/proc/self/mountinfo").unwrap().contains(&*path.to_string_lossy())
}

#[test]
fn each_is_writable_and_gone_after_its_test() {
    for file_system in FileSystem::ALL {
        let Some(volume) = Volume::with_size(file_system, 1) else {
            continue;
        };
        let path = volume.path().to_path_buf();
        assert!(is_mounted(&path));
        Tree::new(&path).file("file", b"1");
        drop(volume);
        assert!(!is_mounted(&path), "{file_system:?}");
        assert!(!path.parent().unwrap().exists(), "{file_system:?}");
    }
}

#[test]
fn reflinks_are_where_they_should_be() {
    for file_system in FileSystem::ALL {
        let Some(volume) = Volume::new(file_system) else {
            continue;
        };
        Tree::new(volume.path()).file("a", vec![b'a'; 1 << 16]);
        let cp = Command::new("cp").args(["--reflink=always", "a", "b"]).current_dir(volume.path()).output().unwrap();
        assert_eq!(cp.status.success(), FileSystem::REFLINKING.contains(&file_system), "{file_system:?}");
    }
}

#[test]
fn one_is_gone_after_a_panic_too() {
    if !require_root("mounting") {
        return;
    }
    let (send, receive) = std::sync::mpsc::channel();
    let test = thread::spawn(move || {
        let volume = Volume::new(FileSystem::Ext4).unwrap();
        // Even with something mounted in it and something open, in the wrong order.
        let bind = volume.bind("/usr", "usr");
        let file = fs_err::File::create(volume.path().join("open")).unwrap();
        send.send(volume.path().to_path_buf()).unwrap();
        let _order = (volume, bind, file);
        panic!("as planned");
    });
    assert!(test.join().is_err());
    let path: PathBuf = receive.recv().unwrap();
    assert!(!is_mounted(&path) && !path.parent().unwrap().exists());
}

#[test]
fn read_only_refuses_writes_until_undone() {
    let Some(volume) = Volume::new(FileSystem::Btrfs) else {
        return;
    };
    volume.remount_read_only();
    let error = fs_err::write(volume.path().join("a"), b"").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnlyFilesystem);
    volume.remount_writable();
    fs_err::write(volume.path().join("a"), b"").unwrap();
}

#[test]
fn options_reach_mkfs_and_mount() {
    let few = Volume::builder(FileSystem::Ext4).size_bytes(64 << 20).mkfs_args(["-N", "128"]).mount_option("noatime");
    let Some(volume) = few.mount() else { return };
    assert!(rustix::fs::statvfs(volume.path()).unwrap().f_files <= 256);
    let full = (0..1000).find_map(|number| fs_err::write(volume.path().join(number.to_string()), b"").err());
    assert_eq!(full.map(|error| error.kind()), Some(ErrorKind::StorageFull));
    let Some(tmpfs) = Volume::builder(FileSystem::Tmpfs).mount_option("nr_inodes=10").mount() else {
        return;
    };
    assert_eq!(rustix::fs::statvfs(tmpfs.path()).unwrap().f_files, 10);
}

#[test]
fn many_at_once_find_loop_devices() {
    let mounts = (0..12).map(|_| thread::spawn(|| Volume::with_size(FileSystem::Ext4, 1)));
    let volumes: Vec<_> = mounts.collect::<Vec<_>>().into_iter().map(|mount| mount.join().unwrap()).collect();
    if is_root() {
        assert!(volumes.iter().all(Option::is_some));
    }
}

/// Tells [`what_a_killed_run_left_is_swept_by_the_next`] which of its processes it is.
const PART: &str = "CALVE_TEST_PART";

#[test]
fn what_a_killed_run_left_is_swept_by_the_next() {
    match std::env::var(PART).as_deref() {
        Ok("victim") => {
            let _mounted = (Volume::new(FileSystem::Ext4).unwrap(), calve_testkit::FuseVolume::new().unwrap());
            return thread::sleep(Duration::from_secs(60));
        }
        // Its first volume sweeps.
        Ok("next") => return drop(Volume::new(FileSystem::Tmpfs).unwrap()),
        _ => {}
    }
    if !require_root("mounting") {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let run = |part: &str| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "volume::what_a_killed_run_left_is_swept_by_the_next"]).env(PART, part);
        command.env("CALVE_TEST_IMAGES", home.path()).stdout(Stdio::null());
        command
    };
    let left = || fs_err::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let mut victim = run("victim").spawn().unwrap();
    let give_up = Instant::now() + Duration::from_secs(30);
    while left().iter().filter(|path| is_mounted(path)).count() < 2 {
        assert!(Instant::now() < give_up, "nothing was mounted");
        thread::sleep(Duration::from_millis(20));
    }
    assert!(run("next").status().unwrap().success());
    assert_eq!(left().len(), 2, "what belongs to a living process was swept");
    victim.kill().unwrap();
    victim.wait().unwrap();
    let orphans = left();
    assert_eq!(orphans.len(), 2);
    assert!(run("next").status().unwrap().success());
    assert!(orphans.iter().all(|path| !is_mounted(path)));
    assert!(left().is_empty(), "{:?}", left());
}
