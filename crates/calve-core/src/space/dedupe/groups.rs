//! Groups of equal files, in flat lists: there may be very many.

use super::finder::Finder;

/// Indices of items that are equal, or assumed to be. Each group begins with the file to share with.
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

    /// Returns the groups with something to share, by directory, so that open directories are reused.
    pub(super) fn in_order(&self, finder: &Finder<'_>) -> Vec<u32> {
        let against = finder.options.against.len();
        let item = |at: usize| &finder.catalog.items[self.members[at] as usize];
        let is_source = |at: usize| usize::from(item(at).root) < against;
        let mut order: Vec<(u32, u32)> = (0..self.ends.len())
            .map(|group| (group as u32, self.range(group)))
            .filter(|(_, range)| against == 0 || is_source(range.start) && !is_source(range.end - 1))
            .map(|(group, range)| (item(range.start).directory, group))
            .collect();
        order.sort_unstable();
        order.into_iter().map(|(_, group)| group).collect()
    }
}
