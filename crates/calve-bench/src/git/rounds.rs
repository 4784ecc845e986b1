//! The runs: in each round every test of every repository once, in another order each time, each with the server as it was at first.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use calve_core::CancelToken;

use super::cases::Case;
use super::client::{Client, StepFailure, StopReason};
use super::pusher::Pusher;
use super::repository::Repository;
use super::sample::{Sample, Step};
use super::testbed::Testbed;
use crate::error::BenchError;
use crate::machine::{Clocks, own_user_seconds};
use crate::report::shown;
use crate::runs::shuffled;
use crate::scratch::delete;
use crate::setup::Rounds;
use crate::setup::check_cancelled;
use crate::stats::median;

#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// How many clients work at once.
    pub clients: u32,
    /// How many rounds, with each test once in each.
    pub rounds: Rounds,
}

/// Fetches after each clone.
pub(super) const FETCHES: u32 = 3;
/// Interval of the pushes that no fetch waits for.
pub(super) const PUSH_EVERY: Duration = Duration::from_secs(2);

/// The result of one test of one repository.
pub(super) struct CaseResult {
    /// Its position in the report.
    pub(super) repository: usize,
    pub(super) case: &'static Case,
    pub(super) samples: Vec<Sample>,
    pub(super) failure: Option<StepFailure>,
    /// The number of processors that others kept busy, for each block of runs that was long enough to tell.
    pub(super) others: Vec<f64>,
}

/// Runs each test of each repository once in every round, by `block`, in another order each time. Returns the number of rounds, and what
/// the tests came to, in the order of the repositories and tests.
pub(super) fn run(
    repositories: &[&str],
    cases: &[&'static Case],
    pace: &Pace,
    say: &dyn Fn(&str),
    mut block: impl FnMut(&mut CaseResult, u32) -> Result<(), BenchError>,
) -> Result<(u32, Vec<CaseResult>), BenchError> {
    let pairs = (0..repositories.len()).flat_map(|repository| cases.iter().map(move |case| (repository, *case)));
    let outcome =
        |(repository, case)| CaseResult { repository, case, samples: Vec::new(), failure: None, others: Vec::new() };
    let mut outcomes: Vec<CaseResult> = pairs.map(outcome).collect();
    let began = Instant::now();
    let mut rounds = 0;
    while pace.rounds.another(rounds, began.elapsed()) && outcomes.iter().any(|outcome| outcome.failure.is_none()) {
        rounds += 1;
        for index in shuffled(outcomes.len(), u64::from(rounds)) {
            let outcome = &mut outcomes[index];
            if outcome.failure.is_none() {
                let before = outcome.samples.len();
                block(outcome, rounds)?;
                let name = if repositories.len() > 1 { repositories[outcome.repository] } else { "" };
                say(&progress(outcome, before, rounds, name));
            }
        }
    }
    Ok((rounds, outcomes))
}

fn progress(outcome: &CaseResult, before: usize, round: u32, repository: &str) -> String {
    let case = format!("{} ({})", outcome.case.name, outcome.case.in_words());
    let head = format!("round {round}  {}", [repository, &case].join(" ").trim_start());
    if let Some(failure) = &outcome.failure {
        return format!("{head}: {} failed: {}", failure.command, failure.reason.text);
    }
    let steps = Step::ALL.into_iter().filter_map(|step| {
        let times: Vec<f64> = outcome.samples[before..]
            .iter()
            .filter(|sample| sample.step == step)
            .map(|sample| sample.usage.seconds)
            .collect();
        Some(format!("{} {}", step.name(), shown(median(&times)?)))
    });
    format!("{head}: {}", steps.collect::<Vec<_>>().join(", "))
}

/// Makes the clients of one test work, while one user pushes.
pub(super) fn serve(
    testbed: &Testbed<'_>,
    repository: &Repository,
    outcome: &mut CaseResult,
    round: u32,
    pace: &Pace,
) -> Result<(), BenchError> {
    let case = outcome.case;
    let (served, name) = testbed.new_served();
    let pushing = testbed.new_path("pusher");
    copy(testbed, &repository.template, &served)?;
    copy(testbed, &repository.template, &pushing)?;
    let operation = testbed.next_operation();
    let seed = u64::from(round) << 32;
    let url = testbed.url(&name);
    let (clients, branch) = (&testbed.clients, &repository.branch);
    let pusher = Pusher::new(clients, pushing.clone(), branch, url, operation, seed)?;
    // So that every clone sees the server with something pushed since it was packed.
    pusher.push()?;
    let (clocks, user, began) = (Clocks::now(), own_user_seconds(), Instant::now());
    let samples = Mutex::new(Vec::new());
    let client = Client {
        testbed,
        repository,
        case,
        url: testbed.url(&name),
        pusher: &pusher,
        round,
        note: &|sample| samples.lock().unwrap_or_else(PoisonError::into_inner).push(sample),
    };
    let worked = work(&client, pace, testbed.cancel);
    let others = clocks
        .zip(user)
        .and_then(|(clocks, user)| clocks.others_since(began.elapsed().as_secs_f64(), own_user_seconds()? - user));
    outcome.others.extend(others);
    testbed.take_pushes(operation);
    outcome.samples.append(&mut samples.into_inner().unwrap_or_else(PoisonError::into_inner));
    match worked {
        Ok(()) => {}
        Err(StopReason::Step(failure)) => outcome.failure = Some(failure),
        Err(StopReason::Failure(failure)) => return Err(failure),
    }
    delete(&served, testbed.cancel)?;
    delete(&pushing, testbed.cancel)
}

/// Has each client work once.
fn work(client: &Client<'_>, pace: &Pace, cancel: &CancelToken) -> Result<(), StopReason> {
    let one = || {
        let done = client.iteration();
        check_cancelled(cancel)?;
        done
    };
    thread::scope(|scope| {
        let pushing = scope.spawn(|| client.pusher.work());
        let working: Vec<_> = (0..pace.clients).map(|_| scope.spawn(one)).collect();
        let mut all: Result<(), StopReason> = Ok(());
        for client in working {
            let done = client
                .join()
                .unwrap_or_else(|_| Err(StopReason::Failure(std::io::Error::other("a client panicked").into())));
            // An error of the bench comes before those of git that it caused.
            all = match (all, done) {
                (Err(StopReason::Failure(first)), _) => Err(StopReason::Failure(first)),
                (_, Err(failed @ StopReason::Failure(_))) => Err(failed),
                (all, done) => all.and(done),
            };
        }
        client.pusher.stop();
        let pushed = pushing.join().unwrap_or_else(|_| Err(std::io::Error::other("the pusher panicked").into()));
        match (pushed, all) {
            (Err(failure), _) | (_, Err(StopReason::Failure(failure))) => Err(StopReason::Failure(failure)),
            (Ok(()), all) => all,
        }
    })
}

/// Makes a bare clone that shares the template's packs as hard links: git never writes to a pack.
fn copy(testbed: &Testbed<'_>, template: &Path, to: &Path) -> Result<(), BenchError> {
    let mut command = testbed.clients.git(template, None);
    command.args(["clone", "--quiet", "--bare", "--local", "--template=", "--"]).arg(template).arg(to);
    testbed.clients.output(&mut command, "copying the repository for the server").map(drop)
}
