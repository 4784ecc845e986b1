//! The abilities of a pair of directories.

use calve_core::ProbeReport;
use calve_core::error::Remedy;
use calve_core::report::FileSystemReport;
use serde::Serialize;

use crate::values::{ReceiptPath, StrategyName, path};

/// The strategies that can be used between two directories.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.probe/1")]
pub struct ProbeReceipt {
    /// The source.
    src: Place,
    /// The destination.
    dst: Place,
    /// The strategy that a clone would use. Null if nothing can be made at the destination.
    chosen: Option<StrategyName>,
    /// All strategies, in order of preference.
    strategies: Vec<Offer>,
}

/// A path and its file system.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Place {
    /// The path as given.
    path: ReceiptPath,
    /// The type of the file system, such as `xfs`.
    file_system: String,
    /// The device number as `major:minor`.
    device: String,
}

/// A strategy and whether it can be used.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Offer {
    /// The strategy.
    strategy: StrategyName,
    /// True if the strategy can be used.
    available: bool,
    /// Why the strategy is not available. Null if it is.
    reason: Option<String>,
    /// The condition that would make the strategy available. Null if it is available or nothing would.
    remedy: Option<String>,
}

impl ProbeReceipt {
    /// Converts a report, with each remedy as `words` has it.
    pub fn new(report: &ProbeReport, words: impl Fn(&Remedy) -> String) -> Self {
        let place = |place: &FileSystemReport| Place {
            path: path(&place.path),
            file_system: place.file_system.clone(),
            device: format!("{}:{}", place.device.0, place.device.1),
        };
        let offers = report.offers.iter().map(|offer| Offer {
            strategy: offer.strategy,
            available: offer.refused.is_none(),
            reason: offer.refused.as_ref().map(|refused| refused.reason.clone()),
            remedy: offer.refused.as_ref().and_then(|refused| refused.remedy.as_ref().map(&words)),
        });
        Self { src: place(&report.src), dst: place(&report.dst), chosen: report.chosen, strategies: offers.collect() }
    }
}
