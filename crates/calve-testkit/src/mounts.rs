//! Mount points: what is mounted, how to get rid of it, and bind mounts.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use fs_err as fs;
use rustix::io::Errno;
use rustix::mount::UnmountFlags;

use crate::must::must;
use crate::{sys, volume};

/// A directory shown at a second place; gone when dropped.
#[derive(Debug)]
pub struct BindMount {
    at: PathBuf,
}

impl BindMount {
    /// Shows `what` at `at`, an existing directory (or file, if `what` is one). Needs root.
    pub fn new(what: impl AsRef<Path>, at: impl Into<PathBuf>) -> Self {
        let at = at.into();
        must(rustix::mount::mount_bind(what.as_ref(), &at), "bind mount onto", &at);
        Self { at }
    }

    /// Where it is shown.
    pub fn path(&self) -> &Path {
        &self.at
    }
}

impl Drop for BindMount {
    fn drop(&mut self) {
        unmount(&self.at);
    }
}

/// Gives this thread, and the programs that it starts from now on, mounts of their own. A container that somebody else starts has copies of all
/// that is mounted where it is started, and keeps loop devices busy until it ends: not those of this thread. Needs root.
pub fn isolate_mounts() {
    let root = Path::new("/");
    must(sys::namespace::unshare_mounts(), "unshare the mounts of", root);
    // Nor is this thread to keep what other tests have mounted.
    let tests = mount_points().into_iter().rev().filter(|point| volume::is_scratch(point));
    tests.for_each(|point| detach(&point));
}

/// Every mount point at or below `dir`, later mounts first, which is the order to unmount them in.
pub(crate) fn mounted_below(dir: &Path) -> Vec<PathBuf> {
    let mut points = mount_points();
    points.retain(|point| point.starts_with(dir));
    points.reverse();
    points
}

/// Every mount point of this mount namespace, in the order of mounting.
pub(crate) fn mount_points() -> Vec<PathBuf> {
    let table = must(fs::read("/proc/thread-self/mountinfo"), "read", Path::new("/proc/thread-self/mountinfo"));
    table
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
        .map(|field| PathBuf::from(OsString::from_vec(unescape(field))))
        .collect()
}

/// Unmounts `point`. What stays busy is detached, so that a failing test leaves nothing behind. Never panics: it runs in destructors.
pub(crate) fn unmount(point: &Path) {
    if unmount_whole(point) == Err(Errno::BUSY) {
        detach(point);
    }
}

/// Unmounts `point`. A process that is just ending, or another test's child that has not yet closed what it inherited, may keep it busy
/// for a moment.
pub(crate) fn unmount_whole(point: &Path) -> rustix::io::Result<()> {
    let give_up = Instant::now() + Duration::from_secs(2);
    loop {
        match rustix::mount::unmount(point, UnmountFlags::NOFOLLOW) {
            Err(Errno::BUSY) if Instant::now() < give_up => thread::sleep(Duration::from_millis(10)),
            unmounted => return unmounted,
        }
    }
}

/// Takes `point` out of the tree at once; the file system goes when its last user does.
fn detach(point: &Path) {
    let _ = rustix::mount::unmount(point, UnmountFlags::NOFOLLOW | UnmountFlags::DETACH);
}

/// Unmounts what a dead process served or mounted. FORCE makes FUSE answer those who still wait for the dead server.
pub(crate) fn abandon(point: &Path) {
    let _ = rustix::mount::unmount(point, UnmountFlags::NOFOLLOW | UnmountFlags::FORCE);
    detach(point);
}

/// mountinfo writes space, tab, newline and backslash as three octal digits after a backslash.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, tail)) = rest.split_first() {
        if let (b'\\', [a, b, c, ..]) = (*first, tail) {
            bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
            rest = &tail[3..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_the_mount_table_are_undone() {
        assert_eq!(unescape(br"/a\040b\134c"), br"/a b\c");
    }

    #[test]
    fn the_root_is_mounted() {
        assert!(mount_points().contains(&PathBuf::from("/")));
    }
}
