//! macOS neither tells a file's extents nor shares them after the fact.

use std::marker::PhantomData;
use std::os::fd::BorrowedFd;

use rustix::io::{Errno, Result};

use crate::sys::{DiskExtent, Extent, InodeSpace};

absent! {
    fn extents(_file: BorrowedFd<'_>, _each: impl FnMut(&Extent) -> bool) -> Result<()> = Err(Errno::OPNOTSUPP);
    fn settled_extents(_file: BorrowedFd<'_>, _each: impl FnMut(&Extent) -> bool) -> Result<()> = Err(Errno::OPNOTSUPP);
    fn dedupe_range(_src: BorrowedFd<'_>, _src_offset: u64, _length: u64, _dst: BorrowedFd<'_>, _dst_offset: u64) -> Result<bool> = Err(Errno::OPNOTSUPP);
    fn btrfs_subvolume(_directory: BorrowedFd<'_>) -> Result<u64> = Err(Errno::OPNOTSUPP);
    fn btrfs_was_snapshotted(_directory: BorrowedFd<'_>, _subvolume: u64) -> Result<bool> = Err(Errno::OPNOTSUPP);
    fn btrfs_node_bytes(_directory: BorrowedFd<'_>) -> Result<u64> = Err(Errno::OPNOTSUPP);
    fn btrfs_metadata_copies(_directory: BorrowedFd<'_>) -> Result<u64> = Err(Errno::OPNOTSUPP);
    fn is_immutable(_file: BorrowedFd<'_>) -> bool = false;
    fn is_unchangeable(_file: BorrowedFd<'_>) -> bool = false;
    fn differ_in_nocow(_a: BorrowedFd<'_>, _b: BorrowedFd<'_>) -> bool = false;
    fn most_bytes_per_dedupe(_directory: BorrowedFd<'_>) -> Option<u64> = None;
    fn xfs_inodes(_directory: BorrowedFd<'_>) -> Option<InodeSpace> = None;
}

pub(crate) struct DiskExtents<'a>(PhantomData<BorrowedFd<'a>>);

impl<'a> DiskExtents<'a> {
    pub(crate) fn new(_directory: BorrowedFd<'a>) -> Self {
        Self(PhantomData)
    }

    pub(crate) fn at(&mut self, _address: u64) -> Result<Option<&DiskExtent>> {
        Err(Errno::OPNOTSUPP)
    }
}
