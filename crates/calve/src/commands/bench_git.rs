//! `calve bench git`.

use calve_bench::Rounds;
use calve_bench::git::{self, GitAddress, GitBench, Pace, Source, Subject, SyntheticRepository};
use calve_core::CancelToken;

use super::bench::reported;
use crate::cli::{BenchGitArguments, Switch};
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
                rounds: match (arguments.iterations, arguments.duration) {
                    (Some(number), _) => Rounds::Exactly(number),
                    (None, Some(_)) => Rounds::Exactly(1),
                    (None, None) => Rounds::Fitting,
                },
                duration: arguments.duration,
                fetches: arguments.fetches,
                push_every: arguments.push_every,
            },
            bitmaps: arguments.bitmaps == Switch::On,
            back: arguments.back,
            protocol: arguments.protocol,
            link: arguments.net,
            against_daemon: arguments.against_daemon,
        };
        bench.run()
    })
}

fn subject(arguments: &BenchGitArguments) -> Result<Subject, Failure> {
    if let Some(url) = &arguments.server {
        return Ok(Subject::Server(GitAddress::of(url)?));
    }
    let mut sources = arguments.repo.iter().map(|text| Source::of(text)).collect::<Result<Vec<_>, _>>()?;
    for shape in &arguments.synthetic {
        let mut wanted = SyntheticRepository::new(*shape);
        wanted.commits = arguments.commits.map_or(wanted.commits, u32::from);
        wanted.files = arguments.files.map_or(wanted.files, u32::from);
        wanted.file_bytes = arguments.file_size.unwrap_or(wanted.file_bytes);
        sources.push(Source::Synthetic(wanted));
    }
    Ok(Subject::Repositories(sources))
}
