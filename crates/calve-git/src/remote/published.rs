//! Published numbers, for `calve git advise` without a measurement of the user's.
//!
//! "Git clone: a data-driven study on cloning behaviors", GitHub blog, December 2020: git 2.28, a server with 8 cores,
//! 30 minutes of load, while one user pushed changes to three random files. Wall time of the client, CPU of the server.

use strum::VariantArray as _;

use crate::advise::{Cost, Numbers, RepositoryCosts, Test};

const REPOSITORIES: [&str; 3] = ["jquery", "swift", "linux"];

/// Wall time, reset and server CPU of each test in each repository, in milliseconds.
const ROWS: [[(f64, Option<f64>, f64); 3]; 10] = [
    [(2000.0, None, 450.0), (50_000.0, None, 8000.0), (300_000.0, None, 60_000.0)],
    [(300.0, None, 15.0), (8000.0, None, 3000.0), (72_000.0, None, 40_000.0)],
    [(900.0, None, 270.0), (16_000.0, None, 13_000.0), (144_000.0, None, 120_000.0)],
    [(900.0, None, 300.0), (22_000.0, None, 15_000.0), (180_000.0, None, 130_000.0)],
    [(200.0, Some(5.0), 4.0), (350.0, Some(80.0), 20.0), (350.0, Some(250.0), 40.0)],
    [(300.0, Some(5.0), 18.0), (1500.0, Some(80.0), 300.0), (6000.0, Some(250.0), 1000.0)],
    [(200.0, Some(5.0), 4.0), (300.0, Some(80.0), 20.0), (300.0, Some(250.0), 50.0)],
    [(250.0, Some(5.0), 14.0), (350.0, Some(80.0), 45.0), (400.0, Some(250.0), 80.0)],
    [(200.0, Some(85.0), 9.0), (300.0, Some(300.0), 70.0), (350.0, Some(1250.0), 400.0)],
    [(200.0, Some(40.0), 6.0), (300.0, Some(150.0), 35.0), (300.0, Some(500.0), 140.0)],
];

pub fn numbers() -> Numbers {
    let repositories = REPOSITORIES.iter().enumerate().map(|(at, name)| {
        let costs = ROWS.map(|row| Cost { wall_ms: row[at].0, reset_ms: row[at].1, server_cpu_ms: Some(row[at].2) });
        RepositoryCosts { repository: (*name).into(), costs: Test::VARIANTS.iter().copied().zip(costs).collect() }
    });
    let source = "published in 2020: git 2.28, a server with 8 cores, 30 minutes of load";
    Numbers { source: source.into(), repositories: repositories.collect() }
}
