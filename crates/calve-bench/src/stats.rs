use calve_receipt::bench::Spread;

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the standard deviation of the sample (divided by n - 1). `None` for one value.
pub(crate) fn stddev(values: &[f64]) -> Option<f64> {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (values.len() as f64 - 1.0)).sqrt())
}

pub(crate) fn median(values: &[f64]) -> Option<f64> {
    spread(values.to_vec()).map(|spread| spread.median)
}

/// Returns a command's times as multiples of another's in the same round, when the machine was about equally fast.
/// `times` and `base` are rounds with their seconds. Without a common round, the ratio is not a number.
pub(crate) fn ratio(times: &[(u32, f64)], base: &[(u32, f64)]) -> Spread {
    let of_base = |round: u32| base.iter().find(|(other, _)| *other == round).map(|(_, seconds)| seconds.max(1e-9));
    let values = times.iter().filter_map(|(round, seconds)| Some(seconds / of_base(*round)?)).collect();
    spread(values).unwrap_or(Spread { median: f64::NAN, min: f64::NAN, max: f64::NAN, values: Vec::new() })
}

pub(crate) fn spread(values: Vec<f64>) -> Option<Spread> {
    let mut sorted = values.clone();
    sorted.sort_by(f64::total_cmp);
    let (&min, &max) = (sorted.first()?, sorted.last()?);
    // The same one twice for an odd number of values.
    let [below, above] = [(sorted.len() - 1) / 2, sorted.len() / 2].map(|at| sorted[at]);
    Some(Spread { median: f64::midpoint(below, above), min, max, values })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_any_number_of_values_in_any_order() {
        for (values, mean, stddev, [median, min, max]) in [
            // Mean 22 / 5; (1 - 4.4)² + (2 - 4.4)² + (4 - 4.4)² + (5 - 4.4)² + (10 - 4.4)² = 49.2, over 4; median 4.
            (vec![1.0, 2.0, 4.0, 5.0, 10.0], 4.4, Some((49.2_f64 / 4.0).sqrt()), [4.0, 1.0, 10.0]),
            // Median (3 + 5) / 2 = 4; 4.5² + 1.5² + 3.5² + 0.5² = 20.25 + 2.25 + 12.25 + 0.25 = 35, over 3.
            (vec![9.0, 3.0, 1.0, 5.0], 4.5, Some((35.0_f64 / 3.0).sqrt()), [4.0, 1.0, 9.0]),
            (vec![2.5], 2.5, None, [2.5; 3]),
        ] {
            assert!((super::mean(&values) - mean).abs() < 1e-12);
            let found = super::stddev(&values);
            assert_eq!(found.is_some(), stddev.is_some());
            assert!(found.zip(stddev).is_none_or(|(found, expected)| (found - expected).abs() < 1e-12));
            let spread = spread(values).unwrap();
            assert_eq!([spread.median, spread.min, spread.max], [median, min, max]);
        }
        assert!(spread(Vec::new()).is_none());
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
