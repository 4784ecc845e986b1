//! Which clone is right, and when it stops being right: from measured numbers, each of which is named.

mod numbers;
pub mod published;
mod sentences;

pub use numbers::{Cost, Measured, Numbers, Test};
pub use sentences::{Sentence, advise};

/// How many milliseconds, for people: "15 ms", "1.5 s", "5.0 min".
pub(crate) fn spoken(milliseconds: f64) -> String {
    match milliseconds {
        ms if ms < 10.0 => format!("{} ms", (ms * 10.0).round() / 10.0),
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms if ms < 60_000.0 => format!("{:.1} s", ms / 1000.0),
        ms if ms < 3_600_000.0 => format!("{:.1} min", ms / 60_000.0),
        ms => format!("{:.1} h", ms / 3_600_000.0),
    }
}
