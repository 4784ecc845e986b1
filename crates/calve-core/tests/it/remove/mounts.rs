//! Stopping at a mount that appears in the way.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use calve_testkit::{FileSystem, Tree, Volume, fingerprint};
use fs_err as fs;

use super::waiting;

#[test]
fn a_mount_that_appears_below_is_never_crossed() {
    const ROUNDS: usize = 40;
    const MOST_ROUNDS: usize = 2_000;
    let (Some(volume), Some(other)) = (Volume::new(FileSystem::Tmpfs), Volume::new(FileSystem::Tmpfs)) else { return };
    Tree::new(other.path()).file("precious/file", "1").file("file", "2");
    let before = fingerprint(other.path());
    let mut met = 0;
    for round in 0..MOST_ROUNDS {
        if round >= ROUNDS && met > 0 {
            break;
        }
        let directory = volume.path().join(format!("place-{round}"));
        let tree = directory.join("tree");
        for number in 0..60 {
            Tree::new(&tree).file(format!("{number:02}/a/b/file"), "1");
        }
        let points: Vec<_> = ["30/a", "59", "45/a/b"].map(|point| tree.join(point)).into();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                // After the check that comes first; a bind mount keeps its place when the tree is renamed.
                for point in &points {
                    thread::sleep(Duration::from_micros(40 * (round as u64 % 10)));
                    if !done.load(Ordering::Relaxed) {
                        let _ = rustix::mount::mount_bind(other.path(), point);
                    }
                }
            });
            let result = calve_core::remove_tree(&tree, &waiting());
            done.store(true, Ordering::Relaxed);
            met += usize::from(result.is_err());
        });
        before.assert_unchanged(other.path());
        while let Some(point) = mounted_below(&directory) {
            rustix::mount::unmount(&point, rustix::mount::UnmountFlags::DETACH).unwrap();
        }
    }
    assert!(met > 0, "no mount appeared in time");
}

fn mounted_below(directory: &std::path::Path) -> Option<std::path::PathBuf> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mut points = table.lines().filter_map(|line| line.split(' ').nth(4));
    points.rfind(|point| std::path::Path::new(point).starts_with(directory)).map(Into::into)
}
