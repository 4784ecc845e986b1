//! The numbers of the published experiment, and what they say of each recipe.
//!
//! "Git clone: a data-driven study on cloning behaviors", the GitHub blog, December 2020: git 2.28, a server with 8 cores, 30 minutes
//! of load, while one user pushed changes to three random files. Wall time of the client, and CPU time of the server.

use std::fmt;

use super::Purpose;
use crate::advise::spoken;
use crate::advise::{Cost, Numbers, RepositoryCosts, Test};

/// Wall time and server CPU of T1 to T4; then wall time, reset and server CPU of T5 to T10. All in milliseconds.
type Row = (&'static str, [(f64, f64); 4], [(f64, f64, f64); 6]);

const SECOND: f64 = 1000.0;
const MINUTE: f64 = 60_000.0;

const ROWS: [Row; 3] = [
    (
        "jquery",
        [(2000.0, 450.0), (300.0, 15.0), (900.0, 270.0), (900.0, 300.0)],
        [
            (200.0, 5.0, 4.0),
            (300.0, 5.0, 18.0),
            (200.0, 5.0, 4.0),
            (250.0, 5.0, 14.0),
            (200.0, 85.0, 9.0),
            (200.0, 40.0, 6.0),
        ],
    ),
    (
        "swift",
        [
            (50.0 * SECOND, 8.0 * SECOND),
            (8.0 * SECOND, 3.0 * SECOND),
            (16.0 * SECOND, 13.0 * SECOND),
            (22.0 * SECOND, 15.0 * SECOND),
        ],
        [
            (350.0, 80.0, 20.0),
            (1500.0, 80.0, 300.0),
            (300.0, 80.0, 20.0),
            (350.0, 80.0, 45.0),
            (300.0, 300.0, 70.0),
            (300.0, 150.0, 35.0),
        ],
    ),
    (
        "linux",
        [
            (5.0 * MINUTE, 60.0 * SECOND),
            (1.2 * MINUTE, 40.0 * SECOND),
            (2.4 * MINUTE, 120.0 * SECOND),
            (3.0 * MINUTE, 130.0 * SECOND),
        ],
        [
            (350.0, 250.0, 40.0),
            (6000.0, 250.0, 1000.0),
            (300.0, 250.0, 50.0),
            (400.0, 250.0, 80.0),
            (350.0, 1250.0, 400.0),
            (300.0, 500.0, 140.0),
        ],
    ),
];

/// Returns the published numbers.
pub fn numbers() -> Numbers {
    let repositories = ROWS.iter().map(|(name, clones, fetches)| {
        let clones =
            clones.iter().map(|(wall, cpu)| Cost { wall_ms: *wall, reset_ms: None, server_cpu_ms: Some(*cpu) });
        let fetches = fetches.iter().map(|(wall, reset, cpu)| Cost {
            wall_ms: *wall,
            reset_ms: Some(*reset),
            server_cpu_ms: Some(*cpu),
        });
        RepositoryCosts {
            repository: (*name).into(),
            costs: Test::ALL.into_iter().zip(clones.chain(fetches)).collect(),
        }
    });
    let source = "published in 2020: git 2.28, a server with 8 cores, 30 minutes of load";
    Numbers { source: source.into(), repositories: repositories.collect() }
}

/// Describes the published cost of a test: "50.0 s and 8.0 s of server CPU".
fn of(repository: usize, test: Test) -> String {
    let (_, clones, fetches) = &ROWS[repository];
    let index = test as usize;
    let (wall, cpu) = match clones.get(index) {
        Some(clone) => *clone,
        None => {
            let (wall, reset, cpu) = fetches[index - clones.len()];
            (wall + reset, cpu)
        }
    };
    format!("{} and {} of server CPU", spoken(wall), spoken(cpu))
}

const SWIFT: usize = 1;

/// Why a command is the right one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reason {
    /// The reason, in a few words.
    pub text: String,
    /// The measurements that it stands on.
    pub numbers: String,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.numbers)
    }
}

fn reason(text: &str, numbers: String) -> Reason {
    Reason { text: text.to_owned(), numbers: format!("published, swift: {numbers}") }
}

/// Says why a purpose has the recipe that it has.
pub(crate) fn recipe_reason(purpose: Purpose, sparsely: bool) -> Reason {
    let swift = |test| of(SWIFT, test);
    match purpose {
        Purpose::Dev if sparsely => reason(
            "few directories of a repository that stays: all commits and trees, and contents only of what is checked out",
            format!("a blobless clone {}, a full one {}", swift(Test::T4), swift(Test::T1)),
        ),
        Purpose::Dev => reason(
            "a clone that stays: the full one costs most once, and fetches into it cost least",
            format!(
                "a fetch {}, into a blobless clone {}, into a treeless one {}",
                swift(Test::T5),
                swift(Test::T10),
                swift(Test::T9)
            ),
        ),
        Purpose::Ci => reason(
            "one commit, thrown away: nothing is cheaper than a shallow clone, as long as nobody fetches into it; it has no tags and no history, \
             so that `git describe` needs `--for history`",
            format!("{}, a full clone {}", swift(Test::T2), swift(Test::T1)),
        ),
        Purpose::History => reason(
            "history without the old contents: all commits and trees, so that logs and merge bases need no server",
            format!(
                "{}, a full clone {}; treeless is {}, and asks the server for every tree that is looked at",
                swift(Test::T4),
                swift(Test::T1),
                swift(Test::T3)
            ),
        ),
        Purpose::Blobs => reason(
            "large contents stay on the server until they are checked out, and fetches cost about as much as in a full clone",
            format!(
                "{}, a full clone {}; fetches {}, in a full clone {}",
                swift(Test::T4),
                swift(Test::T1),
                swift(Test::T10),
                swift(Test::T5)
            ),
        ),
    }
}

/// Returns why `fetch --depth` is refused in a clone that has its whole history.
pub(crate) fn depth_in_a_full_clone() -> String {
    let costs = ROWS
        .iter()
        .enumerate()
        .map(|(index, (name, ..))| format!("{name}: {} instead of {}", of(index, Test::T6), of(index, Test::T5)));
    format!(
        "`git fetch --depth` in a clone that has its history makes the server work out and send what is already here, and cuts the history off \
         (published, with the reset: {})",
        costs.collect::<Vec<_>>().join("; ")
    )
}

/// Says why a fetch is done as it is done.
pub(crate) fn fetch_reason(shallow: bool, filter: Option<&str>, with_depth: bool) -> Reason {
    let swift = |test| of(SWIFT, test);
    match (shallow, filter, with_depth) {
        (true, _, true) => reason(
            "`git fetch --depth` in a shallow clone has the server count again what is here",
            format!("{}; without it {}", swift(Test::T8), swift(Test::T7)),
        ),
        (true, _, false) => reason(
            "a shallow clone is fetched into without a depth: only what is new comes",
            format!("{}; with it {}", swift(Test::T7), swift(Test::T8)),
        ),
        (false, _, true) => reason("forced", format!("{}; without a depth {}", swift(Test::T6), swift(Test::T5))),
        (false, Some("tree:0"), false) => reason(
            "a treeless clone asks for trees with every fetch",
            format!("{}; a blobless one {}", swift(Test::T9), swift(Test::T10)),
        ),
        (false, Some(_), false) => {
            reason("a partial clone is fetched into in full; contents come when they are checked out", swift(Test::T10))
        }
        (false, None, false) => reason("a full clone is fetched into in full: nothing is cheaper", swift(Test::T5)),
    }
}
