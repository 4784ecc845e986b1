//! The changes of a command in its private copy of a tree.

use std::path::Path;

use calve_core::{Change, EntryKind};
use serde::Serialize;

use crate::values::{ReceiptPath, path};

/// The report of `calve run`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.run/1")]
pub struct RunReceipt {
    /// The exit code of the command; 128 and the number of the signal that ended it.
    exit_code: u8,
    /// The complete copy that was kept. Null if none was.
    kept: Option<ReceiptPath>,
    /// Whether the changes were made in the tree itself.
    applied: bool,
    /// The tree that the command saw a private copy of.
    tree: ReceiptPath,
    /// Everything that the command made, changed or deleted, in the order of the paths.
    entries: Vec<ChangeReceipt>,
}

/// One entry that differs from the tree in kind, mode, owner or contents.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChangeReceipt {
    /// The path below the tree; `.` for the tree itself.
    path: ReceiptPath,
    /// The entry before. Null if it is new.
    before: Option<ChangedKind>,
    /// The entry now. Null if it is deleted.
    after: Option<ChangedKind>,
}

/// The kind of a changed entry. Other entries are FIFOs, sockets and devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChangedKind {
    File,
    Directory,
    Symlink,
    Other,
}

impl RunReceipt {
    /// Returns the receipt of a command that ended with `exit_code`.
    pub fn new(exit_code: u8, kept: Option<&Path>, applied: bool, tree: &Path, changes: &[Change]) -> Self {
        let entry = |change: &Change| ChangeReceipt {
            path: path(&change.path),
            before: change.before.map(ChangedKind::from),
            after: change.after.map(ChangedKind::from),
        };
        let entries = changes.iter().map(entry).collect();
        Self { exit_code, kept: kept.map(path), applied, tree: path(tree), entries }
    }
}

impl From<EntryKind> for ChangedKind {
    fn from(kind: EntryKind) -> Self {
        match kind {
            EntryKind::File => Self::File,
            EntryKind::Directory => Self::Directory,
            EntryKind::Symlink => Self::Symlink,
            EntryKind::Other => Self::Other,
        }
    }
}
