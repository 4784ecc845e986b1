//! `calve bench git`.

use calve_bench::Rounds;
use calve_bench::git::{self, GitAddress, GitBench, Pace, Source, Subject};
use calve_core::CancelToken;

use super::bench::reported;
use crate::cli::BenchGitArguments;
use crate::failure::Failure;

pub(crate) fn run(arguments: &BenchGitArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let cases = arguments.tests.as_ref().map_or_else(git::all_cases, |selection| selection.0.clone());
    git::check_selection(&cases, arguments.server.is_some())?;
    let into = arguments.into.clone().unwrap_or_else(git::usual_place);
    let subject = subject(arguments)?;
    reported(&arguments.report, &into, cancel, |setup| {
        let bench = GitBench {
            setup,
            subject,
            cases,
            branch: arguments.branch.as_deref(),
            pace: Pace {
                clients: arguments.concurrency,
                rounds: arguments.runs.map_or(Rounds::Fitting, Rounds::Exactly),
            },
        };
        bench.run()
    })
}

fn subject(arguments: &BenchGitArguments) -> Result<Subject, Failure> {
    if let Some(url) = &arguments.server {
        return Ok(Subject::Server(GitAddress::of(url)?));
    }
    let sources = arguments.repo.iter().map(|text| Source::of(text)).collect::<Result<_, _>>()?;
    Ok(Subject::Repositories(sources))
}
