//! The bench: commands that take turns, each run into a new place, the measurements, and the report of them.
//!
//! One subject, one folder: `copy`, `db`, `git` and `write` have the commands and their data; everything else here knows nothing of
//! them. Unix only: it measures programs by what Unix tells of processes.

mod census;
mod comparison;
pub mod copy;
pub mod db;
mod error;
pub mod git;
mod machine;
mod process;
mod programs;
mod remedy;
mod report;
mod runs;
mod scratch;
mod selection;
mod setup;
mod spares;
mod stats;
mod workload;
pub mod worktree;
pub mod write;

pub use crate::error::BenchError;
pub use crate::remedy::{ProgramSource, Remedy};
pub use crate::report::Report;
pub use crate::setup::{BenchSetup, Rounds};
