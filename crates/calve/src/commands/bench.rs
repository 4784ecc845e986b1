//! `calve bench`.

use std::path::Path;

use calve_bench::Rounds;
use calve_bench::copy::CopyBench;
use calve_bench::space::Cache;
use calve_bench::worktree::WorktreeBench;
use calve_bench::write::{EngineRun, WriteBench};
use calve_bench::{BenchError, BenchSetup, Report, Turns};
use calve_core::{CancelToken, Error};

use crate::cli::report::ReportArguments;
use crate::cli::{BenchCommand, BenchRunArguments, WriteArguments};
use crate::failure::Failure;
use crate::output;

pub(crate) fn run(command: &BenchCommand, cancel: &CancelToken) -> Result<(), Failure> {
    let result = match command {
        BenchCommand::Copy(arguments) => in_turns(&arguments.run, cancel, |setup, turns| {
            CopyBench { setup, turns, tree: &arguments.tree, only: &arguments.only }.run()
        }),
        BenchCommand::Db(arguments) => super::bench_db::run(arguments, cancel),
        BenchCommand::Git(arguments) => super::bench_git::run(arguments, cancel),
        BenchCommand::Worktree(arguments) => in_turns(&arguments.run, cancel, |setup, turns| {
            WorktreeBench { setup, turns, repository: &arguments.repository }.run()
        }),
        BenchCommand::Write(arguments) => reported(&arguments.report, &arguments.into, cancel, |setup| {
            let bench = WriteBench {
                setup,
                files: arguments.files,
                bytes: arguments.size,
                directories: &arguments.directories,
                only: &arguments.only,
                rounds: Rounds::Exactly(arguments.runs),
            };
            bench.run()
        }),
    };
    // The terminal sends Ctrl-C to the programs of a bench too: their failures are then no findings.
    result.map_err(|failure| if cancel.is_cancelled() { Error::Interrupted.into() } else { failure })
}

/// Measures in a directory, prints the report, and fails when one of the commands in it did.
pub(super) fn reported(
    arguments: &ReportArguments,
    into: &Path,
    cancel: &CancelToken,
    measure: impl FnOnce(BenchSetup<'_>) -> Result<Report, BenchError>,
) -> Result<(), Failure> {
    let report = measure(BenchSetup {
        into,
        say: &|line| {
            output::note(line);
        },
        warn: &output::say,
        hint: crate::wording::bench::hint,
        cancel,
    })?;
    match arguments.json {
        true => output::json(&report.json())?,
        false => output::result(&report.markdown())?,
    }
    Ok(report.verdict()?)
}

fn in_turns(
    arguments: &BenchRunArguments,
    cancel: &CancelToken,
    measure: impl FnOnce(BenchSetup<'_>, Turns) -> Result<Report, BenchError>,
) -> Result<(), Failure> {
    let turns = Turns {
        rounds: arguments.runs.map_or(Rounds::Fitting, Rounds::Exactly),
        cache: if arguments.cold { Cache::cold()? } else { Cache::Warm },
    };
    reported(&arguments.report, &arguments.into, cancel, |setup| measure(setup, turns))
}

/// `calve __write`: a run of `calve bench write`.
pub(crate) fn write(arguments: &WriteArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let WriteArguments { threads, root, files, bytes, directories, result } = arguments;
    let run = EngineRun { threads: *threads, root, files: *files, bytes: *bytes, directories: *directories, result };
    Ok(run.run(cancel)?)
}
