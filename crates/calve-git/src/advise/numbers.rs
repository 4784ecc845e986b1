use serde::Serialize;
use strum::{Display, EnumString, VariantArray};

/// One of the ten measured ways to clone, or to fetch into a clone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Display, EnumString, VariantArray, Serialize)]
pub enum Test {
    T1,
    T2,
    T3,
    T4,
    T5,
    T6,
    T7,
    T8,
    T9,
    T10,
}

impl Test {
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

/// The median cost of one operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    pub wall_ms: f64,
    /// The `git reset --hard` after a fetch, including objects that it fetched, where it was measured separately.
    pub reset_ms: Option<f64>,
    /// `None` for a server that could not be watched.
    pub server_cpu_ms: Option<f64>,
}

impl Cost {
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
    pub fn cost(&self, test: Test) -> Option<&Cost> {
        self.costs.iter().find(|(measured, _)| *measured == test).map(|(_, cost)| cost)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Numbers {
    pub source: String,
    pub repositories: Vec<RepositoryCosts>,
}
