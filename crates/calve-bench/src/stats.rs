use calve_receipt::bench::Spread;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Summary {
    pub(crate) mean: f64,
    /// Standard deviation of the sample (divided by n - 1). `None` for one value.
    pub(crate) stddev: Option<f64>,
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Summary {
    pub(crate) fn from_values(values: &[f64]) -> Option<Self> {
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

/// Returns a command's times as multiples of another's in the same round, when the machine was about equally fast.
/// `times` and `base` are rounds with their seconds. Without a common round, the ratio is not a number.
pub(crate) fn ratio(times: &[(u32, f64)], base: &[(u32, f64)]) -> Spread {
    let of_base = |round: u32| base.iter().find(|(other, _)| *other == round).map(|(_, seconds)| seconds.max(1e-9));
    let values = times.iter().filter_map(|(round, seconds)| Some(seconds / of_base(*round)?)).collect();
    spread(values).unwrap_or(Spread { median: f64::NAN, min: f64::NAN, max: f64::NAN, values: Vec::new() })
}

pub(crate) fn spread(values: Vec<f64>) -> Option<Spread> {
    let Summary { median, min, max, .. } = Summary::from_values(&values)?;
    Some(Spread { median, min, max, values })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_odd_number_of_values() {
        // Mean 22 / 5; median 4.
        let summary = Summary::from_values(&[1.0, 2.0, 4.0, 5.0, 10.0]).unwrap();
        // (1 - 4.4)² + (2 - 4.4)² + (4 - 4.4)² + (5 - 4.4)² + (10 - 4.4)² = 11.56 + 5.76 + 0.16 + 0.36 + 31.36 = 49.2
        assert!((summary.mean - 4.4).abs() < 1e-12);
        assert!((summary.stddev.unwrap() - (49.2_f64 / 4.0).sqrt()).abs() < 1e-12);
        assert_eq!(summary.median, 4.0);
        assert_eq!((summary.min, summary.max), (1.0, 10.0));
    }

    #[test]
    fn of_an_even_number_in_any_order() {
        // Median (3 + 5) / 2 = 4.
        let summary = Summary::from_values(&[9.0, 3.0, 1.0, 5.0]).unwrap();
        assert_eq!((summary.mean, summary.median), (4.5, 4.0));
        // 4.5² + 1.5² + 3.5² + 0.5² = 20.25 + 2.25 + 12.25 + 0.25 = 35, over 3.
        assert!((summary.stddev.unwrap() - (35.0_f64 / 3.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn of_one_value_and_of_none() {
        let summary = Summary::from_values(&[2.5]).unwrap();
        assert_eq!((summary.mean, summary.median, summary.min, summary.max), (2.5, 2.5, 2.5, 2.5));
        assert_eq!(summary.stddev, None);
        assert_eq!(Summary::from_values(&[]), None);
    }

    #[test]
    fn a_slow_round_does_not_change_a_ratio() {
        // Twice as slow, but for one disturbed run; everything takes five times as long in round 2.
        let (times, base) = ([(1, 2.0), (2, 10.0), (3, 9.0)], [(1, 1.0), (2, 5.0), (3, 1.0), (4, 7.0)]);
        let ratio = ratio(&times, &base);
        assert_eq!((ratio.median, ratio.min, ratio.max, ratio.values), (2.0, 2.0, 9.0, vec![2.0, 2.0, 9.0]));
        assert!(super::ratio(&times, &[]).median.is_nan());
    }
}
