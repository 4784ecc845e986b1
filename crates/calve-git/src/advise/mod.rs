//! Advice on which clone is right, and when it stops being right, with the measured numbers behind it.

mod numbers;
mod sentences;

pub use numbers::{Cost, Numbers, RepositoryCosts, Test};
pub use sentences::{Sentence, advise};

/// Formats milliseconds for people, with three digits: "15 ms", "1.25 s", "5 min".
pub(crate) fn spoken(milliseconds: f64) -> String {
    let (number, unit) = match milliseconds {
        ms if ms < 1000.0 => (ms, "ms"),
        ms if ms < 60_000.0 => (ms / 1000.0, "s"),
        ms if ms < 3_600_000.0 => (ms / 60_000.0, "min"),
        ms => (ms / 3_600_000.0, "h"),
    };
    let digits = if number < 10.0 { 2 } else { usize::from(number < 100.0) };
    let text = format!("{number:.digits$}");
    let text = if digits > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {unit}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_are_readable() {
        let cases = [
            (0.0, "0 ms"),
            (4.0, "4 ms"),
            (0.256, "0.26 ms"),
            (300.0, "300 ms"),
            (1250.0, "1.25 s"),
            (50_000.0, "50 s"),
        ];
        let longer = [(144_000.0, "2.4 min"), (7_500_000.0, "2.08 h"), (600_000.0, "10 min"), (360_000_000.0, "100 h")];
        for (ms, text) in cases.into_iter().chain(longer) {
            assert_eq!(super::spoken(ms), text);
        }
    }
}
