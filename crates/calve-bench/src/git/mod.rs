//! `calve bench git`: the cost of each way to clone, for client and server, at the clone and at every later fetch.
//!
//! Clients (`client`) clone and fetch from a private copy (`repository`), while one user pushes (`pushes`). The server is
//! `git upload-pack`, which each client starts as it would over SSH, by a stand-in that reports the cost (`upload_pack`).

mod cases;
mod client;
mod programs;
mod pushes;
mod report;
mod repository;
mod source;
mod upload_pack;

use std::time::SystemTime;

pub use self::cases::CaseSelection;
use self::cases::{CASES, Case};
use self::client::StopReason;
use self::programs::GitPrograms;
use self::report::CaseResult;
use self::repository::Repository;
pub use self::source::Source;
pub use self::upload_pack::when_asked;
use crate::error::BenchError;
use crate::machine;
use crate::remedy::Remedy;
use crate::report::Report;
use crate::runs::{self, take_turns};
use crate::scratch::{Room, Scratch};
use crate::setup::{BenchSetup, Rounds};

/// The oldest git whose clones can be measured.
const OLDEST: (u32, u32) = (2, 30);

/// Measures copies of the repositories by the chosen tests, or all, once in every round.
pub fn run(
    setup: &BenchSetup<'_>,
    rounds: Rounds,
    sources: &[Source],
    chosen: Option<&CaseSelection>,
) -> Result<Report, BenchError> {
    let cases = chosen.map_or_else(|| CASES.iter().collect(), |CaseSelection(cases)| cases.clone());
    let version = git_version()?;
    let (machine, began) = (machine::here(), SystemTime::now());
    setup.in_scratch(|scratch| {
        let (repositories, results, rounds) = measure(setup, rounds, sources, &cases, scratch)?;
        let mut report = Report::new("git", began, machine);
        report.versions([("calve".into(), env!("CARGO_PKG_VERSION").into()), ("git".into(), version)]);
        report::complete(&mut report, &repositories, results, rounds);
        Ok(report)
    })
}

fn measure(
    setup: &BenchSetup<'_>,
    rounds: Rounds,
    sources: &[Source],
    cases: &[&'static Case],
    scratch: &Scratch<'_>,
) -> Result<(Vec<Repository>, Vec<CaseResult>, u32), BenchError> {
    let (path, cancel, say) = (&scratch.path, setup.cancel, setup.say);
    fs_err::create_dir(path.join("home"))?;
    let git = GitPrograms::configure(path.join("home"), cancel)?;
    // All are checked before any is copied.
    sources.iter().try_for_each(Source::check)?;
    let mut repositories = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        say(&format!("preparing {}", source.shown()));
        let directory = path.join(index.to_string());
        fs_err::create_dir(&directory)?;
        repositories.push(Repository::prepare(source, &directory, &git, &|bytes, inodes| {
            // The pushes add a little.
            runs::check_room(scratch, Room { bytes: bytes + (8 << 20), inodes: inodes + 1000 })
        })?);
    }
    distinguish(&mut repositories);
    let pairs = (0..repositories.len()).flat_map(|repository| cases.iter().map(move |case| (repository, *case)));
    let result = |(repository, case)| CaseResult { repository, case, samples: Vec::new(), failure: None };
    let mut results: Vec<CaseResult> = pairs.map(result).collect();
    let rounds = take_turns(results.len(), rounds, |index, round| {
        let result = &mut results[index];
        let repository = &repositories[result.repository];
        let name = if repositories.len() > 1 { repository.about.name.as_str() } else { "" };
        let before = result.samples.len();
        match client::run(&git, scratch, repository, result.case, round, cancel) {
            Ok(samples) => result.samples.extend(samples),
            Err(StopReason::Step(failure)) => result.failure = Some(*failure),
            Err(StopReason::Failure(failure)) => return Err(failure),
        }
        say(&result.progress(before, round, name, &repository.about));
        Ok(result.failure.is_none())
    })?;
    Ok((repositories, results, rounds))
}

/// Adds numbers to equal names of repositories.
fn distinguish(repositories: &mut [Repository]) {
    for index in 1..repositories.len() {
        let (before, rest) = repositories.split_at_mut(index);
        let name = &mut rest[0].about.name;
        let same = before.iter().filter(|earlier| earlier.about.name == *name).count();
        if same > 0 {
            *name = format!("{name} ({})", same + 1);
        }
    }
}

fn git_version() -> Result<String, BenchError> {
    let output =
        std::process::Command::new("git").arg("version").output().map_err(|error| programs::not_started(&error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.trim().trim_start_matches("git version ").to_owned();
    let mut numbers = version.split('.').map_while(|digits| digits.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) if (major, minor) < OLDEST => {
            let text = format!("git {version} is too old: its clones lack what is to be measured");
            Err(BenchError::failed(text, Remedy::InstallGit))
        }
        _ => Ok(version),
    }
}
