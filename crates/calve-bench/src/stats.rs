//! What some measured times say together.

use std::collections::BTreeMap;

/// Of at least one value. The same unit as the values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Summary {
    pub(crate) mean: f64,
    /// Of the sample (divided by n - 1); `None` of one value.
    pub(crate) stddev: Option<f64>,
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// The median of the distances to the median: a spread that a single outlier does not change.
    pub(crate) mad: f64,
}

impl Summary {
    /// `None` of no values.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let median = median(values)?;
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Self {
            mean,
            stddev: (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt()),
            median,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            mad: mad(values, median),
        })
    }
}

pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

fn mad(values: &[f64], centre: f64) -> f64 {
    let distances: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    median(&distances).unwrap_or(0.0)
}

/// Hyperfine's rule: ten standard deviations, of which the MAD times 1.4826 is an estimate that outliers do not move.
const OUTLIER_SCORE: f64 = 1.4826 * 10.0;

/// The MAD is sometimes tiny by chance. What is this close to the median troubles nobody.
const HARMLESS: f64 = 0.05;

/// Of fewer, two that are close to each other by chance would make an outlier of any other.
const ENOUGH: usize = 5;

/// The positions of the values that are far from the others.
pub(crate) fn outliers(values: &[f64]) -> Vec<usize> {
    if values.len() < ENOUGH {
        return Vec::new();
    }
    let Some(centre) = median(values) else { return Vec::new() };
    let spread = mad(values, centre).max(f64::EPSILON);
    let far = |value: f64| {
        let distance = (value - centre).abs();
        distance / spread > OUTLIER_SCORE && distance > HARMLESS * centre
    };
    (0..values.len()).filter(|&index| far(values[index])).collect()
}

/// What undisturbed times lie around: the geometric mean of the faster half of them. `None` of no values.
///
/// What disturbs a run makes it longer, never shorter, so that the slower half says more of the machine than of the command.
pub(crate) fn steady(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let faster = &sorted[..sorted.len().div_ceil(2)];
    let sum: f64 = faster.iter().map(|value| logarithm(*value)).sum();
    (!faster.is_empty()).then(|| (sum / faster.len() as f64).exp())
}

/// Fewer commands do not tell how a round went.
const ENOUGH_COMMANDS: usize = 3;

/// How many times as long as usual everything took in each round. `runs`: of each command, the rounds and their times.
///
/// Tukey's median polish of the logarithms: the medians of commands and of rounds are taken out in turn, until little is left.
pub(crate) fn round_factors(runs: &[Vec<(u32, f64)>]) -> BTreeMap<u32, f64> {
    const SWEEPS: usize = 5;
    let mut rounds: BTreeMap<u32, f64> = runs.iter().flatten().map(|(round, _)| (*round, 0.0)).collect();
    if runs.len() >= ENOUGH_COMMANDS {
        for _ in 0..SWEEPS {
            let rest = |(round, value): &(u32, f64)| (*round, logarithm(*value) - rounds[round]);
            let without_command = |run: &Vec<(u32, f64)>| {
                let rests: Vec<(u32, f64)> = run.iter().map(rest).collect();
                let middle = median(&rests.iter().map(|(_, rest)| *rest).collect::<Vec<_>>()).unwrap_or(0.0);
                run.iter().map(|(round, value)| (*round, logarithm(*value) - middle)).collect::<Vec<_>>()
            };
            let rests: Vec<(u32, f64)> = runs.iter().flat_map(without_command).collect();
            for (round, effect) in &mut rounds {
                let of_round: Vec<f64> =
                    rests.iter().filter(|(other, _)| other == round).map(|(_, rest)| *rest).collect();
                *effect = median(&of_round).unwrap_or(0.0);
            }
        }
    }
    rounds.into_iter().map(|(round, effect)| (round, effect.exp())).collect()
}

