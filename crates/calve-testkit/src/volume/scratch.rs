//! The directory of one test file system, `calve-test-<pid>-<start time>-<number>-<what>`. The start time tells its
//! maker from a later process with the same id.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, process};

use fs_err as fs;

use crate::mounts::{mounted_below, unmount};
use crate::must::must;
use crate::sys::{abandon, detach, mount_points, start_time, unshare_mounts};

const PREFIX: &str = "calve-test-";
/// hdiutil(1) gives a sparse image this suffix.
const IMAGE: &str = "image.sparseimage";
const MOUNT_POINT: &str = "mnt";

#[derive(Debug)]
pub(crate) struct Scratch {
    dir: PathBuf,
    mount_point: PathBuf,
}

impl Scratch {
    pub(crate) fn new(what: &str) -> Self {
        static SWEEP: Once = Once::new();
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        SWEEP.call_once(|| sweep(&home()));
        let pid = process::id();
        let start = start_time(pid).unwrap_or_else(|| panic!("the system does not tell when process {pid} began"));
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = home().join(format!("{PREFIX}{pid}-{start}-{number}-{what}"));
        let mount_point = dir.join(MOUNT_POINT);
        must(fs::create_dir_all(&mount_point), "create", &mount_point);
        Self { dir, mount_point }
    }

    pub(crate) fn image(&self) -> PathBuf {
        self.dir.join(IMAGE)
    }

    pub(crate) fn mount_point(&self) -> &Path {
        &self.mount_point
    }
}

/// Gives this thread, and programs that it starts later, mounts of their own. Needs root. A container that another
/// process starts then cannot copy these mounts, which would keep their loop devices busy until it ends.
pub fn isolate_mounts() {
    let root = Path::new("/");
    must(unshare_mounts(), "unshare the mounts of", root);
    // Nor must this thread keep other tests' mounts busy, or find images of the packages' tests in closed directories:
    // another user's mkfs.btrfs looks at the image of every loop device that is mounted.
    let temporary = must(fs::canonicalize(env::temp_dir()), "resolve", &env::temp_dir());
    let is_scratch = |part: &OsStr| part.as_encoded_bytes().starts_with(PREFIX.as_bytes());
    let is_of_test = |point: &Path| {
        point.iter().any(is_scratch) || point.strip_prefix(&temporary).is_ok_and(|rest| !rest.as_os_str().is_empty())
    };
    let tests = mount_points().into_iter().rev().filter(|point| is_of_test(point));
    tests.for_each(|point| detach(&point));
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A panicking test may have left mounts inside.
        for point in mounted_below(&self.dir) {
            unmount(&point);
        }
        remove(&self.dir);
    }
}

/// Returns the directory for images, `CALVE_TEST_IMAGES` or the temporary directory, by its real path, as in the mount
/// table. An image inside another image is slow.
fn home() -> PathBuf {
    let home = env::var_os("CALVE_TEST_IMAGES").map_or_else(env::temp_dir, PathBuf::from);
    must(fs::canonicalize(&home), "resolve", &home)
}

/// Removes the leftovers of killed processes.
fn sweep(home: &Path) {
    for point in mounted_below(home) {
        let name = point.strip_prefix(home).ok().and_then(|rest| rest.iter().next());
        if name.is_some_and(|name| is_orphaned(&name.to_string_lossy())) {
            abandon(&point);
        }
    }
    let Ok(entries) = fs::read_dir(home) else {
        return;
    };
    for entry in entries.flatten() {
        if is_orphaned(&entry.file_name().to_string_lossy()) {
            remove(&entry.path());
        }
    }
}

/// Removes exactly the three parts of a scratch directory. A recursive removal would enter mounts that are still there.
fn remove(dir: &Path) {
    let _ = rustix::fs::rmdir(dir.join(MOUNT_POINT));
    let _ = rustix::fs::unlink(dir.join(IMAGE));
    let _ = rustix::fs::rmdir(dir);
}

fn is_orphaned(name: &str) -> bool {
    maker(name).is_some_and(|(pid, start)| start_time(pid) != Some(start))
}

fn maker(name: &str) -> Option<(u32, u64)> {
    let mut fields = name.strip_prefix(PREFIX)?.split('-');
    let pid = fields.next()?.parse().ok()?;
    let start = fields.next()?.parse().ok()?;
    Some((pid, start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_names_of_dead_makers_are_orphaned() {
        let pid = process::id();
        let start = start_time(pid).unwrap();
        assert!(!is_orphaned(&format!("{PREFIX}{pid}-{start}-0-ext4")));
        assert!(is_orphaned(&format!("{PREFIX}{pid}-{}-0-ext4", start + 1)), "the id was given to a later process");
        assert!(is_orphaned(&format!("{PREFIX}{}-{start}-0-ext4", u32::MAX)));
        assert!(!is_orphaned("calve-test-notes"));
        assert!(!is_orphaned("somebody-elses-1-2-3"));
    }
}
