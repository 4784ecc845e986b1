//! How often a reaper looks for trash.

use std::path::PathBuf;
use std::time::Duration;

use crate::error::Error;
use crate::options::Background;
use crate::report::ReapReport;

#[derive(Debug, Default)]
pub(crate) struct SweepReport {
    pub(crate) removed: Vec<PathBuf>,
    pub(crate) deleted_entries: u64,
    /// The first name that could not be deleted, and why.
    pub(crate) failure: Option<Error>,
    pub(crate) saw_trash: bool,
    /// Trash that an earlier reaper could not delete.
    pub(crate) stuck_trash: Vec<PathBuf>,
}

/// Sweeps trash by `sweep`, in the background until all is gone. Trash of another process may be left a moment later, if that was just killed.
pub(crate) fn reap_all(
    background: Background,
    sweep: impl Fn() -> Result<SweepReport, Error>,
) -> Result<ReapReport, Error> {
    let waits: &[u64] = if background == Background::Yes { &[50, 100, 200, 400, 800, 1600, 3200] } else { &[] };
    let mut report = ReapReport::default();
    for wait_ms in waits.iter().map(Some).chain([None]) {
        let swept = sweep()?;
        report.deleted += swept.deleted_entries;
        report.failure = swept.failure;
        match wait_ms {
            Some(wait_ms) if swept.saw_trash => std::thread::sleep(Duration::from_millis(*wait_ms)),
            _ => break,
        }
    }
    Ok(report)
}
