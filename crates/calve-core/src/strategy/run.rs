//! The result of a strategy.

use std::path::Path;
use std::time::Instant;

use crate::report::{Bytes, CloneReport, Entries, SpareReport};
use crate::tree::notes::Notes;
use crate::vocabulary::strategy::{Refusal, Strategy};

pub(crate) struct StrategyRun {
    pub(crate) strategy: Strategy,
    pub(crate) refused: Vec<Refusal>,
    pub(crate) entries: Option<Entries>,
    pub(crate) bytes: Option<Bytes>,
    pub(crate) spare: Option<SpareReport>,
    pub(crate) spares_wanted: bool,
}

impl StrategyRun {
    pub(crate) fn report(self, src: &Path, dst: &Path, notes: &Notes, started: Instant) -> CloneReport {
        let summary = notes.summary();
        CloneReport {
            src: src.to_path_buf(),
            dst: dst.to_path_buf(),
            strategy: self.strategy,
            refused: self.refused,
            spare: self.spare,
            spares_wanted: self.spares_wanted,
            entries: self.entries,
            bytes: self.bytes,
            fell_back: summary.fell_back,
            skipped: summary.skipped,
            changed: summary.changed,
            warnings: summary.warnings,
            trashed: None,
            trash_waits: false,
            elapsed: started.elapsed(),
        }
    }
}
