//! The options of every function.

mod clone;
#[expect(missing_docs, reason = "only crates of this workspace use it")]
pub(crate) mod internal;
mod remove;
mod selection;
mod spare_use;

pub use clone::{CloneOptions, CloneVerification, Durability, ExistingDestination, Mounts, UnreadableEntry};
pub use remove::{Background, RemovalWait, RemoveOptions};
pub use selection::{Decision, EntryDecider, EntrySelector, Selection};
pub(crate) use spare_use::RecordBody;
pub use spare_use::SpareUse;
