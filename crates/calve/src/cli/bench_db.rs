//! `calve bench db`: its options.

use clap::Args;

use super::report::ReportArguments;

/// Measure servers on clones of a template, with each strategy
///
/// Runs copy, overlay, reflink and snapshot, and a server on an existing directory, in a different order each time. For a template made
/// from an image, all servers run in containers. Each run clones the template, starts a server, asks one query, writes ten
/// times, and stops the server. Reports the times, and the disk space and memory of a server. Then it times commands as a whole: a
/// start that finds a standby, and resets to the template and to a mark. To measure a write load, run a program such as
/// pgbench in `calve db run`.
///
/// Only reads the template. The servers are in CALVE_HOME; they end with the bench, however it ends.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calve bench db --template shop
  calve db run --strategy reflink shop -- pgbench -N -c 4 -T 10     a write load
  calve bench db --template shop --write 'UPDATE carts SET items = items + 1 WHERE id = 7'

Exit codes: 0 measured, 1 failed, or a strategy that works there did, 2 usage, 130 interrupted.")]
pub(crate) struct BenchDbArguments {
    /// The template
    #[arg(long, value_name = "NAME")]
    pub(crate) template: String,
    /// The first query
    #[arg(long, value_name = "SQL", default_value = "SELECT 1")]
    pub(crate) query: String,
    /// The statement to run ten times [default: delete a row of the largest table]
    #[arg(long, value_name = "SQL")]
    pub(crate) write: Option<String>,
    /// The number of starts of each kind of server
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,
    /// The number of timed starts with a standby and of each reset; 0 for none [default: as --runs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=100_000))]
    pub(crate) steps: Option<u32>,
    #[command(flatten)]
    pub(crate) report: ReportArguments,
}
