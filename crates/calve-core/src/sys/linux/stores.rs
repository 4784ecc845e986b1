//! Stores through shared mappings: where the file's times show them.

use std::os::fd::BorrowedFd;

use super::Result;

/// Returns whether a store to a clean page of a shared mapping changes the file's times, and writing a page back makes it clean: so it
/// was seen to be on these. tmpfs never cleans a page. On an overlay it depends on its upper layer, which cannot be told from here; on
/// FUSE and network file systems the times are somebody else's.
pub(crate) fn shows_stores(file: BorrowedFd<'_>) -> Result<bool> {
    const EXT4: u64 = 0xef53;
    Ok(matches!(super::magic(file)?, EXT4 | super::XFS_MAGIC | super::BTRFS_MAGIC))
}

/// Makes every page that is dirty now clean, on the whole file system, and waits for it. One call: file by file, a store to one
/// file could slip between its turn and another's.
pub(crate) fn write_back_stores(directory: BorrowedFd<'_>) -> Result<()> {
    super::sync_file_system(directory)
}
