//! Extents of a file (FS_IOC_FIEMAP), and sharing them after the fact (FIDEDUPERANGE).

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::IFlags;
use rustix::io::{Errno, Result};
use rustix::ioctl::{Direction, Opcode, Updater, ioctl, opcode};

use super::magic::{BTRFS_MAGIC, EXT4_MAGIC, TMPFS_MAGIC, XFS_MAGIC, magic};
use super::xfs::xfs_can_reflink;
use crate::sys::{Extent, SpaceRules};

/// Extents per call. Most files have one.
const ROOM: usize = 32;
const HEADER_BYTES: usize = 32;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap` with room for extents.
#[repr(C)]
#[derive(Default)]
struct Map {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [RawExtent; ROOM],
}

const FIEMAP: Opcode = opcode::from_components(Direction::ReadWrite, b'f', 11, HEADER_BYTES);
const _: () = assert!(size_of::<Map>() == HEADER_BYTES + ROOM * 56);

const LAST: u32 = 0x1;
const UNKNOWN: u32 = 0x2;
const DELAYED: u32 = 0x4;
const ENCODED: u32 = 0x8;
const INLINE: u32 = 0x200;
const UNWRITTEN: u32 = 0x800;
const SHARED: u32 = 0x2000;

/// Passes every extent of an open file to `each`, in order, until it returns false. EOPNOTSUPP without such a map.
pub(crate) fn extents(file: BorrowedFd<'_>, each: impl FnMut(&Extent) -> bool) -> Result<()> {
    mapped(file, 0, each)
}

/// Passes extents as [`extents`] does, once everything written to the file has its place on disk.
pub(crate) fn settled_extents(file: BorrowedFd<'_>, each: impl FnMut(&Extent) -> bool) -> Result<()> {
    const SYNC: u32 = 0x1;
    mapped(file, SYNC, each)
}

fn mapped(file: BorrowedFd<'_>, flags: u32, mut each: impl FnMut(&Extent) -> bool) -> Result<()> {
    let mut map = Map { length: u64::MAX, flags, extent_count: ROOM as u32, ..Map::default() };
    loop {
        let asked = crate::sys::retry(|| {
            // SAFETY: the opcode takes a pointer to `struct fiemap`, followed by as many `struct fiemap_extent` as `extent_count`
            // says; `Map` is laid out as both together (size checked above), and the kernel writes no more than that.
            unsafe { ioctl(file, Updater::<FIEMAP, Map>::new(&mut map)) }
        });
        asked?;
        let found = map.extents.get(..map.mapped_extents as usize).unwrap_or_default();
        let Some(last) = found.last().copied() else { return Ok(()) };
        for raw in found {
            let extent = Extent {
                logical: raw.logical,
                physical: raw.physical,
                length: raw.length,
                shared: raw.flags & SHARED != 0,
                inline: raw.flags & INLINE != 0,
                has_address: raw.flags & (UNKNOWN | DELAYED | INLINE) == 0,
                encoded: raw.flags & ENCODED != 0,
                unwritten: raw.flags & UNWRITTEN != 0,
            };
            if !each(&extent) {
                return Ok(());
            }
        }
        let next = last.logical.saturating_add(last.length);
        if last.flags & LAST != 0 || next <= map.start {
            return Ok(());
        }
        map.start = next;
        map.length = u64::MAX - next;
        map.mapped_extents = 0;
    }
}

/// `struct file_dedupe_range` with one destination.
#[repr(C)]
#[derive(Default)]
struct DedupeRange {
    src_offset: u64,
    src_length: u64,
    dest_count: u16,
    reserved1: u16,
    reserved2: u32,
    dest_fd: i64,
    dest_offset: u64,
    bytes_deduped: u64,
    status: i32,
    reserved: u32,
}

/// Has the kernel compare two ranges and, if equal, let `dst` share the extents of `src` (ioctl_fideduperange(2)).
/// Returns false if they differ. Keeps contents and times; an owner of `dst` need not have it open for writing.
pub(crate) fn dedupe_range(
    src: BorrowedFd<'_>,
    src_offset: u64,
    length: u64,
    dst: BorrowedFd<'_>,
    dst_offset: u64,
) -> Result<bool> {
    const HEADER: usize = 24;
    const FIDEDUPERANGE: Opcode = opcode::from_components(Direction::ReadWrite, 0x94, 54, HEADER);
    const _: () = assert!(size_of::<DedupeRange>() == HEADER + 32);
    const DIFFERS: i32 = 1;
    let mut range = DedupeRange {
        src_offset,
        src_length: length,
        dest_count: 1,
        dest_fd: i64::from(dst.as_raw_fd()),
        dest_offset: dst_offset,
        ..DedupeRange::default()
    };
    crate::sys::retry(|| {
        // SAFETY: the opcode takes a pointer to `struct file_dedupe_range`, followed by `dest_count` times `struct
        // file_dedupe_range_info`; `DedupeRange` is laid out as both together (size checked above) with a count of one.
        unsafe { ioctl(src, Updater::<FIDEDUPERANGE, DedupeRange>::new(&mut range)) }
    })?;
    match range.status {
        DIFFERS => Ok(false),
        0 => Ok(true),
        negative => Err(Errno::from_raw_os_error(-negative)),
    }
}

/// Returns whether an entry cannot be removed or renamed, even by root: immutable, or append-only.
pub(crate) fn is_unchangeable(file: BorrowedFd<'_>) -> bool {
    rustix::fs::ioctl_getflags(file).is_ok_and(|flags| flags.intersects(IFlags::IMMUTABLE | IFlags::APPEND))
}

/// Returns whether a file may not share its blocks. An append-only one may.
pub(crate) fn is_immutable(file: BorrowedFd<'_>) -> bool {
    rustix::fs::ioctl_getflags(file).is_ok_and(|flags| flags.contains(IFlags::IMMUTABLE))
}

pub(crate) fn differ_in_nocow(a: BorrowedFd<'_>, b: BorrowedFd<'_>) -> bool {
    let nocow = |file| rustix::fs::ioctl_getflags(file).is_ok_and(|flags| flags.contains(IFlags::NOCOW));
    nocow(a) != nocow(b)
}

pub(crate) fn space_rules(directory: BorrowedFd<'_>) -> SpaceRules {
    const RAMFS: u64 = 0x8584_58f6;
    match magic(directory).unwrap_or(0) {
        BTRFS_MAGIC => SpaceRules::Btrfs,
        XFS_MAGIC => SpaceRules::Xfs,
        EXT4_MAGIC => SpaceRules::Ext,
        TMPFS_MAGIC | RAMFS => SpaceRules::Exact,
        _ => SpaceRules::Unknown,
    }
}

/// Returns the most bytes that one dedupe request may cover. `None` where nothing can be shared.
pub(crate) fn most_bytes_per_dedupe(directory: BorrowedFd<'_>) -> Option<u64> {
    match magic(directory).ok()? {
        // The kernel cuts longer ones (BTRFS_MAX_DEDUPE_LEN).
        BTRFS_MAGIC => Some(16 << 20),
        XFS_MAGIC if xfs_can_reflink(directory) => Some(1 << 30),
        _ => None,
    }
}
