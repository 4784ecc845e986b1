//! Stores through shared mappings: where the file's times show them.

use std::os::fd::BorrowedFd;

use super::Result;

/// Returns whether a store to a clean page of a shared mapping changes the file's times, and writing a page back makes it clean. Tests have
/// shown this for the file systems listed here. tmpfs never cleans a page. On an overlay it depends on the upper layer, which cannot be
/// seen from here; on FUSE and network file systems somebody else keeps the times.
pub(crate) fn shows_stores(file: BorrowedFd<'_>) -> Result<bool> {
    const EXT4: u64 = 0xef53;
    Ok(matches!(super::magic(file)?, EXT4 | super::XFS_MAGIC | super::BTRFS_MAGIC))
}

/// Writes back every dirty page of the whole file system, and waits for it. It must be one call: file by file, a store to one file could
/// slip in between its turn and another's.
pub(crate) fn write_back_stores(directory: BorrowedFd<'_>) -> Result<()> {
    super::sync_file_system(directory)
}
