//! The bench: commands that take turns, each run into a new place, what was measured, and the report of it.
//!
//! One subject, one folder: `copy`, `db`, `dedupe`, `git` and `write` say what is compared and what of; everything else here knows nothing of
//! them.

mod census;
pub(crate) mod copy;
pub(crate) mod db;
pub(crate) mod dedupe;
pub(crate) mod export;
pub(crate) mod git;
mod machine;
mod memory;
mod place;
mod process;
mod programs;
mod quiet;
pub(crate) mod report;
pub(crate) mod runs;
mod selection;
pub(crate) mod space;
mod stats;
mod workload;
pub(crate) mod worktree;
pub(crate) mod write;
