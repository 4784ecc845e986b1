//! Many files written at once.

use calve_core::bulk::WriteReport;
use serde::Serialize;

use crate::error::ErrorReceipt;
use crate::values::Milliseconds;

/// The report of files that were written together.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "program", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.write/1")]
pub struct WriteReceipt {
    /// The number of files written.
    files: u64,
    /// The size of their contents in bytes.
    bytes: u64,
    /// The number of directories made.
    directories: u64,
    /// The largest number of threads that worked at the same time.
    threads: usize,
    /// The files that were not written, if errors were to be collected.
    failures: Vec<WriteFailure>,
    /// The time that writing took in milliseconds.
    elapsed_ms: Milliseconds,
}

/// A file that was not written.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "program", derive(schemars::JsonSchema))]
struct WriteFailure {
    /// The index of the entry, counted from 0.
    index: u64,
    /// Why the file was not written.
    error: ErrorReceipt,
}

impl From<&WriteReport> for WriteReceipt {
    fn from(report: &WriteReport) -> Self {
        let &WriteReport { files, bytes, directories, threads, ref failures, elapsed } = report;
        let failures = failures.iter();
        let failures = failures.map(|failure| WriteFailure { index: failure.index, error: (&failure.error).into() });
        Self { files, bytes, directories, threads, failures: failures.collect(), elapsed_ms: elapsed.into() }
    }
}
