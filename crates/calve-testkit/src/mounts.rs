use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::must::must;
use crate::sys::{self, detach, mount_points};

/// A directory shown at a second place; unmounted when dropped.
#[derive(Debug)]
pub struct BindMount {
    at: PathBuf,
}

impl BindMount {
    /// Shows `what` at `at`, an existing directory (or file, if `what` is a file). Needs root.
    pub fn new(what: impl AsRef<Path>, at: impl Into<PathBuf>) -> Self {
        let at = at.into();
        must(sys::bind(what.as_ref(), &at), "bind mount onto", &at);
        Self { at }
    }

    pub fn path(&self) -> &Path {
        &self.at
    }
}

impl Drop for BindMount {
    fn drop(&mut self) {
        unmount(&self.at);
    }
}

/// Returns every mount point at or below `dir`, in the order to unmount them: later mounts first.
pub(crate) fn mounted_below(dir: &Path) -> Vec<PathBuf> {
    let mut points = mount_points();
    points.retain(|point| point.starts_with(dir));
    points.reverse();
    points
}

/// Unmounts `point`, or detaches it if it stays busy. Never panics, because destructors call it.
pub(crate) fn unmount(point: &Path) {
    if unmount_whole(point) == Err(Errno::BUSY) {
        detach(point);
    }
}

/// Unmounts `point`, waiting up to five seconds while it is busy.
pub fn unmount_whole(point: &Path) -> rustix::io::Result<()> {
    retry_while_busy(|| sys::unmount(point))
}

/// Changes a mount, retrying while it is busy. An exiting process, or another test's child that has not yet closed
/// inherited descriptors, may keep it busy for a moment.
pub(crate) fn retry_while_busy(change: impl Fn() -> rustix::io::Result<()>) -> rustix::io::Result<()> {
    let give_up = Instant::now() + Duration::from_secs(5);
    loop {
        match change() {
            Err(Errno::BUSY) if Instant::now() < give_up => thread::sleep(Duration::from_millis(10)),
            done => return done,
        }
    }
}
