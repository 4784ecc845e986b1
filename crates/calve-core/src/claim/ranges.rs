//! Updates a large file of a copy by sharing only the ranges that were written since it was cloned.
//!
//! Where two files lie at the same place of the disk, they have the same bytes: neither can write there while the other
//! uses it. Sharing a whole file takes time for each of its extents, and a database's files have thousands.

use std::ffi::CStr;
use std::ops::Range;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, OFlags, Stat};

use crate::progress::CancelToken;
use crate::sys::{self, Extent, size};
use crate::tree::compare::same_xattrs;
use crate::tree::file_set::{FileSet, is_sqlite};
use crate::tree::fill::contents::open_contents;
use crate::tree::fill::metadata::same_version;
use crate::tree::held_times::times;

/// Smaller files are cloned again as a whole.
const LARGE_BYTES: u64 = 4 << 20;

/// Whole blocks on btrfs and XFS.
const FIRST_BYTES: u64 = 64 << 10;

/// A file with more extents is cloned as a whole.
const MOST_EXTENTS: usize = 1 << 18;

/// Updates the file `name` of a copy. Returns false if it must be cloned as a whole, even where a part is done.
pub(super) fn renew_ranges(src: BorrowedFd<'_>, copy: BorrowedFd<'_>, name: &CStr, cancel: &CancelToken) -> bool {
    let renewed = open_pair(src, copy, name, cancel).and_then(|pair| pair.map_or(Ok(false), |pair| pair.renew()));
    // Cloning it as a whole meets the same error, and reports it.
    renewed.unwrap_or(false)
}

struct FilePair {
    src: OwnedFd,
    copy: OwnedFd,
    stat: Stat,
}

/// Returns `None` unless only contents and times can differ, and for files of a set, which the engine copies checked.
fn open_pair(
    src: BorrowedFd<'_>,
    copy: BorrowedFd<'_>,
    name: &CStr,
    cancel: &CancelToken,
) -> sys::Result<Option<FilePair>> {
    let (src_parent, copy_parent) = (src, copy);
    let src = open_contents(src_parent, name, || cancel.is_cancelled())?;
    let stat = rustix::fs::fstat(&src)?;
    if size(&stat) < LARGE_BYTES || FileSet::from_name(name.to_bytes()).is_some() || is_sqlite(src.as_fd(), size(&stat))
    {
        return Ok(None);
    }
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let copy = rustix::fs::openat(copy_parent, name, flags, rustix::fs::Mode::empty())?;
    let made = rustix::fs::fstat(&copy)?;
    let is_single_file = |stat: &Stat| sys::kind(stat) == FileType::RegularFile && stat.st_nlink == 1;
    let is_alike = (made.st_mode, made.st_uid, made.st_gid) == (stat.st_mode, stat.st_uid, stat.st_gid)
        && sys::chosen_flags(src.as_fd()) == sys::chosen_flags(copy.as_fd())
        && same_xattrs(src_parent, copy_parent, name)?;
    Ok((is_single_file(&stat) && is_single_file(&made) && is_alike).then_some(FilePair { src, copy, stat }))
}

impl FilePair {
    fn renew(&self) -> sys::Result<bool> {
        let bytes = size(&self.stat);
        if size(&rustix::fs::fstat(&self.copy)?) != bytes {
            rustix::fs::ftruncate(&self.copy, bytes)?;
        }
        // Unlike FIEMAP, this also waits for direct writes (O_DIRECT) that have begun.
        sys::retry(|| sys::reflink_range(self.src.as_fd(), self.copy.as_fd(), 0, FIRST_BYTES))?;
        let (Some(wanted), Some(found)) =
            (written_extents(self.src.as_fd(), bytes)?, written_extents(self.copy.as_fd(), bytes)?)
        else {
            return Ok(false);
        };
        let ranges = differing(&wanted, &found, bytes);
        if ranges.len() > wanted.len().max(8) / 2 {
            return Ok(false);
        }
        for range in ranges {
            sys::retry(|| {
                sys::reflink_range(self.src.as_fd(), self.copy.as_fd(), range.start, range.end - range.start)
            })?;
        }
        rustix::fs::futimens(&self.copy, &times(&self.stat))?;
        // If it was written meanwhile, cloning it as a whole notes that.
        Ok(same_version(&self.stat, &rustix::fs::fstat(&self.src)?))
    }
}

