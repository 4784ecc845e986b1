//! What follows from the numbers. Pure.

use std::num::NonZeroUsize;
use std::time::Duration;

use super::trial::median;
use crate::measurement::FileCost;

/// A copy has to be faster by this share: a reflink also saves room, and the write to the disk that a copy still needs later.
const MARGIN: f64 = 0.05;
/// Larger files are never copied for speed: what a copy leaves to be written to the disk later grows with its size.
const COPY_AT_MOST_BYTES: u64 = 16 * 1024;
/// Fewer threads have to be faster by this share: a tree larger than the one measured waits more, for locks and for the disk, and
/// waiting is what more threads hide.
const THREADS_MARGIN: f64 = 0.15;

/// Up to which size copying files saves more than it costs; 0 where it never does, `None` where there are no reflinks.
///
/// Sizes count alike. Behind the last size that gains, the gain is taken to change evenly until the next one, which loses.
pub(super) fn copy_up_to_bytes(files: &[FileCost]) -> Option<u64> {
    let gains: Vec<(u64, f64)> =
        files.iter().filter_map(|file| Some((file.size_bytes, gain(file.copy, file.reflink?)))).collect();
    let mut sum = 0.0;
    let mut last = None;
    for (index, &(_, gain)) in gains.iter().enumerate() {
        sum += gain;
        if gain > 0.0 && sum > 0.0 {
            last = Some(index);
        }
    }
    let limit = match last.map(|index| (gains[index], gains.get(index + 1))) {
        None => 0,
        Some(((size, _), None)) => size,
        Some(((size, gained), Some(&(next, lost)))) => whole_kib(size, next, gained / (gained - lost)),
    };
    (!gains.is_empty()).then_some(limit.min(COPY_AT_MOST_BYTES))
}

/// What a copy saves, in seconds, beyond what it has to.
fn gain(copy: Duration, reflink: Duration) -> f64 {
    reflink.as_secs_f64() * (1.0 - MARGIN) - copy.as_secs_f64()
}

/// The size to try on a whole tree, where `limit` follows from single sizes: that, unless it is so far below what is built in that it
/// is more likely chance. Between two sizes that gain nothing much the limit falls by a lot for a little noise.
pub(super) fn to_try(limit: u64, built_in: u64) -> u64 {
    if limit < built_in / 2 { built_in } else { limit }
}

/// The answer for a place: `tried` bytes when a whole tree gains from copying files up to there, 0 when it does not.
///
/// `built_in` stands unless most of the pairs of trials are against it, and there are some: it comes from trees that are larger, on
/// machines that were quieter. `ratios` are those of the time with copies to the time without.
pub(super) fn decide(tried: u64, built_in: u64, ratios: &[f64]) -> u64 {
    let gains = ratios.iter().filter(|ratio| **ratio < 1.0 - MARGIN).count();
    let against = if built_in == 0 { gains } else { ratios.len() - gains };
    match (clearly(against, ratios.len()), built_in) {
        (true, 0) => tried,
        (true, _) | (false, 0) => 0,
        (false, _) if ratios.len() < FEWEST_PAIRS => built_in,
        (false, _) => tried,
    }
}

/// Fewer do not overrule anything.
const FEWEST_PAIRS: usize = 5;

/// Three quarters.
fn clearly(of: usize, all: usize) -> bool {
    all >= FEWEST_PAIRS && of * 4 >= all * 3
}

/// Where the gain is used up between two sizes, rounded down.
fn whole_kib(from: u64, to: u64, share: f64) -> u64 {
    const KIB: u64 = 1024;
    let beyond = (to - from) as f64 * share;
    (from + beyond as u64) / KIB * KIB
}

