//! Options that several benches have.

use std::path::PathBuf;

use clap::Args;

use super::report::ReportArguments;

/// The common part of all benches that run commands in turn.
#[derive(Debug, Args)]
pub(crate) struct BenchRunArguments {
    /// Work in this directory, and clean up at the end
    #[arg(long, value_name = "DIR")]
    pub(crate) into: PathBuf,
    /// The number of runs of each command [default: 3 to 10 within eight minutes, up to 30 within two]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: Option<u32>,
    #[command(flatten)]
    pub(crate) report: ReportArguments,
}
