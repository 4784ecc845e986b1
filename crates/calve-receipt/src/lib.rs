//! The JSON documents of Calve, versioned: what the program prints, and what the packages for Node and Python hand over.
//!
//! The unit tests generate `docs/schemas/receipts.json` from the structs, and `tests/packages.rs` the types of the packages from that.

pub mod bench;
#[cfg(feature = "db")]
mod db;
mod error;
#[cfg(feature = "git")]
mod git;
pub mod human;
#[cfg(feature = "git")]
mod prune;
#[cfg(test)]
mod schemas;
mod template;
mod trees;
mod values;
mod volume;
#[cfg(feature = "git")]
mod worktree;
mod write;

#[cfg(feature = "db")]
pub use crate::db::*;
pub use crate::error::{ErrorCode, ErrorReceipt, UnsavedReceipt, errno};
pub use crate::template::*;
pub use crate::trees::*;
pub use crate::values::*;
pub use crate::volume::*;
pub use crate::write::WriteReceipt;
#[cfg(feature = "git")]
pub use crate::{git::*, prune::*, worktree::*};

/// Returns a document as JSON on one line.
pub fn json(document: &impl serde::Serialize) -> String {
    // Plain data whose keys are text can always be written.
    serde_json::to_string(document).unwrap_or_default()
}

#[cfg(test)]
fn value(document: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(document).unwrap()
}
