//! The room that a clone needs, checked before writing.

use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{FileType, StatVfs};
use rustix::io::Errno;

use crate::error::{Error, RoomUnit};
use crate::progress::CancelToken;
use crate::sys::{self, Listing, ListingBuffer};
use crate::tree::exclude::Exclusions;
use crate::tree::location::identity;
use crate::tree::node::{Node, full_path};
use crate::tree::source::Source;
use crate::vocabulary::hidden_name::is_calves_own;
use crate::vocabulary::operation::Operation;

/// Fails if a clone of `source` would not fit at `dst`, where the file system tells. Walks the tree only if all that is
/// used on the source's file system would not fit.
pub(crate) fn check(
    source: &Source,
    dst: BorrowedFd<'_>,
    dst_path: &Path,
    exclude: &Exclusions,
    cancel: &CancelToken,
) -> Result<(), Error> {
    if source.single().is_some() {
        return check_room(&Room { bytes: sys::stored(source.stat()), inodes: 0 }, dst, dst_path);
    }
    let src = source.directory();
    let (Ok(from), Ok(to)) = (rustix::fs::fstatvfs(src), rustix::fs::fstatvfs(dst)) else {
        // The file system does not say how full it is: running out shows when it happens.
        return Ok(());
    };
    if Room::used(&from).fits(&Room::free(&to)) {
        return Ok(());
    }
    let needed = needed(src, NewEntries::in_directory(dst), exclude, cancel)
        .map_err(|(path, errno)| Error::io(Operation::ReadDirectory, full_path(source.path(), &path), errno))?;
    check_room(&needed, dst, dst_path)
}

/// Counts the room for new entries in one place: each takes an inode, and its contents take whole blocks of the file
/// system there. File systems that keep short contents in the inode need less.
#[derive(Debug, Clone)]
pub struct NewEntries {
    block_bytes: u64,
    room: Room,
}

impl NewEntries {
    /// ext4 keeps shorter symlink targets in the inode (fs/ext4/namei.c); XFS and btrfs keep longer ones there too.
    const SHORT_TARGET_BYTES: u64 = 60;

    pub fn in_directory(directory: BorrowedFd<'_>) -> Self {
        let block_bytes = rustix::fs::fstatvfs(directory).map_or(4096, |fs| fs.f_frsize.max(1));
        Self { block_bytes, room: Room { bytes: 0, inodes: 0 } }
    }

    pub fn add_file(&mut self, bytes: u64) {
        self.room.inodes += 1;
        self.add_blocks(bytes);
    }

    /// Adds a directory, without its entries.
    pub fn add_directory(&mut self) {
        self.add_file(1);
    }

    pub fn add_symlink(&mut self, target_bytes: u64) {
        self.add_file(if target_bytes < Self::SHORT_TARGET_BYTES { 0 } else { target_bytes });
    }

    /// Adds data of an entry already counted, such as its extended attributes.
    pub fn add_blocks(&mut self, bytes: u64) {
        let whole = bytes.checked_next_multiple_of(self.block_bytes).unwrap_or(u64::MAX);
        self.room.bytes = self.room.bytes.saturating_add(whole);
    }

    /// Subtracts the contents that `shared` counts, whose blocks the new entries may share. Each still needs its inode.
    pub fn share_contents(&mut self, shared: &Self) {
        self.room.bytes = self.room.bytes.saturating_sub(shared.room.bytes);
    }

    /// Fails with [`Error::NoRoom`] unless they fit in this directory, which errors call `path`. A file system that does
    /// not say how full it is lets everything in.
    pub fn check_room(&self, directory: BorrowedFd<'_>, path: &Path) -> Result<(), Error> {
        check_room(&self.room, directory, path)
    }
}

pub(crate) fn check_room(needed: &Room, dst: BorrowedFd<'_>, dst_path: &Path) -> Result<(), Error> {
    let no_room = |needed, available, unit| {
        let path = dst_path.to_path_buf();
        Err(Error::NoRoom { path, needed, available, unit })
    };
    let room = match rustix::fs::fstatvfs(dst).map(|to| Room::free(&to)) {
        Ok(room) if !needed.fits(&room) => Room::after_writing_back(dst),
        _ => return Ok(()),
    };
    if needed.bytes > room.bytes {
        return no_room(needed.bytes, room.bytes, RoomUnit::Bytes);
    }
    if needed.inodes > room.inodes {
        return no_room(needed.inodes, room.inodes, RoomUnit::Inodes);
    }
    Ok(())
}

#[derive(Debug, Clone)]
pub(crate) struct Room {
    pub(crate) bytes: u64,
    pub(crate) inodes: u64,
}

