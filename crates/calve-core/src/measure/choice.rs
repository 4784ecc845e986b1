//! What follows from the numbers. Pure.

use std::num::NonZeroUsize;
use std::time::Duration;

use super::{FileCost, ThreadCost};

/// A copy has to be faster by this share: a reflink also saves room, and the write to the disk that a copy still needs later.
const MARGIN: f64 = 0.05;
/// Larger files are never copied for speed: what a copy leaves to be written to the disk later grows with its size.
const COPY_AT_MOST_BYTES: u64 = 16 * 1024;
/// Fewer threads have to be faster by this share: a tree larger than the one measured waits more, for locks and for the disk, and
/// waiting is what more threads hide.
const THREADS_MARGIN: f64 = 0.15;

/// Up to which size a copy is faster than a reflink; 0 where it never is, `None` where there are no reflinks.
///
/// Between two sizes the gain is taken to change evenly; behind the first size at which a copy does not pay, none does.
pub(super) fn copy_up_to_bytes(files: &[FileCost]) -> Option<u64> {
    let mut previous: Option<(u64, f64)> = None;
    for file in files {
        let Some(reflink) = file.reflink else { continue };
        let gain = gain(file.copy, reflink);
        if gain <= 0.0 {
            return Some(match previous {
                None => 0,
                Some((size, gained)) => whole_kib(size, file.size_bytes, gained / (gained - gain)),
            });
        }
        previous = Some((file.size_bytes, gain));
    }
    previous.map(|(size, _)| size.min(COPY_AT_MOST_BYTES))
}

/// What a copy saves, in seconds, beyond what it has to.
fn gain(copy: Duration, reflink: Duration) -> f64 {
    reflink.as_secs_f64() * (1.0 - MARGIN) - copy.as_secs_f64()
}

/// Whether a copy is faster by enough.
pub(super) fn pays(copy: Duration, reflink: Duration) -> bool {
    gain(copy, reflink) > 0.0
}

/// Where the gain is used up between two sizes, rounded down.
fn whole_kib(from: u64, to: u64, share: f64) -> u64 {
    const KIB: u64 = 1024;
    let beyond = (to - from) as f64 * share;
    ((from + beyond as u64) / KIB * KIB).clamp(from, COPY_AT_MOST_BYTES.max(from)).min(COPY_AT_MOST_BYTES)
}

/// As many threads as there are processors, unless fewer are clearly faster.
pub(super) fn best_threads(costs: &[ThreadCost]) -> Option<NonZeroUsize> {
    let most = costs.iter().max_by_key(|cost| cost.threads)?;
    let enough = most.per_file.mul_f64(1.0 - THREADS_MARGIN);
    let faster = costs.iter().filter(|cost| cost.per_file <= enough);
    Some(faster.min_by_key(|cost| cost.per_file).unwrap_or(most).threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    /// (size in KiB, copy, reflink), in microseconds.
    fn files(costs: &[(u64, u64, u64)]) -> Vec<FileCost> {
        let cost = |&(size, copy, reflink)| FileCost {
            size_bytes: size * KIB,
            copy: Duration::from_micros(copy),
            reflink: (reflink > 0).then(|| Duration::from_micros(reflink)),
        };
        costs.iter().map(cost).collect()
    }

    #[test]
    fn a_copy_that_is_not_faster_by_a_margin_is_not_taken() {
        assert_eq!(copy_up_to_bytes(&files(&[(0, 20, 0), (1, 30, 30), (16, 40, 30)])), Some(0), "a tie is shared");
        assert_eq!(copy_up_to_bytes(&files(&[(0, 20, 0), (1, 95, 100), (16, 200, 100)])), Some(0));
        assert_eq!(copy_up_to_bytes(&files(&[(0, 20, 0), (1, 94, 100), (2, 95, 100)])), Some(2 * KIB));
    }

    #[test]
    fn between_two_sizes_the_gain_changes_evenly_and_is_rounded_down() {
        // A gain of 40 at 4 KiB, and a loss of 40 at 16 KiB: used up in the middle.
        assert_eq!(copy_up_to_bytes(&files(&[(1, 40, 100), (4, 55, 100), (16, 135, 100)])), Some(10 * KIB));
        assert_eq!(copy_up_to_bytes(&files(&[(4, 55, 100), (16, 136, 100)])), Some(9 * KIB));
    }

    #[test]
    fn what_pays_everywhere_is_still_for_small_files_only() {
        assert_eq!(copy_up_to_bytes(&files(&[(1, 1, 100), (16, 1, 100), (128, 1, 100)])), Some(16 * KIB));
        assert_eq!(copy_up_to_bytes(&files(&[(1, 1, 100), (16, 1, 100), (128, 300, 100)])), Some(16 * KIB));
        assert_eq!(copy_up_to_bytes(&files(&[(1, 1, 100), (4, 1, 100)])), Some(4 * KIB), "no further than measured");
        assert_eq!(copy_up_to_bytes(&files(&[(128, 1, 100), (1024, 300, 100)])), Some(16 * KIB));
    }

    #[test]
    fn a_gain_behind_a_loss_does_not_count() {
        assert_eq!(copy_up_to_bytes(&files(&[(1, 100, 100), (4, 1, 100), (16, 1, 100)])), Some(0));
    }

    #[test]
    fn without_reflinks_there_is_no_choice() {
        assert_eq!(copy_up_to_bytes(&files(&[(0, 20, 0), (1, 20, 0), (16, 20, 0)])), None);
        assert_eq!(copy_up_to_bytes(&[]), None);
    }

    fn threads(costs: &[(usize, u64)]) -> Option<usize> {
        let cost = |&(threads, micros)| ThreadCost {
            threads: NonZeroUsize::new(threads).unwrap(),
            per_file: Duration::from_micros(micros),
        };
        best_threads(&costs.iter().map(cost).collect::<Vec<_>>()).map(NonZeroUsize::get)
    }

    #[test]
    fn fewer_threads_than_processors_are_taken_when_they_are_clearly_faster() {
        assert_eq!(threads(&[(1, 100), (2, 96), (4, 60)]), Some(4));
        assert_eq!(threads(&[(1, 100), (2, 101)]), Some(2), "a tie");
        assert_eq!(threads(&[(1, 86), (2, 100)]), Some(2), "not clear");
        assert_eq!(threads(&[(1, 85), (2, 100)]), Some(1));
        assert_eq!(threads(&[(1, 84), (2, 60), (4, 70), (8, 100)]), Some(2), "the fastest of those");
        assert_eq!(threads(&[(1, 100)]), Some(1));
        assert_eq!(threads(&[]), None);
    }
}
