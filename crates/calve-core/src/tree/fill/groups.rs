//! Allocation groups: keeping workers out of each other's way on XFS.
//!
//! XFS makes a file in the allocation group of its directory, under a lock of that group which is held until the transaction
//! ends; directories are spread over the groups in turn. Two workers in directories of one group take turns at every file. So a
//! worker puts a directory off whose group another one is busy in, and takes the next.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::sys;

/// More groups than this share a counter, which only means that a directory is put off without need.
const COUNTERS: usize = 64;

/// Which groups are busy. Empty where the file system has no such groups.
#[derive(Debug)]
pub(super) struct AllocationGroups {
    /// The bits of an inode number below those of its group.
    shift: Option<u32>,
    busy: [AtomicUsize; COUNTERS],
}

impl AllocationGroups {
    pub(super) fn new(directory: BorrowedFd<'_>, threads: usize) -> Self {
        let shift = if threads > 1 { sys::allocation_group_shift(directory) } else { None };
        Self { shift, busy: [const { AtomicUsize::new(0) }; COUNTERS] }
    }

    /// Returns whether there is anything to keep apart.
    pub(super) fn matter(&self) -> bool {
        self.shift.is_some()
    }

    /// Returns the counter of the group that `inode` is in. `None` if there is nothing to keep apart.
    pub(super) fn group(&self, inode: u64) -> Option<usize> {
        let group = inode.checked_shr(self.shift?).unwrap_or(0);
        usize::try_from(group % COUNTERS as u64).ok()
    }

    /// Enters an empty group.
    pub(super) fn enter_free(&self, group: usize) -> bool {
        self.busy[group].compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Enters a group that may have other workers.
    pub(super) fn enter(&self, group: usize) {
        self.busy[group].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn leave(&self, group: usize) {
        self.busy[group].fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_free_until_somebody_is_in_it() {
        let groups = AllocationGroups { shift: Some(22), busy: [const { AtomicUsize::new(0) }; COUNTERS] };
        let (first, second) = (groups.group(131), groups.group((1 << 22) + 131));
        assert_eq!((first, second), (Some(0), Some(1)));
        assert!(groups.enter_free(0));
        assert!(!groups.enter_free(0), "somebody is in it");
        assert!(groups.enter_free(1), "the other group");
        groups.enter(0);
        groups.leave(0);
        assert!(!groups.enter_free(0), "one of two has left");
        groups.leave(0);
        assert!(groups.enter_free(0));
    }

    #[test]
    fn nothing_is_kept_apart_where_there_are_no_groups_or_no_other_worker() {
        use std::os::fd::AsFd;
        let directory = fs_err::File::open("/").unwrap();
        let alone = AllocationGroups::new(directory.as_fd(), 1);
        assert!(!alone.matter());
        assert_eq!(alone.group(131), None);
    }
}
