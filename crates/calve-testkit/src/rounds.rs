use std::env;

/// Returns the number of rounds: `usual` times the environment variable `CALVE_ROUNDS`, and at least one. The factor
/// defaults to 0.1; `make test-all` sets 1, `scripts/long-tests` more.
pub fn rounds(usual: usize) -> usize {
    scaled(usual, factor())
}

/// Returns whether rounds are reduced, so that not every case must come up in them.
pub fn few_rounds() -> bool {
    factor() < 1.0
}

/// Returns the entries of a matrix: all of them, or with [`few_rounds`] the first one.
pub fn matrix<T>(all: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    all.into_iter().take(if few_rounds() { 1 } else { usize::MAX })
}

fn factor() -> f64 {
    match env::var("CALVE_ROUNDS") {
        Ok(text) => match text.parse::<f64>() {
            Ok(factor) if factor > 0.0 && factor.is_finite() => factor,
            _ => panic!("CALVE_ROUNDS is not a number above 0: {text}"),
        },
        Err(_) => 0.1,
    }
}

fn scaled(usual: usize, factor: f64) -> usize {
    ((usual as f64 * factor).round() as usize).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_always_a_round() {
        assert_eq!([3, 100, 1].map(|usual| scaled(usual, 0.1)), [1, 10, 1]);
        assert_eq!([3, 100, 1].map(|usual| scaled(usual, 25.0)), [75, 2500, 25]);
    }
}
