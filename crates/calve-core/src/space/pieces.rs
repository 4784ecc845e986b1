//! Groups of equal files, cut so that two threads need not wait for each other.

use super::find::{Finder, Group};
use super::turns::Places;

/// A file, and others to share its extents with.
pub(super) struct Piece {
    /// Of a group that was cut, the one that stands for it.
    pub(super) is_first: bool,
    /// Where the files lie.
    pub(super) places: Places,
    pub(super) members: Group,
}

/// Cuts groups by the allocation groups that their files are in; where there are no such groups they stay whole.
pub(super) fn pieces(finder: &Finder<'_>, groups: Vec<Group>) -> Vec<Piece> {
    let place = |index: u32| -> Places {
        let item = &finder.catalog.items[index as usize];
        let shift = if finder.threads > 1 { finder.volumes[usize::from(item.device)].group_shift } else { None };
        shift.map_or(0, |shift| 1 << (item.inode.checked_shr(shift).unwrap_or(0) % u64::from(Places::BITS)))
    };
    let mut pieces = Vec::with_capacity(groups.len());
    for members in groups {
        let places = members.iter().fold(0, |places, &index| places | place(index));
        // Where some have been shared before, the best one to share with is found among all of them.
        let whole = places.count_ones() <= 2 || members.iter().any(|&index| finder.known[index as usize].place != 0);
        if whole {
            pieces.push(Piece { is_first: true, places, members });
            continue;
        }
        let source = members[0];
        let mut others: Vec<(Places, u32)> = members[1..].iter().map(|&index| (place(index), index)).collect();
        others.sort_unstable();
        for (number, part) in others.chunk_by(|a, b| a.0 == b.0).enumerate() {
            let members = std::iter::once(source).chain(part.iter().map(|(_, index)| *index)).collect();
            pieces.push(Piece { is_first: number == 0, places: place(source) | part[0].0, members });
        }
    }
    pieces
}