impl Room {
    fn free(fs: &StatVfs) -> Self {
        // No count of inodes: the file system makes them as needed.
        let inodes = if fs.f_files == 0 { u64::MAX } else { fs.f_favail };
        Self { bytes: sys::available(fs), inodes }
    }

    /// Returns the free room after a write-back: XFS counts six times the room for files whose data is still in memory.
    fn after_writing_back(dst: BorrowedFd<'_>) -> Self {
        let _ = sys::sync_file_system(dst);
        let everything = Self { bytes: u64::MAX, inodes: u64::MAX };
        rustix::fs::fstatvfs(dst).map_or(everything, |fs| Self::free(&fs))
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

/// Counts allocated bytes (without holes) and inodes. A file with several names counts once.
fn needed(
    src: BorrowedFd<'_>,
    mut entries: NewEntries,
    exclude: &Exclusions,
    cancel: &CancelToken,
) -> Result<Room, (std::path::PathBuf, Errno)> {
    entries.add_directory();
    let mut buffer = ListingBuffer::new();
    let mut directories = vec![Node::root()];
    let mut several_names = HashSet::new();
    while let Some(node) = directories.pop() {
        let failed = |errno| (node.path(), errno);
        // It has just gone, or the clone will report the fault.
        let Ok(directory) = node.open_source(src) else { continue };
        let mut listing = Listing::new(directory.as_fd(), &mut buffer).map_err(failed)?;
        while let Some(entry) = listing.next() {
            let entry = entry.map_err(failed)?;
            if cancel.is_cancelled() {
                return Ok(entries.room);
            }
            if is_calves_own(entry.name.to_bytes()) {
                continue;
            }
            let stat = (entry.kind != FileType::Directory).then(|| sys::stat_at(&directory, entry.name));
            let Ok(stat) = stat.transpose() else { continue };
            let file = stat.filter(|stat| !sys::is_directory(*stat));
            let is_directory = file.is_none();
            if !exclude.is_empty() && exclude.matches(&node.path_of(entry.name), is_directory) {
                continue;
            }
            match file {
                None => {
                    entries.add_directory();
                    directories.push(Node::child(&node, entry.name));
                }
                Some(stat) if stat.st_nlink < 2 || several_names.insert(identity(&stat)) => {
                    entries.add_file(sys::stored(&stat));
                }
                Some(_) => {}
            }
        }
    }
    Ok(entries.room)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, OFlags};

    #[test]
    fn a_file_with_several_names_counts_once_and_calves_own_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for directory in ["sub", ".calve-trash-1"] {
            fs_err::create_dir(path(directory)).unwrap();
        }
        for file in ["a", "alone", ".calve-trash-1/large"] {
            fs_err::write(path(file), vec![1; 8192]).unwrap();
        }
        for name in ["b", "sub/c", "sub/d"] {
            fs_err::hard_link(path("a"), path(name)).unwrap();
        }
        let root = rustix::fs::openat(CWD, folder.path(), OFlags::RDONLY, Mode::empty()).unwrap();
        crate::sys::sync_file_system(root.as_fd()).unwrap();
        let exclude = Exclusions::new(&[]).unwrap();
        let entries = NewEntries { block_bytes: 1024, room: Room { bytes: 0, inodes: 0 } };
        let needed = needed(root.as_fd(), entries, &exclude, &CancelToken::default()).unwrap();
        // The root, `sub`, and two files.
        assert_eq!((needed.inodes, needed.bytes), (4, 2 * 1024 + 2 * 8192));
    }

    #[test]
    fn each_entry_takes_an_inode_and_whole_blocks() {
        let mut entries = NewEntries { block_bytes: 4096, room: Room { bytes: 0, inodes: 0 } };
        let counted = |entries: &NewEntries| (entries.room.inodes, entries.room.bytes / 4096);
        [0, 1, 4096, 4097].iter().for_each(|&bytes| entries.add_file(bytes));
        assert_eq!(counted(&entries), (4, 4));
        entries.add_directory();
        [59, 60].iter().for_each(|&bytes| entries.add_symlink(bytes));
        entries.add_blocks(10);
        assert_eq!(counted(&entries), (7, 7));
        let mut shared = NewEntries { block_bytes: 4096, room: Room { bytes: 0, inodes: 0 } };
        shared.add_file(1);
        entries.share_contents(&shared);
        assert_eq!(counted(&entries), (7, 6), "inodes are not shared");
        entries.add_file(u64::MAX);
        assert_eq!(entries.room.bytes, u64::MAX);
    }
}
