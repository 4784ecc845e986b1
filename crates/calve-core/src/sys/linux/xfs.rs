//! Facts about an XFS (ioctl_xfs_fsgeometry(2), ioctl_xfs_fscounts(2)).

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::ioctl::{Getter, Opcode, ioctl, opcode};

use super::magic::{XFS_MAGIC, magic};
use crate::sys::InodeSpace;

/// `struct xfs_fsop_geom_v1` (xfs_fs.h; ioctl_xfs_fsgeometry(2)); only the needed fields are named.
#[repr(C)]
struct XfsGeometry {
    block_bytes: u32,
    _extent: u32,
    group_blocks: u32,
    counts: [u32; 3],
    inode_bytes: u32,
    _percentage: u32,
    _sizes: [u64; 6],
    _stripes: [u32; 3],
    flags: u32,
    _rest: [u64; 2],
}

/// Returns how many low bits of an inode number locate it within its allocation group. `None` without such groups.
pub(crate) fn allocation_group_shift(directory: BorrowedFd<'_>) -> Option<u32> {
    let geometry = xfs_geometry(directory)?;
    let inodes_per_block = geometry.block_bytes.checked_div(geometry.inode_bytes)?;
    Some(bits(geometry.group_blocks) + bits(inodes_per_block))
}

/// Creates an unnamed file in `directory`, if that is on XFS.
pub(crate) fn unnamed_file_on_xfs(directory: BorrowedFd<'_>) -> Option<OwnedFd> {
    if magic(directory) != Ok(XFS_MAGIC) {
        return None;
    }
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::openat(directory, c".", flags, Mode::RWXU).ok()
}

fn xfs_geometry(directory: BorrowedFd<'_>) -> Option<XfsGeometry> {
    const FSGEOMETRY_V1: Opcode = opcode::read::<XfsGeometry>(b'X', 100);
    const _: () = assert!(size_of::<XfsGeometry>() == 112);
    if magic(directory) != Ok(XFS_MAGIC) {
        return None;
    }
    // SAFETY: the opcode takes a pointer to `struct xfs_fsop_geom_v1`, which has the size of `XfsGeometry` (checked above) and no
    // field for which some bits would not do; the kernel fills it.
    unsafe { ioctl(directory, Getter::<FSGEOMETRY_V1, XfsGeometry>::new()) }.ok()
}

pub(crate) fn xfs_inodes(directory: BorrowedFd<'_>) -> Option<InodeSpace> {
    const SPARSE_INODES: u32 = 1 << 18;
    const FSCOUNTS: Opcode = opcode::read::<XfsCounts>(b'X', 113);
    const _: () = assert!(size_of::<XfsCounts>() == 32);
    let geometry = xfs_geometry(directory)?;
    // SAFETY: the opcode takes a pointer to `struct xfs_fsop_counts`, which `XfsCounts` is; the kernel fills it.
    let counts = unsafe { ioctl(directory, Getter::<FSCOUNTS, XfsCounts>::new()) }.ok()?;
    Some(InodeSpace {
        inode_bytes: u64::from(geometry.inode_bytes),
        block_bytes: u64::from(geometry.block_bytes),
        groups: u64::from(geometry.counts[0]),
        allocated: counts.allocated_inodes,
        aligned: geometry.flags & SPARSE_INODES != 0,
    })
}

/// `struct xfs_fsop_counts`.
#[repr(C)]
struct XfsCounts {
    _free: [u64; 3],
    allocated_inodes: u64,
}

pub(super) fn xfs_can_reflink(directory: BorrowedFd<'_>) -> bool {
    const REFLINK: u32 = 1 << 20;
    xfs_geometry(directory).is_some_and(|geometry| geometry.flags & REFLINK != 0)
}

/// Returns the bits needed to count to `count`: its logarithm, rounded up.
fn bits(count: u32) -> u32 {
    u32::BITS - count.saturating_sub(1).leading_zeros()
}
