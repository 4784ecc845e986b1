//! The forms in which every bench reports.

use serde_json::Value;

use crate::error::BenchError;

/// A report that can be printed and exported.
pub trait Document {
    /// Returns the report as JSON, in the schema of its bench (docs/benchmarks.md).
    fn json(&self) -> Value;

    /// Returns the report as Markdown, with aligned columns for terminals.
    fn markdown(&self) -> String;

    /// Returns the report as a self-contained HTML page.
    fn html(&self) -> String;

    /// Fails when one of the commands that the bench is about failed.
    fn verdict(&self) -> Result<(), BenchError>;
}
