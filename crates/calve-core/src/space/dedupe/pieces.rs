//! Groups of equal files, cut so that two threads need not wait for each other. All in flat lists: there may be very many.

use super::finder::Finder;
use super::turns::{GroupMask, Turns};

/// Files that hold the same, or are taken to: numbers of items, of each group the one to share with first.
#[derive(Default)]
pub(super) struct FileGroups {
    members: Vec<u32>,
    ends: Vec<u32>,
}

impl FileGroups {
    pub(super) fn push(&mut self, members: impl IntoIterator<Item = u32>) {
        self.members.extend(members);
        self.ends.push(self.members.len() as u32);
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn members(&self, group: usize) -> &[u32] {
        &self.members[self.range(group)]
    }

    pub(super) fn members_mut(&mut self, group: usize) -> &mut [u32] {
        let range = self.range(group);
        &mut self.members[range]
    }

    fn range(&self, group: usize) -> std::ops::Range<usize> {
        let start = group.checked_sub(1).map_or(0, |before| self.ends[before]);
        start as usize..self.ends[group] as usize
    }
}

/// A file, and others to share its extents with.
pub(super) struct GroupPiece {
    /// True for the representative of a group that was cut.
    pub(super) is_first: bool,
    pub(super) source: u32,
    /// Where the others are in the list of members.
    start: u32,
    end: u32,
}

pub(super) struct GroupPieces {
    members: Vec<u32>,
    pieces: Vec<GroupPiece>,
}

impl GroupPieces {
    /// Returns a piece, and its source with the other files.
    pub(super) fn get(&self, at: usize) -> (&GroupPiece, Vec<u32>) {
        let piece = &self.pieces[at];
        let others = &self.members[piece.start as usize..piece.end as usize];
        let mut files = Vec::with_capacity(others.len() + 1);
        files.push(piece.source);
        files.extend_from_slice(others);
        (piece, files)
    }
}

/// Cuts groups by the allocation groups that their files are in; where there are no such groups they stay whole.
pub(super) fn pieces(finder: &Finder<'_>, groups: FileGroups) -> (GroupPieces, Turns) {
    let item = |index: u32| &finder.catalog.items[index as usize];
    let mask = |index: u32| -> GroupMask {
        let shift = if finder.threads > 1 { finder.volumes[usize::from(item(index).device)].group_shift } else { None };
        shift.map_or(0, |shift| 1 << (item(index).inode.checked_shr(shift).unwrap_or(0) % u64::from(GroupMask::BITS)))
    };
    let order = in_order(finder, &groups);
    let mut pieces = Vec::with_capacity(order.len());
    let mut masks = Vec::with_capacity(order.len());
    let ranges: Vec<_> = order.into_iter().map(|(_, group)| groups.range(group as usize)).collect();
    let mut members = groups.members;
    for range in ranges {
        let source = members[range.start];
        let group = &mut members[range.clone()];
        let all = group.iter().fold(0, |all, &index| all | mask(index));
        let mut start = range.start as u32 + 1;
        if all.count_ones() <= 2 {
            pieces.push(GroupPiece { is_first: true, source, start, end: range.end as u32 });
            masks.push(all);
            continue;
        }
        let others = &mut group[1..];
        others.sort_unstable_by_key(|&index| (mask(index), index));
        for (number, part) in others.chunk_by(|&a, &b| mask(a) == mask(b)).enumerate() {
            let end = start + part.len() as u32;
            pieces.push(GroupPiece { is_first: number == 0, source, start, end });
            masks.push(mask(source) | mask(part[0]));
            start = end;
        }
    }
    let turns = Turns::new(pieces.len(), |at| masks[at]);
    (GroupPieces { members, pieces }, turns)
}

/// Returns the groups with something to share, each after the number of its directory, whose descriptor is kept for all its files.
fn in_order(finder: &Finder<'_>, groups: &FileGroups) -> Vec<(u32, u32)> {
    let against = finder.options.against.len();
    let item = |at: usize| &finder.catalog.items[groups.members[at] as usize];
    let is_source = |at: usize| usize::from(item(at).root) < against;
    let mut order: Vec<(u32, u32)> = (0..groups.ends.len())
        .map(|group| (group as u32, groups.range(group)))
        .filter(|(_, range)| against == 0 || is_source(range.start) && !is_source(range.end - 1))
        .map(|(group, range)| (item(range.start).directory, group))
        .collect();
    order.sort_unstable();
    order
}
