//! The time for making the files of a set again.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::tree::stable::Moment;

pub(super) struct SetTries {
    pub(super) began: Moment,
    /// The time that was given to further tries.
    spent: Mutex<Duration>,
}

/// All further tries of one filling take no longer than this, and the one that is being made.
const PATIENCE: Duration = Duration::from_millis(1500);
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

impl SetTries {
    pub(super) fn begin() -> Self {
        Self { began: Moment::of_file_systems(), spent: Mutex::default() }
    }

    /// Waits, unless a try that began at `started` was the last one that there is time for.
    pub(super) fn may_try_again(&self, started: Instant, pause: &mut Duration) -> bool {
        let spent = || self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        if *spent() >= PATIENCE {
            return false;
        }
        std::thread::sleep(*pause);
        *pause = (*pause * 2).min(LONGEST_PAUSE);
        *spent() += started.elapsed();
        *spent() < PATIENCE
    }
}
