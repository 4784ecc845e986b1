//! `calve bench git`: what each way to clone a repository costs client and server, at the clone and at every later fetch.
//!
//! A small HTTP host (`host`) serves a private copy (`repository`) from loopback. Clients (`client`) clone and fetch, one user pushes
//! (`pusher`), and every request is charged to the operation that made it (`host::ledger`).

mod cases;
mod client;
mod clients;
pub mod host;
pub mod pack_objects;
mod pusher;
mod remote;
mod report;
mod repository;
mod rounds;
mod sample;
mod shape;
mod source;
mod testbed;

use std::path::PathBuf;
use std::time::SystemTime;

use calve_receipt::bench::GitRepository;

use self::cases::CASES;
pub use self::cases::{Case, CaseSelection};
use self::clients::Clients;
use self::remote::Server;
use self::report::Measurement;
use self::repository::{Preparation, Repository};
pub use self::rounds::Pace;
pub use self::source::{GitAddress, Source};
use self::testbed::{Testbed, furnish, home};
use crate::error::{BenchError, FailureKind};
use crate::machine::{self, swapped_pages};
use crate::remedy::Remedy;
use crate::report::Report;
use crate::runs;
use crate::scratch::Scratch;
use crate::setup::BenchSetup;
use crate::space::Room;

/// The options of `calve bench git`.
pub struct GitBench<'a> {
    /// Where, and for whom.
    pub setup: BenchSetup<'a>,
    /// The repositories or the server to measure.
    pub subject: Subject,
    /// The tests to run, each once in every round.
    pub cases: Vec<&'static Case>,
    /// The branch that all clients use; the one that is checked out there by default.
    pub branch: Option<&'a str>,
    /// How many clients do how much.
    pub pace: Pace,
}

/// The subjects of a bench.
pub enum Subject {
    /// Copies of these, served by the bench.
    Repositories(Vec<Source>),
    /// A URL, for clones only.
    Server(GitAddress),
}

/// The oldest git whose clones can be measured.
const OLDEST: (u32, u32) = (2, 30);

impl GitBench<'_> {
    /// Measures, removes all that was made, and reports.
    pub fn run(&self) -> Result<Report, BenchError> {
        let version = git_version()?;
        let (machine, began) = (machine::here(), SystemTime::now());
        self.setup.in_scratch(|scratch| {
            furnish(scratch.path())?;
            let measurement = match &self.subject {
                Subject::Repositories(sources) => self.measure_repositories(sources, scratch)?,
                Subject::Server(address) => self.measure_server(address, scratch)?,
            };
            let mut report = Report::new("git", began, machine);
            report.versions([("calve".into(), env!("CARGO_PKG_VERSION").into()), ("git".into(), version)]);
            report::complete(&mut report, self, measurement);
            Ok(report)
        })
    }

    fn measure_repositories(&self, sources: &[Source], scratch: &Scratch<'_>) -> Result<Measurement, BenchError> {
        let (path, cancel, say) = (scratch.path(), self.setup.cancel, self.setup.say);
        let for_input = path.join("scratch");
        let clients = Clients::of_the_bench(&home(path), for_input.clone(), cancel);
        let users = Clients::of_the_user(for_input.join("users"), cancel);
        fs_err::create_dir(for_input.join("users"))?;
        let testbed = Testbed::prepare(path, clients, cancel)?;
        // All are checked before any is copied.
        sources.iter().try_for_each(Source::check)?;
        let preparation = Preparation { branch: self.branch, check_room: &|bytes| check_room(scratch, bytes, 0) };
        let mut repositories = Vec::new();
        for (index, source) in sources.iter().enumerate() {
            say(&format!("preparing {}", source.shown()));
            let template = path.join("templates").join(format!("{index}.git"));
            let prepared = Repository::prepare(source, template, &preparation, &testbed.clients, &users)?;
            say(&format!("{}: {}", prepared.name, prepared.shape.in_words()));
            let (clients, shape) = (u64::from(self.pace.clients), &prepared.shape);
            let bytes = (shape.number("pack_bytes") + shape.checkout_bytes) * clients;
            check_room(scratch, bytes, (shape.checkout_files + 1000) * clients)?;
            repositories.push(prepared);
        }
        distinguish(&mut repositories);
        let (opening, swapped_before) = (testbed.open_accounts(), swapped_pages());
        let names: Vec<&str> = repositories.iter().map(|repository| repository.name.as_str()).collect();
        let (rounds, outcomes) = rounds::run(&names, &self.cases, &self.pace, say, |outcome, round| {
            rounds::serve(&testbed, &repositories[outcome.repository], outcome, round, &self.pace)
        })?;
        let accounting = Some(testbed.close_accounts(&opening));
        let repositories = repositories.into_iter().map(described).collect();
        Ok(Measurement { repositories, outcomes, rounds, server: None, accounting, swapped_before })
    }

    fn measure_server(&self, address: &GitAddress, scratch: &Scratch<'_>) -> Result<Measurement, BenchError> {
        let (directory, cancel) = (scratch.path(), self.setup.cancel);
        let clients = Clients::of_the_user(directory.join("scratch"), cancel);
        let server = Server { address, branch: self.branch, clients, directory, cancel };
        let cases: Vec<&'static Case> = self.cases.iter().copied().filter(|case| case.fetch.is_none()).collect();
        let swapped_before = swapped_pages();
        let name = address.name();
        let (rounds, outcomes) =
            rounds::run(&[&name], &cases, &self.pace, self.setup.say, |outcome, round| server.measure(outcome, round))?;
        let about = GitRepository {
            name,
            source: address.shown(),
            branch: self.branch.map(str::to_owned),
            file: None,
            back: 0,
            bitmaps: None,
            commit_graph: None,
            shape: None,
        };
        let (repositories, server) = (vec![(about, String::new())], Some(address.shown()));
        Ok(Measurement { repositories, outcomes, rounds, server, accounting: None, swapped_before })
    }
}

