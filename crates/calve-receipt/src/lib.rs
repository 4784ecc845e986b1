//! The versioned JSON documents of Calve, printed by the program and returned by the packages for Node and Python.
//!
//! `tests/packages` generates `docs/schemas/receipts.json` from the structs, and the packages' types from that.

#[cfg(feature = "program")]
pub mod bench;
#[cfg(feature = "program")]
mod db;
mod error;
#[cfg(feature = "program")]
mod git;
pub mod human;
#[cfg(feature = "program")]
mod template;
mod trees;
mod values;
#[cfg(feature = "program")]
mod volume;
#[cfg(feature = "program")]
mod worktree;

pub use crate::error::{ErrorCode, ErrorReceipt, errno};
pub use crate::trees::*;
pub use crate::values::*;
#[cfg(feature = "program")]
pub use crate::{db::*, git::*, template::*, volume::*, worktree::*};

pub fn json(document: &impl serde::Serialize) -> String {
    // Plain data with text keys always serializes.
    serde_json::to_string(document).unwrap_or_default()
}
