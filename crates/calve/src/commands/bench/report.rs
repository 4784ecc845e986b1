//! The report of a bench.

use std::path::Path;

use calve_bench::{BenchError, BenchSetup, Report};
use calve_core::CancelToken;

use crate::cli::report::ReportArguments;
use crate::failure::Failure;
use crate::{output, wording};

/// Measures in a directory, prints the report, and fails when one of the commands in it did.
pub(super) fn reported(
    arguments: &ReportArguments,
    into: &Path,
    cancel: &CancelToken,
    measure: impl FnOnce(BenchSetup<'_>) -> Result<Report, BenchError>,
) -> Result<(), Failure> {
    let report = measure(BenchSetup {
        into,
        say: &|line| {
            output::note(line);
        },
        warn: &output::warn,
        hint: wording::core::hint,
        cancel,
    })?;
    match arguments.json {
        true => output::json(&report.json())?,
        false => output::result(&report.markdown())?,
    }
    Ok(report.verdict()?)
}
