//! `calve bench git`: what each way to clone a repository costs client and server, at the clone and at every later fetch.
//!
//! A small HTTP host (`host`) serves a private copy (`repository`) from loopback. Clients (`client`) clone and fetch, one user pushes
//! (`pusher`), and every request is charged to the operation that made it (`host::ledger`).

mod cases;
mod client;
mod clients;
mod daemon;
mod ground;
mod host;
mod html;
mod json;
mod link;
mod markdown;
pub mod pack_objects;
mod plan;
mod pusher;
mod remote;
mod report;
mod repository;
mod sample;
mod shape;
mod source;
mod table;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use calve_core::Cancel;

use self::cases::{CASES, DAEMON};
pub use self::cases::{Case, Selection};
use self::clients::Clients;
use self::ground::{Ground, Layout, furnish, home};
pub use self::link::Link;
pub use self::plan::Pace;
use self::remote::Server;
pub use self::report::Report;
use self::report::{Described, rows};
use self::repository::{Preparation, Repository};
pub use self::source::{Address, Source};
use super::machine::{Machine, own_peak_memory_bytes, swapped_pages};
use super::place::Place;
use super::runs;
use super::space::Room;
use crate::error::{BenchError, FailureKind};

/// The options of `calve bench git`.
pub struct Setup<'a> {
    /// The repositories or the server to measure.
    pub measured: Measured,
    /// The tests to run, each once in every round.
    pub cases: Vec<&'static Case>,
    /// The branch that all clients use; the one that is checked out there by default.
    pub branch: Option<&'a str>,
    /// The directory that everything is made in.
    pub into: &'a Path,
    /// How many clients do how much.
    pub pace: Pace,
    /// Whether the packs of the server have bitmaps.
    pub bitmaps: bool,
    /// How many commits back `git checkout` and `git blame` go.
    pub back: u32,
    /// The version of git's protocol.
    pub protocol: u8,
    /// A slower link than loopback.
    pub link: Option<Link>,
    /// Whether to clone from `git daemon` as well.
    pub against_daemon: bool,
    /// Called with each line of progress.
    pub say: &'a dyn Fn(&str),
    /// Called with what should be known even by those who want no progress.
    pub warn: &'a dyn Fn(&str),
    /// Ends the bench early.
    pub cancel: &'a Cancel,
}

/// The subjects of a bench.
pub enum Measured {
    /// Copies of these, served by the bench.
    Repositories(Vec<Source>),
    /// A URL, for clones only.
    Server(Address),
}

/// The oldest git whose clones can be measured.
const OLDEST: (u32, u32) = (2, 30);

/// Measures, removes all that was made, and reports.
pub fn run(setup: &Setup<'_>) -> Result<Report, BenchError> {
    let version = git_version()?;
    let machine = Machine::here();
    let began = SystemTime::now();
    let place = Place::make(setup.into, setup.warn)?;
    let base = Report {
        began,
        machine,
        versions: vec![("calve", env!("CARGO_PKG_VERSION").to_owned()), ("git", version)],
        protocol: setup.protocol,
        server: None,
        link: setup.link,
        clients: setup.pace.clients,
        rounds: 0,
        duration: setup.pace.duration,
        fetches: setup.pace.fetches,
        push_every: setup.pace.push_every,
        repositories: Vec::new(),
        rows: Vec::new(),
        broken: Vec::new(),
        accounts: None,
        memory_floor_bytes: 0,
        warnings: Vec::new(),
    };
    let report = furnish(place.path()).and_then(|()| match &setup.measured {
        Measured::Repositories(sources) => repositories(setup, sources, base, &place),
        Measured::Server(address) => server(setup, address, base, &place),
    });
    place.remove()?;
    report
}