fn described(repository: Repository) -> (GitRepository, String) {
    let Repository { name, source, branch, file, back, shape, bitmaps, commit_graph, .. } = repository;
    let in_words = shape.in_words();
    let (branch, bitmaps, commit_graph) = (Some(branch), Some(bitmaps), Some(commit_graph));
    let about = GitRepository { name, source, branch, file, back, bitmaps, commit_graph, shape: Some(shape.numbers) };
    (about, in_words)
}

/// Adds numbers to the names of repositories that are called the same.
fn distinguish(repositories: &mut [Repository]) {
    for index in 1..repositories.len() {
        let (before, rest) = repositories.split_at_mut(index);
        let same = before.iter().filter(|earlier| earlier.name == rest[0].name).count();
        if same > 0 {
            rest[0].name = format!("{} ({})", rest[0].name, same + 1);
        }
    }
}

/// Fails without room for the repositories, and for a little more that is pushed.
fn check_room(scratch: &Scratch<'_>, bytes: u64, inodes: u64) -> Result<(), BenchError> {
    runs::check_room(scratch, Room { bytes: bytes + (8 << 20), inodes: inodes + 1000 })
}

/// Returns the tests that are wanted when nothing is said.
pub fn all_cases() -> Vec<&'static Case> {
    CASES.iter().collect()
}

/// Returns where everything is made when nothing is said.
pub fn usual_place() -> PathBuf {
    std::env::temp_dir()
}

fn git_version() -> Result<String, BenchError> {
    let output =
        std::process::Command::new("git").arg("version").output().map_err(|error| clients::not_started(&error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.trim().trim_start_matches("git version ").to_owned();
    let mut numbers = version.split('.').map_while(|digits| digits.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) if (major, minor) < OLDEST => {
            let text = format!("git {version} is too old: its clones lack what is to be measured");
            Err(BenchError::stated(FailureKind::Failed, text, Remedy::InstallGit))
        }
        _ => Ok(version),
    }
}

/// Fails for a choice that has no test left to run on a server of others.
pub fn check_selection(cases: &[&'static Case], on_a_server: bool) -> Result<(), BenchError> {
    if on_a_server && cases.iter().all(|case| case.fetch.is_some()) {
        let text = "none of these tests can be run on a server of others: T5 to T10 push to it";
        return Err(BenchError::stated(FailureKind::Usage, text, Remedy::ChooseServerTests));
    }
    Ok(())
}
