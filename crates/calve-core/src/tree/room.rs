//! Whether the source's data fits, found out before it is written.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, StatVfs};
use rustix::io::Errno;

use super::exclude::Exclude;
use super::node::Node;
use crate::error::Error;
use crate::progress::Cancel;
use crate::sys::{Listing, ListingBuffer};

/// Compares what `src` needs with what is free where `dst` is. The tree is walked only when the answer is not plain: all that
/// is used on the source's file system together may fit.
pub(crate) fn check(
    src: BorrowedFd<'_>,
    dst: BorrowedFd<'_>,
    src_path: &Path,
    dst_path: &Path,
    exclude: &Exclude,
    cancel: &Cancel,
) -> Result<(), Error> {
    let (Ok(from), Ok(to)) = (rustix::fs::fstatvfs(src), rustix::fs::fstatvfs(dst)) else {
        // A file system that does not say how full it is; running out is noticed when it happens.
        return Ok(());
    };
    let room = Room::free(&to);
    if Room::used(&from).fits(&room) {
        return Ok(());
    }
    let needed = needed(src, exclude, cancel)
        .map_err(|(path, errno)| Error::io("read directory", src_path.join(path), errno))?;
    let no_room = |needed, available, unit| {
        let path = dst_path.to_path_buf();
        Err(Error::NoRoom { path, needed, available, unit })
    };
    if needed.bytes > room.bytes {
        return no_room(needed.bytes, room.bytes, "bytes");
    }
    if needed.inodes > room.inodes {
        return no_room(needed.inodes, room.inodes, "inodes");
    }
    Ok(())
}

struct Room {
    bytes: u64,
    inodes: u64,
}

impl Room {
    fn free(fs: &StatVfs) -> Self {
        // No count of inodes: the file system makes them as needed.
        let inodes = if fs.f_files == 0 { u64::MAX } else { fs.f_favail };
        Self { bytes: fs.f_bavail.saturating_mul(fs.f_frsize), inodes }
    }

    fn used(fs: &StatVfs) -> Self {
        Self {
            bytes: fs.f_blocks.saturating_sub(fs.f_bfree).saturating_mul(fs.f_frsize),
            inodes: fs.f_files.saturating_sub(fs.f_ffree),
        }
    }

    fn fits(&self, room: &Self) -> bool {
        self.bytes <= room.bytes && self.inodes <= room.inodes
    }
}

/// Allocated bytes (holes do not count) and entries. A file with several names counts for the share of one.
fn needed(src: BorrowedFd<'_>, exclude: &Exclude, cancel: &Cancel) -> Result<Room, (std::path::PathBuf, Errno)> {
    let mut room = Room { bytes: 0, inodes: 1 };
    let mut buffer = ListingBuffer::new();
    let mut directories = vec![Node::root()];
    while let Some(node) = directories.pop() {
        let failed = |errno| (node.path(), errno);
        let directory = match node.open_source(src) {
            // It has just gone, or the clone will say what is wrong with it.
            Err(_) => continue,
            Ok(directory) => directory,
        };
        let mut listing = Listing::new(directory.as_fd(), &mut buffer).map_err(failed)?;
        while let Some(entry) = listing.next() {
            let entry = entry.map_err(failed)?;
            if cancel.is_cancelled() {
                return Ok(room);
            }
            let is_directory = entry.kind == FileType::Directory;
            if !exclude.is_empty() && exclude.matches(&node.path_of(entry.name), is_directory) {
                continue;
            }
            room.inodes += 1;
            if is_directory {
                directories.push(Node::child(&node, entry.name));
                continue;
            }
            let Ok(stat) = rustix::fs::statat(&directory, entry.name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let allocated = u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512);
            let size = u64::try_from(stat.st_size).unwrap_or(0);
            #[allow(clippy::unnecessary_cast, reason = "the field's type differs between systems")]
            let names = (stat.st_nlink as u64).max(1);
            room.bytes += allocated.min(size.next_multiple_of(4096)) / names;
        }
    }
    Ok(room)
}

/// [`check`] for one entry that is not a directory.
pub(crate) fn check_bytes(needed: u64, dst: BorrowedFd<'_>, dst_path: &Path) -> Result<(), Error> {
    match rustix::fs::fstatvfs(dst) {
        Ok(to) if needed > Room::free(&to).bytes => {
            Err(Error::NoRoom { path: dst_path.to_path_buf(), needed, available: Room::free(&to).bytes, unit: "bytes" })
        }
        _ => Ok(()),
    }
}
