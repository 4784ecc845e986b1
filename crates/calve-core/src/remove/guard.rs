//! Refuses to move away or delete protected places, however they are spelled.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, OFlags};
use rustix::io::Errno;

use crate::error::{Error, IoContext, Protection};
use crate::remove::foreign::refuse_what_cannot_be_deleted;
use crate::sys;
use crate::tree::location::{Location, identity, is_inside};
use crate::vocabulary::operation::Operation;

/// Directories that every system needs (hier(7)).
const OF_THE_SYSTEM: [&str; 17] = [
    "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/opt", "/proc", "/root", "/run", "/sbin", "/srv",
    "/sys", "/tmp", "/usr", "/var",
];
const OF_MACOS: [&str; 6] = ["/private", "/Applications", "/Library", "/System", "/Users", "/Volumes"];

/// Refuses the root, system directories, mount points, trees with mounts below, protected places and their ancestors,
/// ancestors of the current directory, and trees that this user cannot delete. Goes by identity, not by spelling.
pub(crate) fn check(location: &Location, protect: &[PathBuf]) -> Result<(), Error> {
    let path = location.path();
    let Some(stat) = location.stat()? else { return Err(Error::Missing(path.to_path_buf())) };
    let refuse = |reason| Err(Error::Protected { path: path.to_path_buf(), reason });
    let root = identity(&stat);
    // A link may be the name of a protected directory.
    let flags = if sys::is_directory(stat) { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
    let is_at = |path: &Path| {
        rustix::fs::statat(CWD, path.components().as_path(), flags).is_ok_and(|stat| identity(&stat) == root)
    };
    if is_at(Path::new("/")) {
        return refuse(Protection::Root);
    }
    if OF_THE_SYSTEM.iter().chain(&OF_MACOS).any(|path| is_at(Path::new(path))) {
        return refuse(Protection::System);
    }
    if !sys::is_directory(stat) {
        let named = protect.iter().find(|path| is_at(path));
        return named.map_or(Ok(()), |path| refuse(Protection::Contains(path.clone())));
    }
    let directory =
        location.open_at(sys::PATH_ONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW).io(Operation::OpenDirectory, path)?;
    let directory = directory.as_fd();
    if sys::is_mount_point(directory).io(Operation::FindMounts, path)? {
        return refuse(Protection::MountPoint(path.to_path_buf()));
    }
    if let Some(mount) = sys::mounts_below(directory).io(Operation::FindMounts, path)?.first() {
        return refuse(Protection::MountBelow(mount.clone()));
    }
    if contains(Path::new("."), root)? {
        return refuse(Protection::CurrentDirectory);
    }
    for protected in protect {
        if contains(protected, root)? {
            return refuse(Protection::Contains(protected.clone()));
        }
    }
    refuse_what_cannot_be_deleted(location)
}

/// Returns whether the directory `inner` is `root` or inside it. Missing and deleted directories are not.
fn contains(inner: &Path, root: (u64, u64)) -> Result<bool, Error> {
    let directory = match sys::open_at(CWD, inner, sys::PATH_ONLY | OFlags::DIRECTORY) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => return Ok(false),
        opened => opened.io(Operation::OpenDirectory, inner)?,
    };
    match is_inside(directory.as_fd(), root) {
        Err(Errno::NOENT) => Ok(false),
        other => other.io(Operation::OpenDirectory, inner),
    }
}
