//! Statistics of measured times.

/// Statistics of at least one value, in the same unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Summary {
    pub(crate) mean: f64,
    /// The standard deviation of the sample (divided by n - 1); `None` of one value.
    pub(crate) stddev: Option<f64>,
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Summary {
    /// Summarizes the values. `None` if there are none.
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

/// Returns the value that so many percent are not above. `None` of too few values to tell.
pub(crate) fn percentile(values: &[f64], percent: f64) -> Option<f64> {
    if (values.len() as f64) < 100.0 / (100.0 - percent) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (values.len() as f64 * percent / 100.0).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

fn mad(values: &[f64], centre: f64) -> f64 {
    let distances: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    median(&distances).unwrap_or(0.0)
}

/// Hyperfine's rule: ten standard deviations, of which the MAD times 1.4826 is an estimate that outliers do not move.
const OUTLIER_SCORE: f64 = 1.4826 * 10.0;

/// The MAD is sometimes tiny by chance. What is this close to the median troubles nobody.
const HARMLESS: f64 = 0.05;

/// Two values that are close to each other by chance would make an outlier of any third.
const ENOUGH: usize = 5;

/// Returns the positions of the values that are far from the others.
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

/// The times of one command as a multiple of another's, each taken within one round, in which the machine was about equally fast.
pub(crate) struct Ratio {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// The ratios of the rounds that both were run in, in order.
    pub(crate) values: Vec<f64>,
}

impl Ratio {
    /// Compares rounds and their seconds. Is not a number for commands without a common round.
    pub(crate) fn of(times: &[(u32, f64)], base: &[(u32, f64)]) -> Self {
        let of_base = |round: u32| base.iter().find(|(other, _)| *other == round).map(|(_, seconds)| seconds.max(1e-9));
        let values: Vec<f64> = times.iter().filter_map(|(round, seconds)| Some(seconds / of_base(*round)?)).collect();
        let summary = Summary::of(&values);
        let of = |value: fn(&Summary) -> f64| summary.as_ref().map_or(f64::NAN, value);
        Self { median: of(|it| it.median), min: of(|it| it.min), max: of(|it| it.max), values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_odd_number_of_values() {
        // Mean 22 / 5; median 4.
        let summary = Summary::of(&[1.0, 2.0, 4.0, 5.0, 10.0]).unwrap();
        // (1 - 4.4)² + (2 - 4.4)² + (4 - 4.4)² + (5 - 4.4)² + (10 - 4.4)² = 11.56 + 5.76 + 0.16 + 0.36 + 31.36 = 49.2
        assert!((summary.mean - 4.4).abs() < 1e-12);
        assert!((summary.stddev.unwrap() - (49.2_f64 / 4.0).sqrt()).abs() < 1e-12);
        assert_eq!(summary.median, 4.0);
        assert_eq!((summary.min, summary.max), (1.0, 10.0));
    }

    #[test]
    fn percentiles_need_enough_values() {
        let values: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!(percentile(&values, 99.0), Some(198.0));
        assert_eq!(percentile(&values[..100], 99.0), Some(199.0));
        assert_eq!(percentile(&values[..99], 99.0), None);
    }

    #[test]
    fn of_an_even_number_in_any_order() {
        // Median (3 + 5) / 2 = 4.
        let summary = Summary::of(&[9.0, 3.0, 1.0, 5.0]).unwrap();
        assert_eq!((summary.mean, summary.median), (4.5, 4.0));
        // 4.5² + 1.5² + 3.5² + 0.5² = 20.25 + 2.25 + 12.25 + 0.25 = 35, over 3.
        assert!((summary.stddev.unwrap() - (35.0_f64 / 3.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn of_one_value_and_of_none() {
        let summary = Summary::of(&[2.5]).unwrap();
        assert_eq!((summary.mean, summary.median, summary.min, summary.max), (2.5, 2.5, 2.5, 2.5));
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
    fn a_slow_round_does_not_change_a_ratio() {
        // Twice as slow, but for one disturbed run; everything takes five times as long in round 2.
        let (times, base) = ([(1, 2.0), (2, 10.0), (3, 9.0)], [(1, 1.0), (2, 5.0), (3, 1.0), (4, 7.0)]);
        let ratio = Ratio::of(&times, &base);
        assert_eq!((ratio.median, ratio.min, ratio.max, ratio.values), (2.0, 2.0, 9.0, vec![2.0, 2.0, 9.0]));
        assert!(Ratio::of(&times, &[]).median.is_nan());
    }
}
