use std::path::PathBuf;

use calve_bench::git::CaseSelection;
use clap::Args;

/// The common part of all benches: where their reports go.
#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Print the report as JSON on stdout (schema calve.bench/1)
    #[arg(long)]
    pub(crate) json: bool,
}

/// The common part of all benches that run commands in turn.
#[derive(Debug, Args)]
pub(crate) struct BenchRunArguments {
    /// Work in this directory, and clean up at the end
    #[arg(long, value_name = "DIR")]
    pub(crate) into: PathBuf,
    /// Run each command N times [default: 3 to 10 within eight minutes, up to 30 within two]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: Option<u32>,
    #[command(flatten)]
    pub(crate) report: ReportArguments,
}

/// Measure servers on clones of a template, with each strategy
///
/// Runs copy, overlay, reflink and snapshot, and a server on an existing directory, in a different order each time. For a template made from
/// an image, all servers run in containers. Each run clones the template, starts a server, asks it `SELECT 1`, writes ten times, and stops
/// it. Reports the times, and the disk space and memory of a server. Then it times commands as a whole: a start that finds a standby, and
/// resets to the template and to a mark. To measure a write load, run a program such as pgbench in `calve db run`.
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
    /// Clone this template
    #[arg(long, value_name = "NAME")]
    pub(crate) template: String,
    /// Run this statement ten times [default: delete a row of the largest table]
    #[arg(long, value_name = "SQL")]
    pub(crate) write: Option<String>,
    /// Start each kind of server N times
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,
    /// Time N starts with a standby and N of each reset; 0 for none [default: as --runs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=100_000))]
    pub(crate) steps: Option<u32>,
    #[command(flatten)]
    pub(crate) report: ReportArguments,
}

/// Measure the client and server cost of each kind of clone
///
/// Copies each repository, and has a client clone the checked-out branch and fetch from the copy, over git upload-pack as SSH does, while
/// one user pushes. Reports the client's time, the server's CPU time and memory, connections and bytes; what git fetches later because a
/// clone was partial is charged to the command that needed it.
///
/// T1 to T4 are clones: full, --depth=1, --filter=tree:0, --filter=blob:none; with git checkout and git blame of the past. T5 to
/// T10 clone and then fetch three times, each time after a push, and reset to what was fetched: T5 full clone and full fetch, T6
/// full and --depth=1, T7 shallow and full, T8 shallow and --depth=1, T9 treeless and full, T10 blobless and full.
///
/// Only reads the repositories. Makes everything in one hidden directory below --into, and removes that at the end, even after an error or
/// Ctrl-C. Automatic gc is off on both sides, and your git configuration is not used.
#[derive(Debug, Args)]
#[command(mut_arg("json", |json| json.help("Print the report as JSON on stdout (schema calve.bench.git/1)")))]
#[command(after_help = "\
Examples:
  calve bench git --repo . > report.md
  calve bench git --repo ~/src/a --repo https://example.org/b.git --tests T1-T4

Exit codes: 0 measured, 1 failed, or a command of git did, 2 usage, 130 interrupted.")]
pub(crate) struct BenchGitArguments {
    /// Measure this repository: a directory or a URL (repeatable)
    #[arg(long, value_name = "PATH|URL", required = true)]
    pub(crate) repo: Vec<String>,
    /// Run these tests, such as T1,T5-T10 [default: all]
    #[arg(long, value_name = "LIST")]
    pub(crate) tests: Option<CaseSelection>,
    /// Run all tests N times [default: 3 to 10 within eight minutes, up to 30 short ones]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: Option<u32>,
    /// Work in this directory, and clean up at the end [default: the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub(crate) into: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) report: ReportArguments,
}
