//! A stand-in for macOS's kernel on Linux, for tests. Each rule names its source; other calls behave as on Linux.
//!
//! XFS and btrfs stand for APFS, everything else for HFS+, without clones. `user.like.acl` is an access control list:
//! lines such as `deny delete`, or `inherit` for new entries below. The flag `uchg` is `chattr +i`.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, Dir, FileType, Gid, IFlags, Mode, OFlags, RenameFlags, Stat, Uid, XattrFlags};
use rustix::io::{Errno, Result};
use rustix::time::ClockId;

use crate::sys::{CloneFamily, times};

pub(super) use rustix::fs::{fsync as full_sync, syncfs as sync_volume};

/// O_SEARCH.
pub(super) const SEARCH: OFlags = OFlags::PATH;
/// Linux opens a link only for its name: see [`by_number`].
pub(super) const SYMLINK: OFlags = OFlags::NOFOLLOW.union(OFlags::PATH);
pub(super) const NO_ATTRIBUTE: Errno = Errno::NODATA;

const ACL: &CStr = c"user.like.acl";
const READ: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const NAME: OFlags = OFlags::PATH.union(READ);
const NOT_FOLLOWED: AtFlags = AtFlags::SYMLINK_NOFOLLOW;

/// Behaves as clonefile(2), all or nothing: EEXIST for an existing name, EXDEV between volumes, ENOTSUP without
/// VOL_CAP_INT_CLONE, EINVAL for a volume's root. Drops set-ID bits; each hard link becomes a file. Entries of a
/// directory lose their lists even with CLONE_ACL, and a root without one inherits its parent's (reports).
pub(super) fn clone(src: BorrowedFd<'_>, parent: BorrowedFd<'_>, name: &CStr, keep_acl: bool) -> Result<()> {
    let (volume, kind) = mounted(src)?;
    if path_of(src)? == volume {
        return Err(Errno::INVAL);
    }
    if mounted(parent)?.0 != volume {
        return Err(Errno::XDEV);
    }
    if kind != "apfs" {
        return Err(Errno::NOTSUP);
    }
    if rustix::fs::statat(parent, name, NOT_FOLLOWED).is_ok() {
        return Err(Errno::EXIST);
    }
    let own = if keep_acl { read_acl(src)? } else { None };
    let acl = own.map_or_else(|| inherited(parent), |own| Ok(Some(own)))?;
    let stat = rustix::fs::fstat(src)?;
    // The kernel has no depth limit, but a test's thread has a small stack.
    let cloned = std::thread::scope(|scope| {
        let copying = || copy(src, &stat, parent, name, acl.as_deref());
        let thread = std::thread::Builder::new().stack_size(1 << 29).spawn_scoped(scope, copying);
        thread.map_err(|_| Errno::NOMEM)?.join().unwrap_or(Err(Errno::IO))
    });
    if cloned.is_err() {
        remove(parent, name);
    }
    cloned
}

