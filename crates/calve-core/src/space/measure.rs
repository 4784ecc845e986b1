//! What one file takes up: its blocks, and which of them nobody else uses.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::ledger::Use;
use super::volumes::Volume;
use crate::sys::{self, SpaceRules};

/// A range that a figure is known to lie in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Range {
    pub(super) fn exactly(bytes: u64) -> Self {
        Self { min: bytes, max: bytes }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.min = self.min.saturating_add(other.min);
        self.max = self.max.saturating_add(other.max);
    }
}

/// One entry's share of the figures.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Measured {
    /// Bytes that nobody else uses, as the file sees them: compressed ones are counted as they are read.
    pub(super) exclusive: u64,
    /// Bytes kept in the metadata.
    pub(super) inline: u64,
    /// What deleting the entry frees, for certain and at most, without what is shared.
    pub(super) data: Range,
    /// The same for what is not file contents.
    pub(super) other: Range,
    /// Nothing is known: all of it may be shared.
    pub(super) unknown: u64,
    /// The bytes that describe the entry in the trees of a btrfs.
    pub(super) items: u64,
}

pub(super) fn allocated(stat: &Stat) -> u64 {
    u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512)
}

pub(super) fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// The items of a btrfs (linux/btrfs_tree.h): each has a header of 25 bytes in its leaf.
const ITEM: u64 = 25;

/// An inode, its reference, and its two entries in the directory.
pub(super) fn named_items(name: &CStr) -> u64 {
    let name = name.to_bytes().len() as u64;
    (ITEM + 160) + (ITEM + 10 + name) + 2 * (ITEM + 30 + name)
}

/// Measures an entry that is not a directory. `each` gets what it uses of shared extents, or of all, with `every`.
pub(super) fn entry(
    directory: BorrowedFd<'_>,
    name: &CStr,
    stat: &Stat,
    volume: &Volume,
    every: bool,
    mut each: impl FnMut(u64, u64, bool, bool),
) -> Result<Measured, Errno> {
    let mut measured = Measured { items: named_items(name), ..Measured::default() };
    let blocks = allocated(stat);
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        if volume.rules == SpaceRules::Btrfs {
            measured.items += size(stat) + ITEM + 21;
        } else {
            measured.other = Range::exactly(blocks);
            measured.exclusive = blocks;
        }
        return Ok(measured);
    }
    match volume.rules {
        SpaceRules::Exact => {
            measured.exclusive = blocks;
            measured.data = Range::exactly(blocks);
            return Ok(measured);
        }
        SpaceRules::Unknown => {
            measured.unknown = blocks;
            measured.data = Range { min: 0, max: blocks };
            return Ok(measured);
        }
        _ if blocks == 0 => return Ok(measured),
        _ => {}
    }
    let file = open(directory, name)?;
    let mut shared = 0;
    sys::extents(file.as_fd(), 0, |extent| {
        if extent.inline {
            measured.inline += extent.length;
            measured.items += ITEM + 21 + size(stat).min(extent.length);
            return true;
        }
        // The file's item, the extent's own, and the checksums of each 4 KiB.
        measured.items += (ITEM + 53) + (ITEM + 53) + extent.length / 1024 + ITEM;
        if !extent.placed {
            // Not written to the disk yet; it has no place that could be shared.
            measured.data.max += extent.length;
            return true;
        }
        if extent.shared {
            shared += extent.length;
        } else {
            measured.exclusive += extent.length;
            let least = if extent.encoded { 4096 } else { extent.length };
            measured.data.add(Range { min: least, max: extent.length });
        }
        if extent.shared || every {
            each(extent.physical, extent.length, extent.shared, extent.encoded);
        }
        true
    })?;
    if volume.rules == SpaceRules::Xfs {
        // Counts what describes the extents, and what is reserved, too.
        measured.data = Range::exactly(blocks.saturating_sub(shared));
    }
    Ok(measured)
}

pub(super) fn open(directory: BorrowedFd<'_>, name: &CStr) -> Result<std::os::fd::OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match sys::open_at(directory, name, flags | sys::NO_ATIME, Mode::empty()) {
        Err(Errno::PERM) => sys::open_at(directory, name, flags, Mode::empty()),
        other => other,
    }
}

/// A use of an extent, as the ledger keeps it.
pub(super) fn use_of(volume: &Volume, root: u32, start: u64, length: u64, shared: bool, encoded: bool) -> Use {
    Use { file_system: volume.file_system, start, end: start.saturating_add(length), root, shared, encoded }
}