/// Of a time, which may be too short for the clock.
fn logarithm(seconds: f64) -> f64 {
    seconds.max(1e-9).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_odd_number_of_values() {
        // Mean 22 / 5; median 4; distances to it 3 2 0 1 6, sorted 0 1 2 3 6.
        let summary = Summary::of(&[1.0, 2.0, 4.0, 5.0, 10.0]).unwrap();
        // (1 - 4.4)² + (2 - 4.4)² + (4 - 4.4)² + (5 - 4.4)² + (10 - 4.4)² = 11.56 + 5.76 + 0.16 + 0.36 + 31.36 = 49.2
        assert!((summary.mean - 4.4).abs() < 1e-12);
        assert!((summary.stddev.unwrap() - (49.2_f64 / 4.0).sqrt()).abs() < 1e-12);
        assert_eq!((summary.median, summary.mad), (4.0, 2.0));
        assert_eq!((summary.min, summary.max), (1.0, 10.0));
    }

    #[test]
    fn of_an_even_number_in_any_order() {
        // Median (3 + 5) / 2 = 4; distances 3 1 1 5, sorted 1 1 3 5, their median 2.
        let summary = Summary::of(&[9.0, 3.0, 1.0, 5.0]).unwrap();
        assert_eq!((summary.mean, summary.median, summary.mad), (4.5, 4.0, 2.0));
        // 4.5² + 1.5² + 3.5² + 0.5² = 20.25 + 2.25 + 12.25 + 0.25 = 35, over 3.
        assert!((summary.stddev.unwrap() - (35.0_f64 / 3.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn of_one_value_and_of_none() {
        let summary = Summary::of(&[2.5]).unwrap();
        assert_eq!((summary.mean, summary.median, summary.min, summary.max, summary.mad), (2.5, 2.5, 2.5, 2.5, 0.0));
        assert_eq!(summary.stddev, None);
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn outliers_are_ten_deviations_away() {
        // Median 10, distances 1 0 1 2 x: MAD 1, so that the limit is 10 + 14.826.
        assert_eq!(outliers(&[9.0, 10.0, 11.0, 8.0, 24.8]), [0; 0]);
        assert_eq!(outliers(&[9.0, 10.0, 11.0, 8.0, 24.9]), [4]);
        // The other side, and the position that it had.
        assert_eq!(outliers(&[29.0, 10.0, 30.0, 31.0, 32.0]), [1]);
        // All equal but one: the MAD is zero.
        assert_eq!(outliers(&[5.0, 5.0, 5.0, 5.0, 6.0]), [4]);
        assert_eq!(outliers(&[]), [0; 0]);
    }

    #[test]
    fn a_tiny_distance_is_no_outlier_however_small_the_spread() {
        // Median 2.001, MAD 0.001; 2.02 is 19 of them away, and 1 % slower.
        assert_eq!(outliers(&[2.0, 2.001, 2.002, 2.001, 2.02]), [0; 0]);
        // 2.2 is 10 % slower.
        assert_eq!(outliers(&[2.0, 2.001, 2.002, 2.001, 2.2]), [4]);
    }

    #[test]
    fn few_values_have_no_outliers() {
        assert_eq!(outliers(&[2.0, 2.001, 2.0, 9.0]), [0; 0]);
        assert_eq!(outliers(&[2.0, 2.001, 2.0, 2.0, 9.0]), [4]);
    }

    #[test]
    fn steady_is_the_mean_of_the_faster_half() {
        let close = |values: &[f64], expected: f64| {
            let found = steady(values).unwrap();
            assert!((found / expected - 1.0).abs() < 1e-12, "{values:?}: {found}");
        };
        close(&[3.0], 3.0);
        close(&[9.0, 4.0], 4.0);
        // The root of 4 * 9; the third does not matter.
        close(&[100.0, 4.0, 9.0], 6.0);
        close(&[100.0, 4.0, 9.0, 50.0], 6.0);
        assert_eq!(steady(&[]), None);
    }

    #[test]
    fn a_slow_round_is_told_from_a_slow_command() {
        // Three commands that take 1, 2 and 4 s; in round 2 everything takes 1.5 times as long, and one run is disturbed.
        let times = |base: f64| vec![(1, base), (2, base * 1.5), (3, base)];
        let mut runs = vec![times(1.0), times(2.0), times(4.0)];
        runs[1][2].1 = 20.0;
        let factors = round_factors(&runs);
        for (round, expected) in [(1, 1.0), (2, 1.5), (3, 1.0)] {
            assert!((factors[&round] / expected - 1.0).abs() < 1e-9, "{factors:?}");
        }
        // Two commands are too few to tell.
        assert!(round_factors(&runs[..2]).values().all(|factor| (factor - 1.0).abs() < 1e-12));
        assert!(round_factors(&[]).is_empty());
    }
}
