//! `calve bench git`: what each way to clone a repository costs client and server, at the clone and at every later fetch.
//!
//! A small HTTP host (`host`) serves a private copy (`repository`) from loopback. Clients (`client`) clone and fetch, one user pushes
//! (`pusher`), and every request is charged to the operation that made it (`host::ledger`).

pub(crate) mod cases;
mod client;
pub(crate) mod clients;
mod daemon;
mod ground;
mod host;
pub(crate) mod html;
pub(crate) mod json;
pub(crate) mod link;
pub(crate) mod markdown;
pub(crate) mod pack_objects;
pub(crate) mod plan;
mod pusher;
pub(crate) mod remote;
pub(crate) mod report;
mod repository;
mod sample;
mod shape;
pub(crate) mod source;
mod table;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use calve_core::Cancel;

use self::cases::{CASES, Case, DAEMON};
use self::clients::Clients;
use self::ground::{Ground, Layout, furnish, home};
use self::link::Link;
use self::plan::Pace;
use self::remote::Server;
use self::report::{Described, Report, rows};
use self::repository::{Preparation, Repository};
use self::source::{Address, Source};
use super::machine::{Machine, own_peak_memory_bytes, swapped_pages};
use super::place::Place;
use super::runs;
use super::space::Room;
use crate::failure::{FAILED, Failure, USAGE};

/// What is asked for.
pub(crate) struct Wish<'a> {
    pub(crate) measured: Measured,
    pub(crate) cases: Vec<&'static Case>,
    pub(crate) branch: Option<&'a str>,
    pub(crate) into: &'a Path,
    pub(crate) pace: Pace,
    pub(crate) bitmaps: bool,
    pub(crate) back: u32,
    pub(crate) protocol: u8,
    pub(crate) link: Option<Link>,
    pub(crate) against_daemon: bool,
    pub(crate) say: &'a dyn Fn(&str),
    pub(crate) cancel: &'a Cancel,
}

pub(crate) enum Measured {
    /// Copies of these, served by the bench.
    Repositories(Vec<Source>),
    /// A URL, for clones only.
    Server(Address),
}

/// The oldest git whose clones can be measured.
const OLDEST: (u32, u32) = (2, 30);

/// Measures, removes all that was made, and reports.
pub(crate) fn run(wish: &Wish<'_>) -> Result<Report, Failure> {
    let version = git_version()?;
    let machine = Machine::here();
    let began = SystemTime::now();
    let place = Place::make(wish.into)?;
    let base = Report {
        began,
        machine,
        versions: vec![("calve", env!("CARGO_PKG_VERSION").to_owned()), ("git", version)],
        protocol: wish.protocol,
        server: None,
        link: wish.link,
        clients: wish.pace.clients,
        rounds: 0,
        duration: wish.pace.duration,
        fetches: wish.pace.fetches,
        push_every: wish.pace.push_every,
        repositories: Vec::new(),
        rows: Vec::new(),
        broken: Vec::new(),
        accounts: None,
        memory_floor_bytes: 0,
        warnings: Vec::new(),
    };
    let report = furnish(place.path()).and_then(|()| match &wish.measured {
        Measured::Repositories(sources) => repositories(wish, sources, base, &place),
        Measured::Server(address) => server(wish, address, base, &place),
    });
    place.remove()?;
    report
}

fn repositories(wish: &Wish<'_>, sources: &[Source], mut report: Report, place: &Place) -> Result<Report, Failure> {
    let (path, cancel) = (place.path(), wish.cancel);
    let scratch = path.join("scratch");
    let clients = Clients::of_the_bench(&home(path), scratch.clone(), cancel);
    let users = Clients::of_the_user(scratch.join("users"), cancel);
    fs_err::create_dir(scratch.join("users"))?;
    let layout = Layout { protocol: wish.protocol, link: wish.link, with_daemon: wish.against_daemon };
    let ground = Ground::prepare(path, &layout, clients, cancel)?;
    // All are checked before any is copied.
    sources.iter().try_for_each(Source::check)?;
    let preparation = Preparation {
        branch: wish.branch,
        bitmaps: wish.bitmaps,
        back: wish.back,
        check_room: &|bytes| check_room(place, bytes, 0),
    };
    let mut repositories = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        (wish.say)(&format!("preparing {}", source.shown()));
        let template = path.join("templates").join(format!("{index}.git"));
        let prepared = Repository::prepare(source, template, &preparation, &ground.clients, &users)?;
        (wish.say)(&format!("{}: {}", prepared.name, prepared.shape.in_words()));
        let (clients, shape) = (u64::from(wish.pace.clients), &prepared.shape);
        let bytes = (shape.number("pack_bytes") + shape.checkout_bytes) * clients;
        check_room(place, bytes, (shape.checkout_files + 1000) * clients)?;
        repositories.push(prepared);
    }
    distinguish(&mut repositories);
    let mut cases = wish.cases.clone();
    if wish.against_daemon {
        cases.push(&DAEMON);
    }
    let (opened, swapped) = (ground.open_accounts(), swapped_pages());
    let (rounds, outcomes) = plan::run(&ground, &repositories, &cases, &wish.pace, wish.say)?;
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
fn check_room(place: &Place, bytes: u64, inodes: u64) -> Result<(), Failure> {
    runs::check_room(place, Room { bytes: bytes + (8 << 20), inodes: inodes + 1000 })
}

fn server(wish: &Wish<'_>, address: &Address, mut report: Report, place: &Place) -> Result<Report, Failure> {
    let cancel = wish.cancel;
    let clients = Clients::of_the_user(place.path().join("scratch"), cancel);
    let server = Server { address, branch: wish.branch, protocol: wish.protocol, clients, place: place.path(), cancel };
    let cases: Vec<&'static Case> = wish.cases.iter().copied().filter(|case| case.fetch.is_none()).collect();
    let swapped = swapped_pages();
    let (rounds, outcomes) = server.run(&cases, &wish.pace, wish.say)?;
    report.rounds = rounds;
    report.clients = 1;
    report.server = Some(address.shown());
    report.repositories = vec![Described {
        name: address.name(),
        source: address.shown(),
        branch: wish.branch.map(str::to_owned),
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
pub(crate) fn all_cases() -> Vec<&'static Case> {
    CASES.iter().collect()
}

/// Where everything is made when nothing is said.
pub(crate) fn usual_place() -> PathBuf {
    std::env::temp_dir()
}

fn git_version() -> Result<String, Failure> {
    let output =
        std::process::Command::new("git").arg("version").output().map_err(|error| clients::not_started(&error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.trim().trim_start_matches("git version ").to_owned();
    let mut numbers = version.split('.').map_while(|digits| digits.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) if (major, minor) < OLDEST => {
            let text = format!("git {version} is too old: its clones lack what is to be measured");
            Err(Failure::stated(FAILED, text, "install git 2.30 or later"))
        }
        _ => Ok(version),
    }
}

/// For commands that have no test left to run.
pub(crate) fn check_selection(cases: &[&'static Case], on_a_server: bool) -> Result<(), Failure> {
    if on_a_server && cases.iter().all(|case| case.fetch.is_some()) {
        let text = "none of these tests can be run on a server of others: T5 to T10 push to it";
        return Err(Failure::stated(USAGE, text, "choose of T1 to T4 with `--tests`"));
    }
    Ok(())
}
