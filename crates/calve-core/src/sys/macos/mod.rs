//! macOS system calls without a portable shape.

#[cfg(not(like_macos))]
mod kernel;
#[cfg(like_macos)]
#[path = "../../../tests/like_macos/kernel.rs"]
mod like;
mod mounts;
mod no_extents;
mod no_watches;
mod portable;
mod rename;
mod xattr;

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

#[cfg(like_macos)]
use like as kernel;
use rustix::fs::{FileType, Mode, OFlags, SeekFrom, Stat};
use rustix::io::{Errno, Result};

use super::SpaceRules;

pub(crate) use kernel::{
    BOOT_CLOCK, FILE_CLOCK, boot, clone_family, fremovexattr as remove_xattr, has_acls_inside, host, lower_priority,
    make_node,
};
#[cfg(like_macos)]
pub(crate) use like::{PASSED_OVER, Version, set_mode_of_name, version};
pub(crate) use mounts::{file_system_name, is_mount_point, mount_point, mounts_below};
pub(crate) use no_extents::*;
pub(crate) use no_watches::*;
pub(crate) use portable::*;
pub(crate) use rename::{rename_exchange, rename_no_replace};
pub(crate) use xattr::list_xattrs;

pub(crate) const PATH_ONLY: OFlags = kernel::SEARCH;

/// macOS has no such flag; APFS keeps access times relative to the modification time (relatime).
pub(crate) const NO_ATIME: OFlags = OFlags::empty();

pub(crate) const NO_ATTRIBUTE: Errno = kernel::NO_ATTRIBUTE;

pub(crate) fn make_accessible(parent: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    set_mode_of_name(parent, name, Mode::RWXU)
}

/// Clones the open directory `src` to the new name `name` in `parent`, all or nothing (fclonefileat(2)).
/// EXDEV if something is mounted below `src`: the clone would show it as an empty directory.
pub(crate) fn clone_directory(src: BorrowedFd<'_>, parent: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    if !mounts_below(src)?.is_empty() {
        return Err(Errno::XDEV);
    }
    clone_file(src, parent, name)
}

/// Clones an open file, below which nothing can be mounted, all or nothing.
pub(crate) fn clone_file(src: BorrowedFd<'_>, parent: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    match kernel::clone(src, parent, name, true) {
        // The file system has no lists: none is lost.
        Err(Errno::INVAL) => kernel::clone(src, parent, name, false),
        other => other,
    }
}

/// Clears the flags that forbid changes (`uchg`), which a clone has from its source. Returns them.
pub(crate) fn unlock(file: BorrowedFd<'_>) -> Result<u32> {
    let flags = kernel::flags(file)?;
    match flags & kernel::LOCKED {
        0 => Ok(0),
        locks => kernel::set_flags(file, flags & !kernel::LOCKED).map(|()| locks),
    }
}

pub(crate) fn lock(file: BorrowedFd<'_>, locks: u32) -> Result<()> {
    if locks == 0 {
        return Ok(());
    }
    kernel::set_flags(file, kernel::flags(file)? | locks)
}

pub(crate) fn flags_to_keep(src: BorrowedFd<'_>) -> u32 {
    kernel::flags(src).unwrap_or(0) & (kernel::KEPT | kernel::OF_ROOT)
}

/// Adds flags to a copy's own. EMLINK or EPERM if it may not have all: a locked file could not get a second name.
pub(crate) fn add_flags(file: BorrowedFd<'_>, flags: u32, src: &Stat) -> Result<()> {
    let is_linked = FileType::from_raw_mode(src.st_mode) == FileType::RegularFile && src.st_nlink > 1;
    let permitted = if is_linked { kernel::KEPT & !kernel::LOCKED } else { kernel::KEPT };
    kernel::set_flags(file, kernel::flags(file)? | flags & permitted)?;
    match flags & !permitted {
        0 => Ok(()),
        rest if rest & kernel::OF_ROOT != 0 => Err(Errno::PERM),
        _ => Err(Errno::MLINK),
    }
}

/// Returns whether the system sets this attribute itself: since macOS 13 a file notes the program that made it.
pub(crate) fn is_of_the_system(xattr: &CStr) -> bool {
    xattr == c"com.apple.provenance"
}

pub(crate) const HAS_CLONEFILE: bool = true;

/// Returns why [`clone_directory`] cannot work between these two; `None` if it may be tried.
pub(crate) fn clone_directory_refusal(src: BorrowedFd<'_>, parent: BorrowedFd<'_>) -> Option<String> {
    let device = |fd| rustix::fs::fstat(fd).map(|stat| stat.st_dev);
    if device(src) != device(parent) {
        return Some("source and destination are on different volumes".into());
    }
    // Without an answer, the call itself tells.
    (kernel::has_clones(src) == Ok(false)).then(|| format!("{} has no clonefile", file_system_name(src)))
}

pub(crate) fn is_shared_by_machines(directory: BorrowedFd<'_>) -> Result<bool> {
    kernel::is_local(directory).map(|is_local| !is_local)
}

pub(crate) fn seek_data(fd: BorrowedFd<'_>, position: u64) -> Result<u64> {
    match rustix::fs::seek(fd, SeekFrom::Data(position)) {
        // The request is an ioctl that most file systems do not know.
        Err(Errno::NOTTY | Errno::NOTSUP) => Err(Errno::INVAL),
        other => other,
    }
}

pub(crate) fn sync_file_system(fd: BorrowedFd<'_>) -> Result<()> {
    match kernel::sync_volume(fd) {
        // Not on this file system. sync(2) hands everything to the drive, and F_FULLFSYNC makes that write its cache.
        Err(Errno::NOTSUP | Errno::NOTTY | Errno::INVAL | Errno::PERM) => {
            rustix::fs::sync();
            sync_file(fd)
        }
        other => other,
    }
}

/// Syncs down to the disk: fsync(2) alone leaves the data in the drive's cache, in no particular order.
pub(crate) fn sync_file(fd: BorrowedFd<'_>) -> Result<()> {
    match kernel::full_sync(fd) {
        // A network file system, or a drive that has no such command.
        Err(Errno::NOTSUP | Errno::NOTTY | Errno::INVAL | Errno::NODEV) => rustix::fs::fsync(fd),
        other => other,
    }
}

pub(crate) fn drop_inherited_acls(directory: BorrowedFd<'_>) {
    if !matches!(kernel::read_acl(directory), Ok(None)) {
        kernel::drop_acl(directory);
    }
}

pub(crate) fn drop_acl(file: BorrowedFd<'_>) -> Result<()> {
    drop_inherited_acls(file);
    Ok(())
}

/// Gives a clone the source's list, or none: the root of a clone was seen to inherit its parent's.
pub(crate) fn keep_acl(src: BorrowedFd<'_>, clone: BorrowedFd<'_>) -> Result<()> {
    let wanted = kernel::read_acl(src)?;
    if kernel::read_acl(clone)? == wanted {
        return Ok(());
    }
    match wanted {
        Some(acl) => kernel::write_acl(clone, &acl),
        None => {
            kernel::drop_acl(clone);
            Ok(())
        }
    }
}

pub(crate) fn space_rules(directory: BorrowedFd<'_>) -> SpaceRules {
    match file_system_name(directory).as_str() {
        "apfs" => SpaceRules::Apfs,
        // No clones, no snapshots.
        "hfs" => SpaceRules::Exact,
        _ => SpaceRules::Unknown,
    }
}