fn copy(src: BorrowedFd<'_>, stat: &Stat, parent: BorrowedFd<'_>, name: &CStr, acl: Option<&[u8]>) -> Result<()> {
    let kind = FileType::from_raw_mode(stat.st_mode);
    match kind {
        FileType::Directory => {
            rustix::fs::mkdirat(parent, name, Mode::RWXU)?;
            let new = rustix::fs::openat(parent, name, READ, Mode::empty())?;
            // Opened anew: `src` may be open for its name only.
            let src = rustix::fs::openat(src, c".", READ, Mode::empty())?;
            for entry in Dir::read_from(&src)? {
                let entry = entry?;
                if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                    let stat = rustix::fs::statat(&src, entry.file_name(), NOT_FOLLOWED)?;
                    let file = rustix::fs::openat(&src, entry.file_name(), for_all_of(&stat), Mode::empty())?;
                    copy(file.as_fd(), &stat, new.as_fd(), entry.file_name(), None)?;
                }
            }
        }
        FileType::RegularFile => {
            let new = rustix::fs::openat(parent, name, OFlags::RDWR | OFlags::CREATE | READ, Mode::RUSR | Mode::WUSR)?;
            rustix::fs::ioctl_ficlone(&new, src)?;
        }
        FileType::Symlink => rustix::fs::symlinkat(&rustix::fs::readlinkat(src, c"", Vec::new())?, parent, name)?,
        kind => rustix::fs::mknodat(parent, name, kind, Mode::RUSR, stat.st_rdev)?,
    }
    let new = rustix::fs::openat(parent, name, for_all_of(stat), Mode::empty())?;
    if is_root() {
        let (uid, gid) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
        rustix::fs::chownat(&new, c"", Some(uid), Some(gid), AtFlags::EMPTY_PATH)?;
    }
    copy_xattrs(src, new.as_fd())?;
    if let Some(acl) = acl {
        write_acl(new.as_fd(), acl)?;
    }
    if kind != FileType::Symlink {
        let mode = Mode::from_raw_mode(stat.st_mode) & !(Mode::SUID | Mode::SGID);
        rustix::fs::chmod(by_number(new.as_fd()), mode)?;
    }
    rustix::fs::utimensat(parent, name, &times(stat), NOT_FOLLOWED)?;
    // An entry open for its name only has no flags.
    if let Ok(flags) = rustix::fs::ioctl_getflags(src)
        && flags.bits() & KEPT != 0
    {
        set_flags(new.as_fd(), self::flags(new.as_fd())? | flags.bits() & KEPT)?;
    }
    Ok(())
}

/// Returns the flags to open an entry for any use, but FIFOs and devices for their name only.
fn for_all_of(stat: &Stat) -> OFlags {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory | FileType::RegularFile => READ,
        _ => NAME,
    }
}

fn copy_xattrs(src: BorrowedFd<'_>, new: BorrowedFd<'_>) -> Result<()> {
    let mut names = vec![0; 1 << 16];
    let length = flistxattr(src, &mut names[..])?;
    for name in crate::sys::xattr_names(&names[..length]) {
        if !is_root() && !name.to_bytes().starts_with(b"user.") {
            continue;
        }
        fsetxattr(new, name, &attribute(src, name)?, XattrFlags::empty())?;
    }
    Ok(())
}

fn remove(parent: BorrowedFd<'_>, name: &CStr) {
    let path = Path::new(&by_number(parent)).join(crate::sys::path(name));
    let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
}

/// Behaves as renameatx_np(2). A directory that gets a new parent is written to, for its `..`: EACCES without
/// permission (XNU, bsd/vfs/vfs_subr.c, vn_authorize_renamex), and when a list denies deleting it.
pub(super) fn rename(
    from: BorrowedFd<'_>,
    name: &CStr,
    parent: BorrowedFd<'_>,
    new_name: &CStr,
    flags: RenameFlags,
) -> Result<()> {
    may_move(from, name)?;
    if flags.contains(RenameFlags::EXCHANGE) {
        may_move(parent, new_name)?;
    }
    rustix::fs::renameat_with(from, name, parent, new_name, flags)
}

/// The clock of Linux's file systems, which the tests use.
pub(crate) const FILE_CLOCK: ClockId = ClockId::RealtimeCoarse;
pub(crate) const BOOT_CLOCK: ClockId = ClockId::Boottime;

/// readdir(3) of a directory that is written to meanwhile passes over one in so many entries (reports of APFS).
pub(crate) const PASSED_OVER: usize = 4;

/// Time of the last write to a directory.
pub(crate) type Version = (i64, u64);

#[allow(clippy::unnecessary_cast, reason = "the fields' types differ between machines")]
pub(crate) fn version(directory: &Dir) -> Option<Version> {
    directory.stat().ok().map(|stat| (stat.st_mtime as i64, stat.st_mtime_nsec as u64))
}

fn may_move(parent: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    let stat = rustix::fs::statat(parent, name, NOT_FOLLOWED)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Ok(());
    }
    rustix::fs::accessat(parent, name, Access::WRITE_OK, AtFlags::EACCESS)?;
    let Ok(directory) = rustix::fs::openat(parent, name, READ, Mode::empty()) else { return Ok(()) };
    let denied = read_acl(directory.as_fd())?.is_some_and(|acl| acl.starts_with(b"deny delete"));
    if denied { Err(Errno::ACCESS) } else { Ok(()) }
}

