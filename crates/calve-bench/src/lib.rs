//! The bench: commands that take turns, each run into a new place, what was measured, and the report of it.
//!
//! One subject, one folder: `copy`, `db`, `dedupe`, `git` and `write` say what is compared and what of; everything else here knows nothing of
//! them. Unix only: it measures programs by what Unix tells of processes.

#![cfg(unix)]

mod census;
pub mod copy;
pub mod db;
pub mod dedupe;
mod document;
mod error;
mod export;
pub mod git;
mod machine;
mod memory;
mod place;
mod process;
mod programs;
mod quiet;
pub mod report;
pub mod runs;
mod selection;
pub mod space;
mod stats;
mod workload;
pub mod worktree;
pub mod write;

pub use crate::document::Document;
pub use crate::error::{BenchError, FailureKind};
