//! `calve bench`.

use std::path::Path;

use calve_bench::Rounds;
use calve_bench::copy::CopyBench;
use calve_bench::dedupe::DedupeBench;
use calve_bench::space::{self, Cache};
use calve_bench::worktree::WorktreeBench;
use calve_bench::write::WriteBench;
use calve_bench::{BenchError, BenchSetup, Report, Turns};
use calve_core::{CancelToken, Error};

use super::bench_report::Outlet;
use crate::cli::report::ReportArguments;
use crate::cli::{BenchCommand, BenchRunArguments};
use crate::failure::{Failure, REFUSED};
use crate::output;

pub(crate) fn run(command: &BenchCommand, cancel: &CancelToken) -> Result<(), Failure> {
    let result = match command {
        BenchCommand::Copy(arguments) => in_turns(&arguments.run, cancel, |setup, turns| {
            CopyBench { setup, turns, tree: &arguments.tree, only: &arguments.only }.run()
        }),
        BenchCommand::Db(arguments) => super::bench_db::run(arguments, cancel),
        BenchCommand::Dedupe(arguments) => in_turns(&arguments.run, cancel, |setup, turns| {
            let (tree, other) = (&arguments.tree, arguments.and.as_deref());
            DedupeBench { setup, turns, tree, other, only: &arguments.only, without: &arguments.without }.run()
        }),
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
                node: arguments.node.as_deref(),
                only: &arguments.only,
                rounds: Rounds::Exactly(arguments.runs),
            };
            bench.run()
        }),
    };
    // The terminal sends Ctrl-C to the programs of a bench too: their failures are then no findings.
    result.map_err(|failure| if cancel.is_cancelled() { Error::Interrupted.into() } else { failure })
}

/// Measures in a directory, and reports where that was asked for.
pub(super) fn reported(
    arguments: &ReportArguments,
    into: &Path,
    cancel: &CancelToken,
    measure: impl FnOnce(BenchSetup<'_>) -> Result<Report, BenchError>,
) -> Result<(), Failure> {
    let outlet = Outlet::of(arguments)?;
    let report = measure(BenchSetup {
        into,
        say: &|line| outlet.say(line),
        warn: &output::say,
        hint: crate::wording::core::hint,
        cancel,
    })?;
    outlet.finish(&report)
}

fn in_turns(
    arguments: &BenchRunArguments,
    cancel: &CancelToken,
    measure: impl FnOnce(BenchSetup<'_>, Turns) -> Result<Report, BenchError>,
) -> Result<(), Failure> {
    let turns = Turns {
        rounds: arguments.runs.map_or(Rounds::Fitting, Rounds::Exactly),
        warmup: arguments.warmup,
        cache: if arguments.cold { cold()? } else { Cache::Warm },
    };
    reported(&arguments.report, &arguments.into, cancel, |setup| measure(setup, turns))
}

/// Reports that the caches can be emptied. Fails without access to the switch of the kernel, which root alone may use.
fn cold() -> Result<Cache, Failure> {
    match fs_err::OpenOptions::new().write(true).open(space::DROP_CACHES) {
        Ok(_) => Ok(Cache::Cold),
        Err(error) => {
            let text = format!("the caches cannot be emptied: {error}");
            Err(Failure::stated(REFUSED, text, "emptying the caches takes root, on Linux; or measure with warm caches"))
        }
    }
}