/// Returns the extents that hold data. `None` if there are too many, or one has no address of its own.
fn written_extents(file: BorrowedFd<'_>, bytes: u64) -> sys::Result<Option<Vec<Extent>>> {
    let mut written = Vec::new();
    let mut is_comparable = true;
    sys::settled_extents(file, |extent| {
        // XFS preallocates space behind the end.
        if extent.logical >= bytes {
            return false;
        }
        is_comparable = extent.has_address && !extent.encoded && written.len() < MOST_EXTENTS;
        if !extent.unwritten {
            written.push(*extent);
        }
        is_comparable
    })?;
    Ok(is_comparable.then_some(written))
}

/// Returns the ranges that lie at different places of the disk. Both lists are sorted; a range in neither is zeros.
fn differing(wanted: &[Extent], found: &[Extent], bytes: u64) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    let (mut wanted, mut found) = (wanted.iter().peekable(), found.iter().peekable());
    let mut at = 0;
    while at < bytes {
        let (ours, our_end) = segment(&mut wanted, at, bytes);
        let (theirs, their_end) = segment(&mut found, at, bytes);
        let end = our_end.min(their_end);
        if ours != theirs {
            match ranges.last_mut() {
                Some(last) if last.end == at => last.end = end,
                _ => ranges.push(at..end),
            }
        }
        at = end;
    }
    ranges
}

/// Returns the disk address of the byte `at`, `None` in a hole, and the end of that extent or hole.
fn segment<'e>(
    extents: &mut std::iter::Peekable<impl Iterator<Item = &'e Extent>>,
    at: u64,
    bytes: u64,
) -> (Option<u64>, u64) {
    while extents.next_if(|extent| extent.logical + extent.length <= at).is_some() {}
    match extents.peek() {
        Some(extent) if extent.logical <= at => {
            (Some(extent.physical + (at - extent.logical)), bytes.min(extent.logical + extent.length))
        }
        Some(extent) => (None, bytes.min(extent.logical)),
        None => (None, bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(logical: u64, physical: u64, length: u64) -> Extent {
        Extent {
            logical,
            physical,
            length,
            shared: false,
            inline: false,
            has_address: true,
            encoded: false,
            unwritten: false,
        }
    }

    fn between(wanted: &[Extent], found: &[Extent], bytes: u64) -> Vec<(u64, u64)> {
        differing(wanted, found, bytes).into_iter().map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn what_lies_elsewhere_differs() {
        let one = [extent(0, 1000, 100), extent(200, 5000, 100)];
        assert_eq!(between(&one, &one, 300), []);
        // Cut at other places.
        let cut = [extent(0, 1000, 40), extent(40, 1040, 60), extent(200, 5000, 100)];
        assert_eq!(between(&one, &cut, 300), []);
        let moved = [extent(0, 1000, 40), extent(40, 9000, 10), extent(50, 1050, 50), extent(200, 5000, 100)];
        assert_eq!(between(&one, &moved, 300), [(40, 50)]);
        assert_eq!(between(&moved, &one, 300), [(40, 50)]);
    }

    #[test]
    fn a_hole_differs_from_data() {
        let one = [extent(0, 1000, 100), extent(200, 5000, 100)];
        assert_eq!(between(&one, &[extent(0, 1000, 300)], 300), [(100, 300)]);
        assert_eq!(between(&one, &[], 250), [(0, 100), (200, 250)]);
        assert_eq!(between(&[], &one, 400), [(0, 100), (200, 300)]);
        assert_eq!(between(&[], &[], 400), []);
    }
}
