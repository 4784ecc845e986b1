//! File systems by magic number (linux/magic.h).

use std::os::fd::BorrowedFd;

use rustix::io::Result;

pub(crate) const BTRFS_MAGIC: u64 = 0x9123_683e;
pub(crate) const OVERLAY_MAGIC: u64 = 0x794c_7630;
pub(super) const XFS_MAGIC: u64 = 0x5846_5342;
/// Also of ext2 and ext3.
pub(super) const EXT4_MAGIC: u64 = 0xef53;
pub(super) const TMPFS_MAGIC: u64 = 0x0102_1994;

pub(crate) fn magic(fd: BorrowedFd<'_>) -> Result<u64> {
    // The field's type differs between architectures; the numbers are 32 bits wide.
    Ok(rustix::fs::fstatfs(fd)?.f_type as u64 & 0xffff_ffff)
}

pub(crate) fn is_shared_by_machines(directory: BorrowedFd<'_>) -> Result<bool> {
    magic(directory).map(copies_on_the_server)
}

/// Returns whether copy_file_range(2) copies on the file system's server, so that the bytes do not travel.
pub(crate) fn copies_on_the_server(magic: u64) -> bool {
    const NFS: u64 = 0x6969;
    const CIFS: u64 = 0xff53_4d42;
    const SMB2: u64 = 0xfe53_4d42;
    const CEPH: u64 = 0x00c3_6400;
    matches!(magic, NFS | CIFS | SMB2 | CEPH)
}

/// Returns whether a store to a clean page of a shared mapping changes the times, and write-back cleans it, as tested.
/// tmpfs never cleans a page, overlays depend on their upper, and servers keep the times of FUSE and network files.
pub(crate) fn shows_stores(file: BorrowedFd<'_>) -> Result<bool> {
    Ok(matches!(magic(file)?, EXT4_MAGIC | XFS_MAGIC | BTRFS_MAGIC))
}

/// Returns whether all changes go through this kernel's own names and reach watches: not on networks, FUSE, overlays.
pub(crate) fn tells_watches(directory: BorrowedFd<'_>) -> bool {
    const F2FS: u64 = 0xf2f5_2010;
    const BCACHEFS: u64 = 0xca45_1a4e;
    matches!(magic(directory), Ok(EXT4_MAGIC | XFS_MAGIC | BTRFS_MAGIC | TMPFS_MAGIC | F2FS | BCACHEFS))
}
