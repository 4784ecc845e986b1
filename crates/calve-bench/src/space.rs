//! The file system that the bench writes to: how full it is, and getting everything onto the disk.

use std::os::fd::AsFd;

pub(crate) fn used_bytes(directory: impl AsFd) -> rustix::io::Result<u64> {
    let stat = rustix::fs::fstatvfs(directory)?;
    Ok(stat.f_blocks.saturating_sub(stat.f_bfree) * stat.f_frsize)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) bytes: u64,
    pub(crate) inodes: u64,
}

pub(crate) fn free(directory: impl AsFd) -> rustix::io::Result<Room> {
    let stat = rustix::fs::fstatvfs(directory)?;
    // btrfs has no number of inodes to tell.
    let inodes = if stat.f_files == 0 { u64::MAX } else { stat.f_favail };
    Ok(Room { bytes: stat.f_bavail * stat.f_frsize, inodes })
}

pub(crate) fn flush(directory: impl AsFd) -> rustix::io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(directory)?;
    #[cfg(not(target_os = "linux"))]
    {
        let _ = directory;
        rustix::fs::sync();
    }
    Ok(())
}
