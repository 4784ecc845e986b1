use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, Result};

use super::{PATH_ONLY, kernel};

/// Returns whether something is mounted here, or the system makes it look so (`/Users` is on another volume than `/`).
pub(crate) fn is_mount_point(directory: BorrowedFd<'_>) -> Result<bool> {
    if path_of(directory)? == seen(&kernel::mounted(directory)?.0) {
        return Ok(true);
    }
    match rustix::fs::openat(directory, c"..", PATH_ONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
        Ok(parent) => Ok(rustix::fs::fstat(parent)?.st_dev != rustix::fs::fstat(directory)?.st_dev),
        // The path has already told.
        Err(Errno::ACCESS) => Ok(false),
        Err(error) => Err(error),
    }
}

pub(crate) fn mount_point(directory: BorrowedFd<'_>) -> Option<PathBuf> {
    kernel::mounted(directory).ok().map(|(point, _)| seen(&point))
}

pub(crate) fn mounts_below(directory: BorrowedFd<'_>) -> Result<Vec<PathBuf>> {
    let root = path_of(directory)?;
    let mut below: Vec<PathBuf> = kernel::mount_points()?
        .iter()
        .map(|point| seen(point))
        .filter(|point| point != &root && point.starts_with(&root))
        .collect();
    below.sort();
    Ok(below)
}

pub(crate) fn file_system_name(directory: BorrowedFd<'_>) -> String {
    kernel::mounted(directory).map_or_else(|_| "unknown".into(), |(_, name)| name)
}

fn path_of(directory: BorrowedFd<'_>) -> Result<PathBuf> {
    Ok(seen(&kernel::path_of(directory)?))
}

/// Returns a path as users see it: the data volume's directories also appear at the root.
fn seen(path: &Path) -> PathBuf {
    match path.strip_prefix("/System/Volumes/Data") {
        Ok(rest) if !rest.as_os_str().is_empty() => Path::new("/").join(rest),
        _ => path.to_path_buf(),
    }
}
