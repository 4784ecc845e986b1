//! Shares the extents of one file with an equal one: the kernel compares, and this measures the result.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use crate::space::walk::reason;
use crate::sys::{self, Extent};
use crate::vocabulary::reason::{LeftReason, SkipReason};

pub(super) fn extents_of(file: BorrowedFd<'_>) -> sys::Result<Vec<Extent>> {
    let mut extents = Vec::new();
    sys::extents(file, |extent| {
        extents.push(*extent);
        true
    })?;
    Ok(extents)
}

/// Returns the disk address of a file's first extent, or zero.
pub(super) fn address_of(extents: &[Extent]) -> u64 {
    match extents.first() {
        Some(first) if first.inline => INLINE,
        Some(first) if first.has_address => first.physical,
        _ => 0,
    }
}

/// The address of contents that are kept in the metadata.
pub(super) const INLINE: u64 = 1;

pub(super) fn common_bytes(a: &[Extent], b: &[Extent]) -> u64 {
    let (mut i, mut j, mut common) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let (x_end, y_end) = (x.logical + x.length, y.logical + y.length);
        let overlap = x_end.min(y_end).saturating_sub(x.logical.max(y.logical));
        let same = match x.encoded || y.encoded {
            // Only the start of a compressed extent is known.
            true => x.physical == y.physical,
            false => x.physical.wrapping_sub(x.logical) == y.physical.wrapping_sub(y.logical),
        };
        if overlap > 0 && x.has_address && y.has_address && same {
            common += overlap;
        }
        if x_end <= y_end { i += 1 } else { j += 1 }
    }
    common
}

pub(super) fn disk_bytes(extents: &[Extent]) -> u64 {
    extents.iter().filter(|extent| extent.has_address).map(|extent| extent.length).sum()
}

pub(super) const CHANGED: LeftReason = LeftReason::Skipped(SkipReason::Changed);

pub(super) enum ShareOutcome {
    /// The number of newly shared bytes, and the file's address.
    Now(u64, u64),
    Already(u64),
    Differs,
}

/// Makes `dst` use the extents of `src` where their contents are equal, by whole ranges of `dst` that are not holes.
pub(super) fn share(
    src: BorrowedFd<'_>,
    src_extents: &[Extent],
    dst: BorrowedFd<'_>,
    size: u64,
    most: u64,
    stopped: impl Fn() -> bool,
) -> Result<ShareOutcome, Errno> {
    let before = extents_of(dst)?;
    let common = common_bytes(src_extents, &before);
    if common == disk_bytes(&before) && !before.is_empty() {
        return Ok(ShareOutcome::Already(address_of(&before)));
    }
    let mut differs = false;
    let mut at = 0;
    'file: while at < before.len() {
        // Adjacent extents form one request.
        let begin = before[at].logical;
        let mut end = begin;
        while at < before.len() && before[at].logical == end {
            end += before[at].length;
            at += 1;
        }
        let end = end.min(size);
        let mut position = begin;
        while position < end {
            if stopped() {
                break 'file;
            }
            let length = (end - position).min(most);
            if !sys::dedupe_range(src, position, length, dst, position)? {
                differs = true;
                break 'file;
            }
            position += length;
        }
    }
    // The kernel's own count of shared bytes cannot be trusted.
    let after = extents_of(dst)?;
    let mut now = common_bytes(src_extents, &after);
    if now < disk_bytes(&after) {
        // The source's extents may have moved meanwhile.
        now = common_bytes(&extents_of(src)?, &after);
    }
    let now = now.min(size).saturating_sub(common);
    if now == 0 {
        return if differs { Ok(ShareOutcome::Differs) } else { Ok(ShareOutcome::Already(address_of(&after))) };
    }
    Ok(ShareOutcome::Now(now, address_of(&after)))
}

/// Fails as [`share`] would because of mount or owner: for zero bytes, the kernel checks only these (fs/remap_range.c).
pub(super) fn may_share(src: BorrowedFd<'_>, dst: BorrowedFd<'_>) -> sys::Result<()> {
    if sys::is_immutable(dst) {
        return Err(Errno::PERM);
    }
    sys::dedupe_range(src, 0, 0, dst, 0).map(|_| ())
}

pub(super) fn refusal(errno: Errno, src: BorrowedFd<'_>, dst: BorrowedFd<'_>) -> LeftReason {
    match errno {
        Errno::PERM if sys::is_immutable(dst) => LeftReason::Immutable,
        Errno::PERM | Errno::ACCESS => LeftReason::OtherOwner,
        Errno::TXTBSY => LeftReason::Swap,
        Errno::INVAL if sys::differ_in_nocow(src, dst) => LeftReason::OneIsNocow,
        Errno::INVAL => LeftReason::Refused,
        Errno::NOSPC | Errno::DQUOT => LeftReason::NoRoom,
        Errno::ROFS => LeftReason::ReadOnly,
        Errno::OPNOTSUPP | Errno::NOTTY | Errno::NOSYS => LeftReason::Unsupported,
        Errno::XDEV => LeftReason::OtherFileSystem,
        _ => LeftReason::Skipped(reason(errno)),
    }
}
