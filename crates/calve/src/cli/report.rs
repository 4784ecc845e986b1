//! The common part of all benches: where their reports go.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Print the report as JSON on stdout (schema calve.bench/1)
    #[arg(long)]
    pub(crate) json: bool,
}