/// `uchg`: such a file refuses changes, also to its name (chflags(2), UF_IMMUTABLE).
pub(super) const LOCKED: u32 = IFlags::IMMUTABLE.bits();

/// `nodump` is `chattr +d`.
pub(super) const KEPT: u32 = LOCKED | IFlags::NODUMP.bits();

pub(super) const OF_ROOT: u32 = IFlags::APPEND.bits();

pub(super) fn flags(fd: BorrowedFd<'_>) -> Result<u32> {
    Ok(rustix::fs::ioctl_getflags(fd).map_or(0, |flags| flags.bits()))
}

pub(super) fn set_flags(fd: BorrowedFd<'_>, flags: u32) -> Result<()> {
    rustix::fs::ioctl_setflags(fd, IFlags::from_bits_retain(flags))
}

pub(crate) fn make_node(parent: BorrowedFd<'_>, name: &CStr, kind: FileType, mode: Mode, like: &Stat) -> Result<()> {
    rustix::fs::mknodat(parent, name, kind, mode, like.st_rdev)
}

pub(crate) fn lower_priority() {
    let _ = rustix::process::setpriority_process(None, 19);
}

pub(crate) fn boot() -> Option<Vec<u8>> {
    std::fs::read("/proc/sys/kernel/random/boot_id").ok()
}

pub(crate) fn host() -> Option<[u8; 16]> {
    None
}

pub(super) fn mounted(fd: BorrowedFd<'_>) -> Result<(PathBuf, String)> {
    let text = |path: &str| std::fs::read_to_string(path).map_err(|_| Errno::NOSYS);
    let info = text(&format!("/proc/self/fdinfo/{}", fd.as_raw_fd()))?;
    let number = info.lines().find_map(|line| line.strip_prefix("mnt_id:")).ok_or(Errno::NOSYS)?.trim().to_owned();
    let table = text("/proc/self/mountinfo")?;
    let line = table.lines().find(|line| line.split(' ').next() == Some(&number)).ok_or(Errno::NOSYS)?;
    let kind = match line.split(" - ").nth(1).and_then(|rest| rest.split(' ').next()) {
        Some("xfs" | "btrfs") => "apfs",
        _ => "hfs",
    };
    Ok((mount_point(line), kind.into()))
}

pub(super) fn has_clones(fd: BorrowedFd<'_>) -> Result<bool> {
    Ok(mounted(fd)?.1 == "apfs")
}

pub(super) fn is_local(_fd: BorrowedFd<'_>) -> Result<bool> {
    Ok(true)
}

pub(super) fn mount_points() -> Result<Vec<PathBuf>> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").map_err(|_| Errno::NOSYS)?;
    Ok(table.lines().map(mount_point).collect())
}

/// Parses the mount point in a line of the mount table, where a space is `\040` (proc(5)).
fn mount_point(line: &str) -> PathBuf {
    line.split(' ').nth(4).unwrap_or_default().replace("\\040", " ").into()
}

pub(super) fn path_of(fd: BorrowedFd<'_>) -> Result<PathBuf> {
    let path = rustix::fs::readlink(by_number(fd), Vec::new())?;
    Ok(std::ffi::OsString::from_vec(path.into_bytes()).into())
}

/// Sets a mode as fchmodat(2), which on Linux follows links. Does not open FIFOs and devices.
pub(crate) fn set_mode_of_name(parent: BorrowedFd<'_>, name: &CStr, mode: Mode) -> Result<()> {
    let file = rustix::fs::openat(parent, name, NAME, Mode::empty())?;
    rustix::fs::chmod(by_number(file.as_fd()), mode)
}

fn attribute(fd: impl AsFd, name: &CStr) -> Result<Vec<u8>> {
    let mut value = vec![0; 1 << 16];
    let length = rustix::fs::getxattr(by_number(fd.as_fd()), name, &mut value[..])?;
    value.truncate(length);
    Ok(value)
}

