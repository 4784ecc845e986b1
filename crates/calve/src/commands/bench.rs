use std::path::Path;

use calve_bench::db::DatabaseBench;
use calve_bench::{BenchError, BenchSetup, Report, Rounds, copy, git, worktree, write};
use calve_core::{CancelToken, Error};

use super::db::home::{home, supervisor};
use crate::cli::BenchCommand;
use crate::cli::bench::{BenchDbArguments, BenchGitArguments, BenchRunArguments, ReportArguments};
use crate::failure::Failure;
use crate::host::Program;
use crate::{output, wording};

pub(crate) fn run(command: &BenchCommand, cancel: &CancelToken) -> Result<(), Failure> {
    let result = match command {
        BenchCommand::Copy(arguments) => in_turns(&arguments.run, cancel, |setup, rounds| {
            copy::run(&setup, rounds, &arguments.tree, &arguments.only)
        }),
        BenchCommand::Db(arguments) => databases(arguments, cancel),
        BenchCommand::Git(arguments) => git_clones(arguments, cancel),
        BenchCommand::Worktree(arguments) => {
            in_turns(&arguments.run, cancel, |setup, rounds| worktree::run(&setup, rounds, &arguments.repo))
        }
        BenchCommand::Write(arguments) => reported(&arguments.report, &arguments.into, cancel, |setup| {
            let rounds = Rounds::Exactly(arguments.runs);
            write::run(&setup, rounds, arguments.files, arguments.size, &arguments.directories)
        }),
    };
    // The terminal sends Ctrl-C to the bench's programs too, so their failures are not findings.
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

fn databases(arguments: &BenchDbArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let BenchDbArguments { template, write, runs, .. } = arguments;
    let (home, supervisor, write) = (&home()?, &supervisor()?, write.as_deref());
    let steps = arguments.steps.unwrap_or(*runs);
    let directory = calve_env::required_home(&Program, "databases")?;
    // Create a missing home. Starting a server then reports that it has no template.
    fs_err::create_dir_all(&directory)?;
    reported(&arguments.report, &directory, cancel, |setup| {
        DatabaseBench { setup, home, supervisor, template, write, runs: *runs, steps }.run()
    })
}

fn git_clones(arguments: &BenchGitArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let into = arguments.into.clone().unwrap_or_else(std::env::temp_dir);
    let sources = arguments.repo.iter().map(|text| git::Source::parse(text)).collect::<Result<Vec<_>, _>>()?;
    reported(&arguments.report, &into, cancel, |setup| {
        let rounds = arguments.runs.map_or(Rounds::Fitting, Rounds::Exactly);
        git::run(&setup, rounds, &sources, arguments.tests.as_ref())
    })
}

fn reported(
    arguments: &ReportArguments,
    into: &Path,
    cancel: &CancelToken,
    measure: impl FnOnce(BenchSetup<'_>) -> Result<Report, BenchError>,
) -> Result<(), Failure> {
    let report =
        measure(BenchSetup { into, say: &output::note, warn: &output::warn, hint: wording::core::hint, cancel })?;
    output::json_or(arguments.json, &report.document, &report.markdown())?;
    Ok(report.verdict()?)
}
