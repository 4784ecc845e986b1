//! Spares: clones made ahead of time. `claim` hands them over.

mod build;
mod manage;
mod refill;
mod set;
mod watch;
pub(crate) mod watched_listing;

pub use crate::claim::store::SpareSource;
pub use refill::{RefillOptions, RefillReport};
pub use set::{Readiness, SpareOptions, SpareOrigin, SpareSet, SpareState, Spares};
pub use watch::{UntrackedReason, WatchEnd, WatchNote, WatchOptions, WatchOutcome};