fn repositories(
    setup: &Setup<'_>,
    sources: &[Source],
    mut report: Report,
    place: &Place,
) -> Result<Report, BenchError> {
    let (path, cancel) = (place.path(), setup.cancel);
    let scratch = path.join("scratch");
    let clients = Clients::of_the_bench(&home(path), scratch.clone(), cancel);
    let users = Clients::of_the_user(scratch.join("users"), cancel);
    fs_err::create_dir(scratch.join("users"))?;
    let layout = Layout { protocol: setup.protocol, link: setup.link, with_daemon: setup.against_daemon };
    let ground = Ground::prepare(path, &layout, clients, cancel)?;
    // All are checked before any is copied.
    sources.iter().try_for_each(Source::check)?;
    let preparation = Preparation {
        branch: setup.branch,
        bitmaps: setup.bitmaps,
        back: setup.back,
        check_room: &|bytes| check_room(place, bytes, 0),
    };
    let mut repositories = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        (setup.say)(&format!("preparing {}", source.shown()));
        let template = path.join("templates").join(format!("{index}.git"));
        let prepared = Repository::prepare(source, template, &preparation, &ground.clients, &users)?;
        (setup.say)(&format!("{}: {}", prepared.name, prepared.shape.in_words()));
        let (clients, shape) = (u64::from(setup.pace.clients), &prepared.shape);
        let bytes = (shape.number("pack_bytes") + shape.checkout_bytes) * clients;
        check_room(place, bytes, (shape.checkout_files + 1000) * clients)?;
        repositories.push(prepared);
    }
    distinguish(&mut repositories);
    let mut cases = setup.cases.clone();
    if setup.against_daemon {
        cases.push(&DAEMON);
    }
    let (opened, swapped) = (ground.open_accounts(), swapped_pages());
    let (rounds, outcomes) = plan::run(&ground, &repositories, &cases, &setup.pace, setup.say)?;
    report.accounts = Some(ground.close_accounts(&opened));
    drop(ground);
    report.rounds = rounds;
    let mut others = Vec::new();
    for outcome in outcomes {
        let index = repositories.iter().position(|it| std::ptr::eq(it, outcome.repository)).unwrap_or(0);
        others.extend(outcome.others);
        match outcome.broken {
            Some(broken) => report.broken.push((index, outcome.case, broken)),
            None => report.rows.extend(rows(index, outcome.case, outcome.samples, outcome.repository.back)),
        }
    }
    report.repositories = repositories.into_iter().map(described).collect();
    report.memory_floor_bytes = own_peak_memory_bytes().unwrap_or(0);
    let swapped = swapped.and_then(|before| Some(swapped_pages()?.saturating_sub(before)));
    report.warn_of_the_machine(&others, swapped);
    report.warn_of_rows();
    Ok(report)
}

fn described(repository: Repository) -> Described {
    let Repository { name, source, branch, file, back, shape, bitmaps, commit_graph, .. } = repository;
    let in_words = shape.in_words();
    Described {
        name,
        source,
        branch: Some(branch),
        file,
        back,
        shape: shape.numbers,
        in_words,
        bitmaps: Some(bitmaps),
        commit_graph: Some(commit_graph),
    }
}

/// Two of one name get numbers.
fn distinguish(repositories: &mut [Repository]) {
    for index in 1..repositories.len() {
        let (before, rest) = repositories.split_at_mut(index);
        let same = before.iter().filter(|earlier| earlier.name == rest[0].name).count();
        if same > 0 {
            rest[0].name = format!("{} ({})", rest[0].name, same + 1);
        }
    }
}

/// With a little more for what is pushed.
fn check_room(place: &Place, bytes: u64, inodes: u64) -> Result<(), BenchError> {
    runs::check_room(place, Room { bytes: bytes + (8 << 20), inodes: inodes + 1000 })
}

fn server(setup: &Setup<'_>, address: &Address, mut report: Report, place: &Place) -> Result<Report, BenchError> {
    let cancel = setup.cancel;
    let clients = Clients::of_the_user(place.path().join("scratch"), cancel);
    let server =
        Server { address, branch: setup.branch, protocol: setup.protocol, clients, place: place.path(), cancel };
    let cases: Vec<&'static Case> = setup.cases.iter().copied().filter(|case| case.fetch.is_none()).collect();
    let swapped = swapped_pages();
    let (rounds, outcomes) = server.run(&cases, &setup.pace, setup.say)?;
    report.rounds = rounds;
    report.clients = 1;
    report.server = Some(address.shown());
    report.repositories = vec![Described {
        name: address.name(),
        source: address.shown(),
        branch: setup.branch.map(str::to_owned),
        file: None,
        back: 0,
        shape: serde_json::Map::new(),
        in_words: String::new(),
        bitmaps: None,
        commit_graph: None,
    }];
    for outcome in outcomes {
        match outcome.broken {
            Some(broken) => report.broken.push((0, outcome.case, broken)),
            None => report.rows.extend(rows(0, outcome.case, outcome.samples, 0)),
        }
    }
    let swapped = swapped.and_then(|before| Some(swapped_pages()?.saturating_sub(before)));
    report.warn_of_the_machine(&[], swapped);
    report.warn_of_rows();
    Ok(report)
}

/// The tests that are wanted when nothing is said.
pub fn all_cases() -> Vec<&'static Case> {
    CASES.iter().collect()
}

/// Where everything is made when nothing is said.
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
            Err(BenchError::stated(FailureKind::Failed, text, "install git 2.30 or later"))
        }
        _ => Ok(version),
    }
}

/// For commands that have no test left to run.
pub fn check_selection(cases: &[&'static Case], on_a_server: bool) -> Result<(), BenchError> {
    if on_a_server && cases.iter().all(|case| case.fetch.is_some()) {
        let text = "none of these tests can be run on a server of others: T5 to T10 push to it";
        return Err(BenchError::stated(FailureKind::Usage, text, "choose from T1 to T4 with `--tests`"));
    }
    Ok(())
}
