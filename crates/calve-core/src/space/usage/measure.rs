//! The space of one file: its blocks, and which of them are its own.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::ledger::Use;
use crate::space::volumes::Volume;
use crate::sys::{self, CloneFamily, Extent, SpaceRules, XattrTarget, allocated, size};
use crate::tree::node::open_source;

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

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EntrySpace {
    /// Bytes that only this file uses, uncompressed.
    pub(super) exclusive: u64,
    /// Bytes kept in the metadata.
    pub(super) inline: u64,
    /// The space that deleting the entry frees, without shared blocks.
    pub(super) data: Range,
    /// The same for metadata.
    pub(super) other: Range,
    /// Bytes that may be shared or not.
    pub(super) unknown: u64,
    /// The bytes of the entry's items in the trees of a btrfs.
    pub(super) items: u64,
}

/// The items of a btrfs (linux/btrfs_tree.h): each has a header of 25 bytes in its leaf.
const ITEM: u64 = 25;

const INODE_ITEM: u64 = ITEM + 160;
/// The root of a subvolume, two references to it with the longest name, and its UUID.
pub(super) const SUBVOLUME_ITEMS: u64 = (ITEM + 439) + 2 * (ITEM + 18 + 255) + (ITEM + 8);

/// Returns the metadata bytes of a name: a reference, and two entries in the directory.
pub(super) fn name_items(name: &CStr) -> u64 {
    let name = name.to_bytes().len() as u64;
    (ITEM + 10 + name) + 2 * (ITEM + 30 + name)
}

/// Returns the metadata bytes of an inode, without names and contents.
pub(super) fn inode_items(inode: XattrTarget<'_>) -> u64 {
    INODE_ITEM + xattr_sizes(inode).into_iter().map(|(name, value)| ITEM + 30 + name + value).sum::<u64>()
}

fn xattr_sizes(inode: XattrTarget<'_>) -> Vec<(u64, u64)> {
    let (mut names, mut value) = (Vec::new(), Vec::new());
    let Ok(names) = sys::list_xattrs(inode, &mut names) else { return Vec::new() };
    sys::xattr_names(names)
        .filter_map(|name| Some((name.to_bytes().len() as u64, inode.read(name, &mut value).ok()? as u64)))
        .collect()
}

/// Attributes that do not fit into the inode are in a block, which counts for all inodes sharing it (fs/ext4/xattr.c).
pub(super) fn freed_by_ext(inode: XattrTarget<'_>, stat: &Stat) -> Range {
    // An inode of 256 bytes has 92 for attributes, with an end mark of 4 and a header of 16 for each.
    const BESIDE_INODE: u64 = 88;
    let blocks = allocated(stat);
    let attributes: u64 = match blocks {
        0 => 0,
        _ => xattr_sizes(inode).into_iter().map(|(name, value)| 16 + name + value.next_multiple_of(4)).sum(),
    };
    let in_block = attributes > BESIDE_INODE;
    let block = if in_block { u64::try_from(stat.st_blksize).unwrap_or(0) } else { 0 };
    Range { min: blocks.saturating_sub(block), max: blocks }
}

/// Measures an entry that is not a directory. `uses` gets its shared extents, or all if their users can be found.
pub(super) fn entry(
    (directory, name): (BorrowedFd<'_>, &CStr),
    stat: &Stat,
    volume: &Volume,
    root: u32,
    uses: &mut Vec<Use>,
) -> Result<EntrySpace, Errno> {
    let one = Use { file_system: volume.file_system, root, ..Use::default() };
    let mut measured = EntrySpace::default();
    let inode = XattrTarget::Named(directory, name);
    let blocks = allocated(stat);
    if volume.rules == SpaceRules::Btrfs {
        measured.items = inode_items(inode);
    }
    let of_blocks = || if volume.rules == SpaceRules::Ext { freed_by_ext(inode, stat) } else { Range::exactly(blocks) };
    if sys::kind(stat) != FileType::RegularFile {
        if volume.rules == SpaceRules::Btrfs {
            measured.items += size(stat) + ITEM + 21;
        } else {
            measured.other = of_blocks();
            measured.exclusive = measured.other.min;
        }
        return Ok(measured);
    }
    match volume.rules {
        SpaceRules::Exact | SpaceRules::Ext => {
            measured.data = of_blocks();
            measured.exclusive = measured.data.min;
            return Ok(measured);
        }
        SpaceRules::Unknown => {
            measured.unknown = blocks;
            measured.data = Range { min: 0, max: blocks };
            return Ok(measured);
        }
        _ if blocks == 0 => return Ok(measured),
        SpaceRules::Apfs => {
            uses.extend(use_by_family(&mut measured, blocks, &sys::clone_family(directory, name)?, one));
            return Ok(measured);
        }
        _ => {}
    }
    let file = open_source(directory, name, sys::FILE)?;
    let mut shared = 0;
    sys::extents(file.as_fd(), |extent| {
        if extent.inline {
            let contents = size(stat).min(extent.length);
            measured.inline += contents;
            measured.items += ITEM + 21 + contents;
            return true;
        }
        // The file's item, the extent's own, and the checksums of each 4 KiB.
        measured.items += (ITEM + 53) + (ITEM + 53) + extent.length / 1024 + ITEM;
        if !extent.has_address {
            // Not written to the disk yet, so nothing can share it.
            measured.exclusive += extent.length;
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
        if extent.shared || volume.subvolume.is_some() {
            let &Extent { physical: start, length, shared, encoded, .. } = extent;
            uses.push(Use { start, end: start.saturating_add(length), shared, encoded, ..one });
        }
        true
    })?;
    if volume.rules == SpaceRules::Xfs {
        // `blocks` includes extent metadata and reserved blocks.
        measured.data = Range::exactly(blocks.saturating_sub(shared));
    }
    Ok(measured)
}

/// Measures a file that tells its number of clones. Shared bytes count once for the family. A clone that was written
/// has left the family, and may still share some of it: nothing tells.
fn use_by_family(measured: &mut EntrySpace, blocks: u64, family: &CloneFamily, one: Use) -> Option<Use> {
    let private = family.private.min(blocks);
    measured.exclusive = private;
    measured.data = Range::exactly(private);
    // A clone that was written since is reported as alone.
    let (start, members) = (family.number, family.members.max(1));
    let end = start.saturating_add(blocks - private);
    (private < blocks).then_some(Use { start, end, shared: true, encoded: true, family: members, ..one })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the amounts that a file of 100 blocks adds: exclusive bytes, and shared ones with as many as are in its family.
    fn parts(private: u64, number: u64, members: u32) -> (u64, Vec<(u64, u64, u32)>) {
        let mut measured = EntrySpace::default();
        let family = CloneFamily { private, number, members };
        let shared = use_by_family(&mut measured, 100, &family, Use::default());
        assert_eq!(measured.data, Range::exactly(measured.exclusive));
        (measured.exclusive, shared.map(|one| (one.start, one.end - one.start, one.family)).into_iter().collect())
    }

    #[test]
    fn a_clone_shares_what_is_not_its_own() {
        assert_eq!(parts(100, 7, 1), (100, vec![]), "no clone");
        assert_eq!(parts(0, 7, 3), (0, vec![(7, 100, 3)]), "one of three");
        assert_eq!(parts(40, 8, 1), (40, vec![(8, 60, 1)]), "written to since");
        assert_eq!(parts(40, 8, 0), (40, vec![(8, 60, 1)]), "a system that does not count them");
        assert_eq!(parts(150, 8, 1), (100, vec![]), "never more than it has");
    }
}