/// As many threads as there are processors, unless fewer are clearly faster. `times` are those of the same rounds.
pub(super) fn best_threads(times: &[(NonZeroUsize, Vec<Duration>)]) -> Option<NonZeroUsize> {
    let (most, slow) = times.iter().max_by_key(|(threads, _)| *threads)?;
    let is_faster = |fast: &[Duration]| {
        let pairs = || fast.iter().zip(slow);
        let wins = pairs().filter(|(fast, slow)| **fast <= slow.mul_f64(1.0 - THREADS_MARGIN)).count();
        clearly(wins, pairs().count())
    };
    let faster = times.iter().filter(|(_, fast)| is_faster(fast));
    Some(faster.min_by_key(|(_, fast)| median(&mut fast.clone())).map_or(*most, |(threads, _)| *threads))
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
    fn a_loss_is_made_up_for_by_a_larger_gain_behind_it() {
        assert_eq!(copy_up_to_bytes(&files(&[(1, 96, 100), (4, 80, 100), (16, 200, 100)])), Some(5 * KIB));
        assert_eq!(
            copy_up_to_bytes(&files(&[(1, 120, 100), (4, 80, 100), (16, 200, 100)])),
            Some(0),
            "not by a smaller one"
        );
        assert_eq!(copy_up_to_bytes(&files(&[(1, 50, 100), (4, 100, 100), (16, 50, 100)])), Some(16 * KIB));
    }

    #[test]
    fn what_is_built_in_stands_unless_most_pairs_are_against_it() {
        const NONE: u64 = 0;
        let built_in = 16 * KIB;
        let decide = |built_in, ratios: &[f64]| decide(4 * KIB, built_in, ratios);
        let (gains, losses) = (0.94, 0.95);
        assert_eq!(decide(NONE, &[gains; 8]), 4 * KIB);
        assert_eq!(decide(NONE, &[gains, gains, gains, gains, gains, gains, losses, losses]), 4 * KIB);
        assert_eq!(decide(NONE, &[gains, gains, gains, gains, gains, losses, losses, losses]), 0);
        assert_eq!(decide(NONE, &[gains; 4]), 0, "too few");
        assert_eq!(decide(built_in, &[losses; 8]), 0);
        assert_eq!(decide(built_in, &[losses, losses, losses, losses, losses, gains, gains, gains]), 4 * KIB);
        assert_eq!(decide(built_in, &[losses; 4]), built_in, "too few");
        assert_eq!(decide(built_in, &[gains; 4]), built_in, "too few");
        assert_eq!((decide(built_in, &[]), decide(NONE, &[])), (built_in, 0));
    }

    #[test]
    fn a_size_far_below_the_built_in_one_is_not_tried() {
        let built_in = 16 * KIB;
        assert_eq!([0, 2, 7].map(|kib| to_try(kib * KIB, built_in)), [built_in; 3]);
        assert_eq!([8, 10, 16].map(|kib| to_try(kib * KIB, built_in)), [8 * KIB, 10 * KIB, 16 * KIB]);
        assert_eq!([0, 2 * KIB].map(|limit| to_try(limit, 0)), [0, 2 * KIB]);
    }

    #[test]
    fn without_reflinks_there_is_no_choice() {
        assert_eq!(copy_up_to_bytes(&files(&[(0, 20, 0), (1, 20, 0), (16, 20, 0)])), None);
        assert_eq!(copy_up_to_bytes(&[]), None);
    }

    /// The answer for some numbers of threads, each with the times of its rounds in microseconds.
    fn threads(rounds: &[(usize, &[u64])]) -> Option<usize> {
        let times = |&(threads, micros): &(usize, &[u64])| {
            (NonZeroUsize::new(threads).unwrap(), micros.iter().map(|time| Duration::from_micros(*time)).collect())
        };
        best_threads(&rounds.iter().map(times).collect::<Vec<_>>()).map(NonZeroUsize::get)
    }

    #[test]
    fn fewer_threads_than_processors_are_taken_when_they_are_clearly_faster() {
        let slow: &[u64] = &[100; 8];
        assert_eq!(threads(&[(1, slow), (2, &[96; 8]), (4, &[60; 8])]), Some(4));
        assert_eq!(threads(&[(1, slow), (2, slow)]), Some(2), "a tie");
        assert_eq!(threads(&[(1, &[86; 8]), (2, slow)]), Some(2), "not clear");
        assert_eq!(threads(&[(1, &[85; 8]), (2, slow)]), Some(1));
        assert_eq!(threads(&[(1, &[50, 50, 50, 50, 50, 90, 90, 90]), (2, slow)]), Some(2), "not often enough");
        assert_eq!(threads(&[(1, &[50, 50, 50, 50, 50, 50, 90, 90]), (2, slow)]), Some(1));
        assert_eq!(threads(&[(1, &[50; 4]), (2, slow)]), Some(2), "too few rounds");
        assert_eq!(threads(&[(1, &[84; 8]), (2, &[60; 8]), (4, &[70; 8]), (8, slow)]), Some(2), "the fastest of those");
        assert_eq!(threads(&[(1, slow)]), Some(1));
        assert_eq!(threads(&[]), None);
    }
}
