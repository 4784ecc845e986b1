//! The common part of all benches: where their reports go.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Print nothing but the result and errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Print the report as JSON on stdout (schema calve.bench/1)
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the report as JSON, a superset of hyperfine's
    #[arg(long, value_name = "FILE")]
    pub(crate) export_json: Option<PathBuf>,
    /// Write the report as Markdown
    #[arg(long, value_name = "FILE")]
    pub(crate) export_markdown: Option<PathBuf>,
    /// Write the report as one HTML file with plots
    #[arg(long, value_name = "FILE")]
    pub(crate) export_html: Option<PathBuf>,
}
