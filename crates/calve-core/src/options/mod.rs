//! The options of every function.

mod clone;
#[expect(missing_docs, reason = "only crates of this workspace use it")]
pub(crate) mod internal;
mod remove;
mod selection;

pub(crate) use clone::RecordBody;
pub use clone::{CloneOptions, CloneVerification, Durability, ExistingDestination, Mounts, SpareUse, UnreadableEntry};
pub use remove::{Background, RemovalWait, RemoveOptions};
pub use selection::{Decision, EntryDecider, EntrySelector, Selection};
