//! The changes of a command in its private copy of a tree.

use calve_core::overlay_run::Change;
use serde::Serialize;

use crate::clone::CloneReceipt;
use crate::values::ReceiptPath;

/// The report of `calve run`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.run/1")]
pub struct RunReceipt {
    /// The exit code of the command; 128 and the number of the signal that ended it.
    pub exit_code: u8,
    /// The complete copy that was kept. Null if none was.
    pub kept: Option<ReceiptPath>,
    /// The report of that copy, with what it lacks. Null if none was kept.
    pub clone: Option<CloneReceipt>,
    /// Whether the changes were made in the tree itself.
    pub applied: bool,
    /// The tree that the command saw a private copy of.
    pub tree: ReceiptPath,
    /// Everything that the command made, changed or deleted, in the order of the paths.
    pub entries: Vec<Change>,
}
