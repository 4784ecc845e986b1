//! The bench: commands that take turns, each run into a new place, what was measured, and the report of it.
//!
//! One subject, one folder: `copy` says what is compared and what the tree is like; everything else here knows nothing of it.

pub(crate) mod copy;
pub(crate) mod export;
mod machine;
mod place;
mod process;
pub(crate) mod report;
pub(crate) mod runs;
pub(crate) mod space;
mod stats;
mod workload;
