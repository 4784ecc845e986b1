//! File systems, told apart by their magic numbers.

use std::os::fd::BorrowedFd;

use crate::sys::Result;

pub(crate) const BTRFS_MAGIC: u64 = 0x9123_683e;
pub(super) const XFS_MAGIC: u64 = 0x5846_5342;

/// Returns the magic number of the file system of an open file (statfs(2)).
pub(crate) fn magic(fd: BorrowedFd<'_>) -> Result<u64> {
    // The field's type differs between architectures; the numbers are 32 bits wide.
    Ok(rustix::fs::fstatfs(fd)?.f_type as u64 & 0xffff_ffff)
}

/// Returns whether other machines may use the file system too.
pub(crate) fn is_shared_by_machines(directory: BorrowedFd<'_>) -> Result<bool> {
    magic(directory).map(copies_on_the_server)
}

/// Returns whether this is a file system whose server copies for us when asked with copy_file_range(2): the bytes do not travel.
pub(crate) fn copies_on_the_server(magic: u64) -> bool {
    const NFS: u64 = 0x6969;
    const CIFS: u64 = 0xff53_4d42;
    const SMB2: u64 = 0xfe53_4d42;
    const CEPH: u64 = 0x00c3_6400;
    matches!(magic, NFS | CIFS | SMB2 | CEPH)
}
