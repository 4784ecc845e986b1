//! Stores through shared mappings: where the file's times show them.

use std::os::fd::BorrowedFd;

use super::magic::{BTRFS_MAGIC, XFS_MAGIC, magic};
use crate::sys::Result;

/// Returns whether a store to a clean page of a shared mapping changes the file's times, and writing a page back makes it clean, as tests have
/// shown for these. tmpfs never cleans a page; an overlay depends on its upper layer; with FUSE and networks a server keeps the times.
pub(crate) fn shows_stores(file: BorrowedFd<'_>) -> Result<bool> {
    const EXT4: u64 = 0xef53;
    Ok(matches!(magic(file)?, EXT4 | XFS_MAGIC | BTRFS_MAGIC))
}

/// Writes back every dirty page of the file system, and waits. In one call: file by file, a store to one could slip in between.
pub(crate) fn write_back_stores(directory: BorrowedFd<'_>) -> Result<()> {
    super::sync_file_system(directory)
}
