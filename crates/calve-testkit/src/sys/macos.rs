//! macOS, using its own programs where no safe call exists.

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{Error, Result};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use crate::must::must;

/// macOS has no flag of open(2) that preserves the access time.
pub(crate) const NOATIME: OFlags = OFlags::empty();

pub(crate) fn unshare_mounts() -> rustix::io::Result<()> {
    Err(Errno::NOTSUP)
}

pub(crate) fn bind(_what: &Path, _at: &Path) -> rustix::io::Result<()> {
    Err(Errno::NOTSUP)
}

pub(crate) fn unmount(point: &Path) -> rustix::io::Result<()> {
    succeeds(Command::new("hdiutil").args(["detach", "-quiet"]).arg(point)).map_err(|_| Errno::BUSY)
}

pub(crate) fn detach(point: &Path) {
    let _ = succeeds(Command::new("hdiutil").args(["detach", "-quiet", "-force"]).arg(point));
}

pub(crate) fn abandon(point: &Path) {
    detach(point);
}

/// mount(8) prints `DEVICE on POINT (TYPE, ...)`.
pub(crate) fn mount_points() -> Vec<PathBuf> {
    let table = must(Command::new("mount").output(), "run", Path::new("mount")).stdout;
    let table = String::from_utf8_lossy(&table);
    let point = |line: &str| Some(line.split_once(" on ")?.1.rsplit_once(" (")?.0.into());
    table.lines().filter_map(point).collect()
}

/// Returns a hash of the process's start time, or `None` if it is gone.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    let output = Command::new("ps").args(["-o", "lstart=", "-p", &pid.to_string()]).output().ok()?;
    let began = output.stdout.trim_ascii();
    let mut hasher = DefaultHasher::new();
    began.hash(&mut hasher);
    (!began.is_empty()).then(|| hasher.finish())
}

pub(crate) fn path_of(directory: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<PathBuf> {
    let directory = rustix::fs::getpath(directory)?;
    Ok(Path::new(OsStr::from_bytes(directory.to_bytes())).join(name))
}

pub(crate) fn make_node(at: &Path, kind: FileType, (major, minor): (u32, u32)) -> Result<()> {
    if kind == FileType::Fifo {
        return succeeds(Command::new("mkfifo").arg(at));
    }
    let letter = if kind == FileType::BlockDevice { "b" } else { "c" };
    succeeds(Command::new("mknod").arg(at).args([letter, &major.to_string(), &minor.to_string()]))
}

pub(crate) fn command_as(program: &OsStr, uid: u32, gid: u32) -> Command {
    let mut command = Command::new(program);
    command.uid(uid).gid(gid);
    command
}

fn succeeds(command: &mut Command) -> Result<()> {
    let output = command.output()?;
    let said = || format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    if output.status.success() { Ok(()) } else { Err(Error::other(said())) }
}
