use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use fs_err as fs;
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Result;
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change};
use rustix::thread::UnshareFlags;

use crate::must::must;

pub(crate) const NOATIME: OFlags = OFlags::NOATIME;

pub(crate) fn unshare_mounts() -> Result<()> {
    // SAFETY: the flags do not include CLONE_FILES, so that descriptors stay valid.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS)? };
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)
}

pub(crate) fn bind(what: &Path, at: &Path) -> Result<()> {
    rustix::mount::mount_bind(what, at)
}

/// Fails with EBUSY while a file below `point` is open.
pub(crate) fn unmount(point: &Path) -> Result<()> {
    rustix::mount::unmount(point, UnmountFlags::NOFOLLOW)
}

/// Hides `point` at once; the file system is unmounted when its last user is gone.
pub(crate) fn detach(point: &Path) {
    let _ = rustix::mount::unmount(point, UnmountFlags::NOFOLLOW | UnmountFlags::DETACH);
}

/// Unmounts a dead process's file system. FORCE makes FUSE answer requests that still wait for it.
pub(crate) fn abandon(point: &Path) {
    let _ = rustix::mount::unmount(point, UnmountFlags::NOFOLLOW | UnmountFlags::FORCE);
    detach(point);
}

/// Returns every mount point of this thread's mount namespace, in mount order.
pub(crate) fn mount_points() -> Vec<PathBuf> {
    let table = must(fs::read("/proc/thread-self/mountinfo"), "read", Path::new("/proc/thread-self/mountinfo"));
    table
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
        .map(|field| PathBuf::from(OsString::from_vec(unescape(field))))
        .collect()
}

/// Decodes a field of mountinfo: a backslash and three octal digits stand for space, tab, newline and backslash.
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

/// Reads field 22 of `/proc/<pid>/stat` (proc(5)), counted from behind the name, which may contain anything. Returns
/// `None` for a missing process or a zombie: a killed one that served FUSE to itself can stay one until its mount goes.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace();
    let state = fields.next()?;
    if state == "Z" || state == "X" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Returns a path to an entry of an open directory at any depth. Needs /proc.
pub(crate) fn path_of(directory: BorrowedFd<'_>, name: &OsStr) -> Result<PathBuf> {
    Ok(Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name))
}

pub(crate) fn make_node(at: &Path, kind: FileType, (major, minor): (u32, u32)) -> Result<()> {
    rustix::fs::mknodat(CWD, at, kind, Mode::from_raw_mode(0o644), rustix::fs::makedev(major, minor))
}

/// Returns a command that runs `program` as another user, without capabilities.
pub(crate) fn command_as(program: &OsStr, uid: u32, gid: u32) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args([format!("--reuid={uid}"), format!("--regid={gid}")])
        .args(["--clear-groups", "--inh-caps=-all", "--"])
        .arg(program);
    command
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
