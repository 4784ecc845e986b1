//! The published numbers that `calve git advise` uses without a measurement of the user's.
//!
//! "Git clone: a data-driven study on cloning behaviors", the GitHub blog, December 2020: git 2.28, a server with 8 cores, 30 minutes
//! of load, while one user pushed changes to three random files. Wall time of the client, and CPU time of the server.

use crate::advise::{Cost, Numbers, RepositoryCosts, Test};

/// Wall time and server CPU of T1 to T4; then wall time, reset and server CPU of T5 to T10. All in milliseconds.
type PublishedRow = (&'static str, [(f64, f64); 4], [(f64, f64, f64); 6]);

const SECOND: f64 = 1000.0;
const MINUTE: f64 = 60_000.0;

const ROWS: [PublishedRow; 3] = [
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
