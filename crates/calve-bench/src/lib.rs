//! The bench: commands take turns, each run makes a new path, and a report has the measurements.
//!
//! Each subject has a folder with its commands and data: `copy`, `db`, `git`, `worktree` and `write`. Everything else
//! knows nothing of them. Unix only: it measures programs by Unix's accounts of processes.

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
