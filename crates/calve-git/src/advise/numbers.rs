//! The numbers that advice stands on.

use std::fmt;
use std::str::FromStr;

/// One of the ten ways to clone, and to fetch into a clone, that were measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Test {
    T1,
    /// A clone with `--depth=1`.
    T2,
    /// A clone with `--filter=tree:0`.
    T3,
    /// A clone with `--filter=blob:none`.
    T4,
    /// A fetch into a full clone.
    T5,
    /// `fetch --depth=1` into a full clone.
    T6,
    /// A fetch into a shallow clone.
    T7,
    /// `fetch --depth=1` into a shallow clone.
    T8,
    /// A fetch into a treeless clone.
    T9,
    /// A fetch into a blobless clone.
    T10,
}

impl Test {
    pub const ALL: [Test; 10] =
        [Test::T1, Test::T2, Test::T3, Test::T4, Test::T5, Test::T6, Test::T7, Test::T8, Test::T9, Test::T10];

    /// Returns the operation, in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::T1 => "full clone",
            Self::T2 => "clone --depth=1",
            Self::T3 => "clone --filter=tree:0",
            Self::T4 => "clone --filter=blob:none",
            Self::T5 => "fetch into a full clone",
            Self::T6 => "fetch --depth=1 into a full clone",
            Self::T7 => "fetch into a shallow clone",
            Self::T8 => "fetch --depth=1 into a shallow clone",
            Self::T9 => "fetch into a treeless clone",
            Self::T10 => "fetch into a blobless clone",
        }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl FromStr for Test {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|test| test.to_string() == name);
        found.ok_or_else(|| format!("{name:?} is none of the tests T1 to T10"))
    }
}

/// The cost of one operation, in the middle of all its runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// How long the client waited for the clone or the fetch, in milliseconds.
    pub wall_ms: f64,
    /// How long the `git reset --hard` after a fetch took, with what it fetched, where it was measured apart.
    pub reset_ms: Option<f64>,
    /// The time of the server's processors, in milliseconds; unknown of a server that could not be watched.
    pub server_cpu_ms: Option<f64>,
}

impl Cost {
    /// Returns the client's whole wait.
    pub fn client_ms(&self) -> f64 {
        self.wall_ms + self.reset_ms.unwrap_or(0.0)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct RepositoryCosts {
    pub repository: String,
    pub costs: Vec<(Test, Cost)>,
}

impl RepositoryCosts {
    /// Returns the cost of one of the tests, if it was measured.
    pub fn cost(&self, test: Test) -> Option<&Cost> {
        self.costs.iter().find(|(measured, _)| *measured == test).map(|(_, cost)| cost)
    }
}

/// Numbers, and where they come from.
#[derive(Debug, Clone, PartialEq)]
pub struct Numbers {
    /// Where they come from, in words.
    pub source: String,
    /// One set for each repository.
    pub repositories: Vec<RepositoryCosts>,
}
