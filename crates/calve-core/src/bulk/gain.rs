//! Measures on the first large batches whether more threads gain anything.

use std::time::Duration;

/// All threads and half of them are tried in turn. Half are kept if no slower; then half of these are tried, and so on.
#[derive(Debug, Default)]
pub(super) struct Gain {
    more: Trial,
    fewer: Trial,
    settled: bool,
}

#[derive(Debug, Default, Clone, Copy)]
struct Trial {
    threads: usize,
    times: u32,
    /// The best time per file.
    seconds: f64,
}

/// A smaller batch says little.
const LARGE: u64 = 512;
/// Each number of threads is tried so often. The best time counts: other programs make a batch slower, never faster.
const TRIES: u32 = 2;
/// More threads cost others processor time, so they have to gain at least this.
const WORTH: f64 = 0.97;

impl Gain {
    /// Returns how many of the `planned` threads to use.
    pub(super) fn threads(&mut self, planned: usize) -> usize {
        if self.settled || planned < 2 {
            return if self.more.threads == 0 { planned } else { planned.min(self.more.threads) };
        }
        if self.more.threads == 0 {
            self.more.threads = planned;
            self.fewer.threads = planned / 2;
        }
        let next = if self.fewer.times < self.more.times { self.fewer.threads } else { self.more.threads };
        next.min(planned)
    }

    pub(super) fn learn(&mut self, threads: usize, files: u64, elapsed: Duration) {
        if self.settled || files < LARGE {
            return;
        }
        for tried in [&mut self.more, &mut self.fewer] {
            if tried.threads == threads && tried.times < TRIES {
                let seconds = elapsed.as_secs_f64() / files as f64;
                tried.seconds = if tried.times == 0 { seconds } else { tried.seconds.min(seconds) };
                tried.times += 1;
            }
        }
        if self.fewer.times < TRIES || self.more.times < TRIES {
            return;
        }
        if self.more.seconds < self.fewer.seconds * WORTH {
            self.settled = true;
            return;
        }
        self.more = self.fewer;
        self.fewer = Trial { threads: self.more.threads / 2, ..Trial::default() };
        self.settled = self.more.threads < 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of threads of each batch, where a batch with so many threads takes `cost` milliseconds.
    fn batches(planned: usize, files: u64, cost: fn(usize) -> u64) -> Vec<usize> {
        let mut gain = Gain::default();
        let one = |_| {
            let threads = gain.threads(planned);
            gain.learn(threads, files, Duration::from_millis(cost(threads)));
            threads
        };
        (0..9).map(one).collect()
    }

    #[test]
    fn threads_that_gain_are_kept() {
        assert_eq!(batches(4, 1024, |threads| 100 / threads as u64), [4, 2, 4, 2, 4, 4, 4, 4, 4]);
    }

    #[test]
    fn threads_that_gain_nothing_are_given_up() {
        assert_eq!(batches(4, 1024, |_| 100), [4, 2, 4, 2, 1, 1, 1, 1, 1]);
        assert_eq!(
            batches(8, 1024, |threads| if threads > 4 { 120 } else { 400 / threads as u64 })[4..],
            [2, 2, 4, 4, 4]
        );
    }

    #[test]
    fn small_batches_say_nothing() {
        assert_eq!(batches(4, 100, |_| 100), [4; 9]);
        assert_eq!(batches(1, 1024, |_| 100), [1; 9]);
    }

    #[test]
    fn no_batch_gets_more_threads_than_make_sense_for_it() {
        let mut gain = Gain::default();
        assert_eq!((gain.threads(4), gain.threads(1), gain.threads(2)), (4, 1, 2));
    }
}
