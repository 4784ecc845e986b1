//! Allocation groups: keeping workers out of each other's way on XFS.
//!
//! XFS makes a file in the allocation group of its directory, and holds a lock of that group until the transaction
//! ends; directories are spread over the groups in turn. Two workers in directories of one group take turns at every
//! file. So a worker puts off a directory whose group is busy, and takes the next.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::sys;

/// Beyond this, groups share a counter, which only puts off directories without need.
const COUNTERS: usize = 64;

/// The busy groups. Empty where the file system has no groups.
#[derive(Debug)]
pub(super) struct AllocationGroups {
    /// Number of an inode number's bits below those of its group.
    shift: Option<u32>,
    busy: [AtomicUsize; COUNTERS],
}

impl AllocationGroups {
    pub(super) fn new(directory: BorrowedFd<'_>, threads: usize) -> Self {
        let shift = if threads > 1 { sys::allocation_group_shift(directory) } else { None };
        Self { shift, busy: [const { AtomicUsize::new(0) }; COUNTERS] }
    }

    pub(super) fn matter(&self) -> bool {
        self.shift.is_some()
    }

    /// Returns the counter of `inode`'s group. `None` without groups.
    pub(super) fn group(&self, inode: u64) -> Option<usize> {
        let group = inode.checked_shr(self.shift?).unwrap_or(0);
        usize::try_from(group % COUNTERS as u64).ok()
    }

    pub(super) fn enter_free(&self, group: usize) -> bool {
        self.busy[group].compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

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
