mod db;
mod git;
mod report;

use calve_bench::Rounds;
use calve_bench::copy::CopyBench;
use calve_bench::worktree::WorktreeBench;
use calve_bench::write::WriteBench;
use calve_bench::{BenchError, BenchSetup, Report};
use calve_core::{CancelToken, Error};

use crate::cli::BenchCommand;
use crate::cli::bench_run::BenchRunArguments;
use crate::failure::Failure;
use report::reported;

pub(crate) fn run(command: &BenchCommand, cancel: &CancelToken) -> Result<(), Failure> {
    let result = match command {
        BenchCommand::Copy(arguments) => in_turns(&arguments.run, cancel, |setup, rounds| {
            CopyBench { setup, rounds, tree: &arguments.tree, only: &arguments.only }.run()
        }),
        BenchCommand::Db(arguments) => db::run(arguments, cancel),
        BenchCommand::Git(arguments) => git::run(arguments, cancel),
        BenchCommand::Worktree(arguments) => in_turns(&arguments.run, cancel, |setup, rounds| {
            WorktreeBench { setup, rounds, repository: &arguments.repository }.run()
        }),
        BenchCommand::Write(arguments) => reported(&arguments.report, &arguments.into, cancel, |setup| {
            let bench = WriteBench {
                setup,
                files: arguments.files,
                bytes: arguments.size,
                directories: &arguments.directories,
                rounds: Rounds::Exactly(arguments.runs),
            };
            bench.run()
        }),
    };
    // The terminal sends Ctrl-C to the programs of a bench too: their failures are then no findings.
    result.map_err(|failure| if cancel.is_cancelled() { Error::Interrupted.into() } else { failure })
}

fn in_turns(
    arguments: &BenchRunArguments,
    cancel: &CancelToken,
    measure: impl FnOnce(BenchSetup<'_>, Rounds) -> Result<Report, BenchError>,
) -> Result<(), Failure> {
    let rounds = arguments.runs.map_or(Rounds::Fitting, Rounds::Exactly);
    reported(&arguments.report, &arguments.into, cancel, |setup| measure(setup, rounds))
}
