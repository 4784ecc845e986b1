//! Mount points that were noted, to tell deleted files from those that can be there again.

use std::os::fd::AsFd as _;
use std::path::Path;

use rustix::fs::CWD;
use rustix::io::Errno;

use crate::error::{Error, IoContext};
use crate::sys;
use crate::tree::location::DIRECTORY;
use crate::vocabulary::operation::Operation;

/// Returns whether a file system is mounted at `point`, or may be where this user may not look.
pub(crate) fn is_mounted(point: &Path) -> Result<bool, Error> {
    let is_mounted = match sys::open_at(CWD, point, sys::PATH_ONLY | DIRECTORY) {
        Ok(opened) => sys::is_mount_point(opened.as_fd()),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
        // Nothing tells.
        Err(Errno::ACCESS) => Ok(true),
        Err(errno) => Err(errno),
    };
    is_mounted.io(Operation::FindMounts, point)
}
