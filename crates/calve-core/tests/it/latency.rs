//! A clone that keeps other threads waiting for short times only.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use calve_core::internal::Latency;
use calve_core::options::Decision;
use calve_core::{CloneOptions, Selection};
use calve_testkit::{FileSystem, Tree, Volume};
use fs_err as fs;

use crate::cloning::{clone_with, options};

/// While the selection asks about the one file, a clone of low latency forces XFS's log again and again, and another one does not.
#[test]
fn the_log_of_xfs_is_forced_during_a_clone() {
    let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
    let src = volume.path().join("src");
    Tree::new(&src).file("file", "contents");
    let statistics = statistics(volume.path());
    let waiting = |latency| -> CloneOptions {
        let statistics = statistics.clone();
        options(|options| {
            options.internal.latency = latency;
            options.select = Some(Selection::new(move |_, _| {
                let before = forces(Path::new(&statistics));
                for _ in 0..6_000 {
                    if latency == Latency::Any || forces(Path::new(&statistics)) > before + 2 {
                        return Decision::Take;
                    }
                    sleep(Duration::from_millis(10));
                }
                Decision::Leave
            }));
        })
    };
    for (latency, name) in [(Latency::Any, "any"), (Latency::Low, "low")] {
        let dst = volume.path().join(name);
        let report = clone_with(&waiting(latency), &src, &dst);
        assert_eq!(report.entries.unwrap().files, 1, "{latency:?}: the log was not forced within a minute");
        assert_eq!(fs::read_to_string(dst.join("file")).unwrap(), "contents");
    }
}

/// Returns where the kernel counts what it does for the XFS that `path` is on.
fn statistics(path: &Path) -> String {
    let device = rustix::fs::stat(path).unwrap().st_dev;
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let block_device = fs::read_link(format!("/sys/dev/block/{major}:{minor}")).unwrap();
    format!("/sys/fs/xfs/{}/stats/stats", block_device.file_name().unwrap().to_str().unwrap())
}

/// Returns how often the log was forced (Documentation/admin-guide/xfs.rst; `xs_log_force`).
fn forces(statistics: &Path) -> u64 {
    let text = fs::read_to_string(statistics).unwrap();
    let log = text.lines().find_map(|line| line.strip_prefix("log ")).unwrap();
    log.split(' ').nth(3).unwrap().parse().unwrap()
}