/// As fgetxattr(2): fills a short buffer without error (reports; the manual says ERANGE). Empty: asks the length.
pub(super) fn fgetxattr(fd: impl AsFd, name: &CStr, value: &mut [u8]) -> Result<usize> {
    if name == ACL {
        return Err(NO_ATTRIBUTE);
    }
    let all = attribute(fd, name)?;
    let filled = all.len().min(value.len());
    value[..filled].copy_from_slice(&all[..filled]);
    Ok(if value.is_empty() { all.len() } else { filled })
}

pub(super) fn fsetxattr(fd: impl AsFd, name: &CStr, value: &[u8], flags: XattrFlags) -> Result<()> {
    rustix::fs::setxattr(by_number(fd.as_fd()), name, value, flags)
}

pub(super) const FORK: &CStr = c"user.like.fork";

/// Reads a piece of a resource fork as fgetxattr(2), perhaps less than asked for.
pub(super) fn read_fork(file: BorrowedFd<'_>, position: usize, piece: &mut [u8]) -> Result<usize> {
    const MOST_IN_ONE_CALL: usize = 1000;
    let all = attribute(file, FORK)?;
    let rest = all.get(position..).unwrap_or_default();
    let read = rest.len().min(piece.len()).min(MOST_IN_ONE_CALL);
    piece[..read].copy_from_slice(&rest[..read]);
    Ok(read)
}

/// Writes a piece of a resource fork as fsetxattr(2): the bytes behind it stay.
pub(super) fn write_fork(file: BorrowedFd<'_>, position: usize, piece: &[u8]) -> Result<()> {
    let mut all = attribute(file, FORK).unwrap_or_default();
    all.resize(all.len().max(position + piece.len()), 0);
    all[position..position + piece.len()].copy_from_slice(piece);
    fsetxattr(file, FORK, &all, XattrFlags::empty())
}

pub(super) fn flistxattr(fd: impl AsFd, list: &mut [u8]) -> Result<usize> {
    let mut all = vec![0; 1 << 16];
    let length = rustix::fs::listxattr(by_number(fd.as_fd()), &mut all[..])?;
    let kept = all[..length].split_inclusive(|byte| *byte == 0).filter(|name| *name != ACL.to_bytes_with_nul());
    let kept: Vec<u8> = kept.flatten().copied().collect();
    if list.is_empty() {
        return Ok(kept.len());
    }
    list.get_mut(..kept.len()).ok_or(Errno::RANGE)?.copy_from_slice(&kept);
    Ok(kept.len())
}

pub(crate) fn fremovexattr(fd: impl AsFd, name: &CStr) -> Result<()> {
    rustix::fs::removexattr(by_number(fd.as_fd()), name)
}

pub(super) fn read_acl(fd: BorrowedFd<'_>) -> Result<Option<Vec<u8>>> {
    match attribute(fd, ACL) {
        Ok(acl) => Ok(Some(acl)),
        Err(Errno::NODATA | Errno::NOTSUP | Errno::BADF | Errno::PERM) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn write_acl(fd: BorrowedFd<'_>, acl: &[u8]) -> Result<()> {
    rustix::fs::fsetxattr(fd, ACL, acl, XattrFlags::empty())
}

pub(crate) fn has_acls_inside(directory: BorrowedFd<'_>) -> Result<bool> {
    let directory = rustix::fs::openat(directory, c".", READ, Mode::empty())?;
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        if matches!(entry.file_name().to_bytes(), b"." | b"..") {
            continue;
        }
        let file = rustix::fs::openat(&directory, entry.file_name(), NAME, Mode::empty())?;
        if entry.file_type() != FileType::Symlink && read_acl(file.as_fd())?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(super) fn drop_acl(fd: BorrowedFd<'_>) {
    let _ = rustix::fs::fremovexattr(fd, ACL);
}

/// Returns a path to an open entry, even if open for its name only.
fn by_number(fd: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

fn inherited(parent: BorrowedFd<'_>) -> Result<Option<Vec<u8>>> {
    let parent: OwnedFd = rustix::fs::openat(parent, c".", READ, Mode::empty())?;
    Ok(read_acl(parent.as_fd())?.filter(|acl| acl.ends_with(b"inherit")))
}

pub(crate) fn clone_family(_directory: BorrowedFd<'_>, _name: &CStr) -> Result<CloneFamily> {
    Err(Errno::NOTSUP)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
