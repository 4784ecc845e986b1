//! The time for making the files of a set again.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::tree::stable::Moment;

pub(super) struct SetTries {
    pub(super) began: Moment,
    /// Time spent on further tries.
    spent: Mutex<Duration>,
}

/// Limit for all further tries of one filling, besides the one in progress.
const PATIENCE: Duration = Duration::from_millis(1500);
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

impl SetTries {
    pub(super) fn begin() -> Self {
        Self { began: Moment::of_file_systems(), spent: Mutex::default() }
    }

    /// Waits before another try. Returns false if the try that began at `started` was the last one in time.
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
