//! Sets of inode numbers: eight bytes for each 64 that lie together.

use std::collections::HashMap;

#[derive(Default, Clone)]
pub(super) struct Inodes(HashMap<(u32, u64), u64>);

impl Inodes {
    pub(super) fn insert(&mut self, device: u32, inode: u64) {
        *self.0.entry((device, inode >> 6)).or_default() |= 1 << (inode & 63);
    }

    pub(super) fn contains(&self, device: u32, inode: u64) -> bool {
        self.0.get(&(device, inode >> 6)).is_some_and(|bits| bits >> (inode & 63) & 1 == 1)
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (key, bits) in &other.0 {
            *self.0.entry(*key).or_default() |= bits;
        }
    }

    /// Counts a device's groups of 64 inodes: those wholly in the set, and those partly in it.
    pub(super) fn groups(&self, device: u32) -> (u64, u64) {
        let mut counts = (0, 0);
        for (key, bits) in &self.0 {
            if key.0 == device {
                if *bits == u64::MAX { counts.0 += 1 } else { counts.1 += 1 }
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_into_it() {
        let mut set = Inodes::default();
        for inode in (0..64).chain([1000]) {
            set.insert(1, inode);
        }
        assert!(set.contains(1, 63) && set.contains(1, 1000) && !set.contains(1, 64) && !set.contains(2, 63));
        assert_eq!((set.groups(1), set.groups(2)), ((1, 1), (0, 0)));
    }
}
