use calve_bench::Rounds;
use calve_bench::git::{self, GitBench, Source};
use calve_core::CancelToken;

use super::report::reported;
use crate::cli::BenchGitArguments;
use crate::failure::Failure;

pub(crate) fn run(arguments: &BenchGitArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let into = arguments.into.clone().unwrap_or_else(std::env::temp_dir);
    let sources = arguments.repo.iter().map(|text| Source::parse(text)).collect::<Result<_, _>>()?;
    reported(&arguments.report, &into, cancel, |setup| {
        let cases = arguments.tests.as_ref().map_or_else(git::all_cases, |selection| selection.0.clone());
        let rounds = arguments.runs.map_or(Rounds::Fitting, Rounds::Exactly);
        GitBench { setup, sources, cases, rounds }.run()
    })
}
