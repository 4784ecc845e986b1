//! Modification times that a file system can hold: some have whole seconds only, or end in 2038.

use std::os::fd::BorrowedFd;

use rustix::fs::{Stat, Timespec, Timestamps};

use crate::sys;
pub(crate) use crate::sys::times;

const SECOND: i128 = 1_000_000_000;

/// The range and granularity of exactly kept times, in nanoseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldTimes {
    first: i128,
    last: i128,
    granularity: i128,
}

impl HeldTimes {
    pub(crate) const ALL: Self = Self { first: i128::MIN, last: i128::MAX, granularity: 1 };

    /// Tries some times on an entry, and restores its own. Times that the trial says nothing about count as held.
    pub(crate) fn find(entry: BorrowedFd<'_>) -> Self {
        let Ok(own) = rustix::fs::fstat(entry) else { return Self::ALL };
        let set = |time: i128| -> Option<i128> {
            let (seconds, rest) = (time.div_euclid(SECOND), time.rem_euclid(SECOND));
            let time = Timespec { tv_sec: i64::try_from(seconds).ok()?, tv_nsec: rest as _ };
            rustix::fs::futimens(entry, &Timestamps { last_access: time, last_modification: time }).ok()?;
            rustix::fs::fstat(entry).ok().map(|stat| modified(&stat))
        };
        // One less than a multiple of every granularity, up to the two seconds of FAT.
        let fine = 1_000_000_002 * SECOND - 1;
        let granularity = set(fine).map_or(1, |held| (fine - held + 1).clamp(1, 2 * SECOND));
        let reach = i128::from(sys::TIME_REACH_SECONDS) * SECOND;
        let last = set(reach).filter(|held| (fine..reach).contains(held)).unwrap_or(i128::MAX);
        let first = set(-reach).filter(|held| (1 - reach..fine).contains(held)).unwrap_or(i128::MIN);
        // A copy without times keeps its own.
        let _ = rustix::fs::futimens(entry, &times(&own));
        Self { first, last, granularity }
    }

    /// Returns the modification time of an entry's copy.
    pub(crate) fn held(self, stat: &Stat) -> i128 {
        let time = modified(stat).clamp(self.first, self.last);
        // With a granularity of 1 the division would change nothing, and be the slowest part.
        if self.granularity == 1 { time } else { time - time.rem_euclid(self.granularity) }
    }

    pub(crate) fn has(self, stat: &Stat) -> bool {
        self.held(stat) == modified(stat)
    }
}

pub(crate) fn modified(stat: &Stat) -> i128 {
    i128::from(stat.st_mtime) * SECOND + i128::from(stat.st_mtime_nsec)
}
