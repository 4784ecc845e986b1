//! The values that all documents are made of: paths, durations, refusals, warnings.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use calve_core::Strategy;
use serde::Serialize;

/// A path as text. A path that is not UTF-8 is given as its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ReceiptPath {
    /// UTF-8.
    Text(String),
    /// Anything else.
    Undecodable(Undecodable),
}

/// A path that is not UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Undecodable {
    /// The bytes of the path in Base64.
    bytes_base64: String,
}

/// Converts a path. The root of a tree, relative to itself, is `.`.
pub fn path(path: impl AsRef<Path>) -> ReceiptPath {
    let path = named(path.as_ref());
    match path.to_str() {
        Some(text) => ReceiptPath::Text(text.into()),
        None => {
            ReceiptPath::Undecodable(Undecodable { bytes_base64: STANDARD.encode(path.as_os_str().as_encoded_bytes()) })
        }
    }
}

/// Converts a list of paths.
pub fn paths(list: &[PathBuf]) -> Vec<ReceiptPath> {
    list.iter().map(path).collect()
}

/// Returns `.` for the root of a tree, whose path relative to itself is empty.
pub fn named(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// A duration in milliseconds, rounded to the microsecond.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub struct Milliseconds(f64);

impl From<Duration> for Milliseconds {
    fn from(elapsed: Duration) -> Self {
        Self((elapsed.as_secs_f64() * 1e6).round() / 1e3)
    }
}

/// A duration in seconds, rounded to the microsecond.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub struct Seconds(f64);

impl From<f64> for Seconds {
    fn from(seconds: f64) -> Self {
        Self((seconds * 1e6).round() / 1e6)
    }
}

/// Returns a moment as a number of seconds.
pub(crate) fn seconds_since_1970(moment: SystemTime) -> Seconds {
    moment.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64().into()
}

/// The name of a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(extend("enum" = Strategy::ALL.map(Strategy::name))))]
pub struct StrategyName(&'static str);

impl From<Strategy> for StrategyName {
    fn from(strategy: Strategy) -> Self {
        Self(strategy.name())
    }
}

/// Returns the strategies by which a server may have its data.
#[cfg(test)]
pub(crate) fn strategies() -> Vec<&'static str> {
    Strategy::ALL.map(Strategy::name).into_iter().chain(["init"]).collect()
}

/// A strategy that was not used.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Refusal {
    /// The strategy.
    strategy: StrategyName,
    /// The reason in a few words.
    reason: String,
}

/// Converts the refusals of a report.
pub(crate) fn refusals(refused: &[calve_core::Refusal]) -> Vec<Refusal> {
    let one =
        |refusal: &calve_core::Refusal| Refusal { strategy: refusal.strategy.into(), reason: refusal.reason.clone() };
    refused.iter().map(one).collect()
}

/// An entry that was left out.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SkippedEntry {
    /// The entry's path.
    pub path: ReceiptPath,
    /// The reason in a few words.
    pub reason: String,
}

/// Converts the skipped entries of a report.
pub fn skipped(skipped: &[calve_core::SkippedEntry]) -> Vec<SkippedEntry> {
    skipped.iter().map(|one| SkippedEntry { path: path(&one.path), reason: one.reason.text().into() }).collect()
}

/// Something that the user should know and that is not an error.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Warning {
    /// A stable word for programs.
    #[cfg_attr(test, schemars(extend("enum" = calve_core::WarningCode::CODES)))]
    code: &'static str,
    /// The first path concerned. Absent if the warning is about no path.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "ReceiptPath"))]
    path: Option<ReceiptPath>,
    /// A sentence for people.
    message: String,
}

/// Converts the warnings of a report.
pub(crate) fn warnings(warnings: &[calve_core::Warning]) -> Vec<Warning> {
    let one = |warning: &calve_core::Warning| Warning {
        code: warning.code.code(),
        path: warning.path.as_ref().map(path),
        message: warning.message.clone(),
    };
    warnings.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_is_printed_as_nothing() {
        let text = |text: &str| ReceiptPath::Text(text.into());
        assert_eq!((path(""), path("a/b")), (text("."), text("a/b")));
    }
}
