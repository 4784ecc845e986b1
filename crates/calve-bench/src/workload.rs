//! Commands to compare, and their results.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use calve_receipt::bench::{BenchFailure, Side};

use crate::error::BenchError;
use crate::report::Usage;
use crate::stats::median;

/// One command that takes its turn.
pub(crate) struct Workload {
    /// As a user would type it, with words in capitals for the places.
    pub(crate) command: String,
    pub(crate) role: Role,
    pub(crate) group: &'static Group,
    /// The program and its arguments for a run that makes the new path given.
    pub(crate) argv: Argv,
    /// Variables of its environment.
    pub(crate) environment: Vec<(&'static str, PathBuf)>,
    /// Makes what the command works on, at the new path of a run, before its time begins. `None` when it makes that path itself.
    /// Its result says why the command cannot be run after all.
    pub(crate) prepare: Option<PrepareFunction>,
    /// Whether what a run made stays until room is needed, or would change the runs after it.
    pub(crate) leftovers: Leftovers,
}

/// From the new path of a run to the words that make it.
pub(crate) type Argv = Box<dyn Fn(&Path) -> Vec<OsString>>;

pub(crate) type PrepareFunction = Box<dyn Fn(&Path) -> Result<Option<String>, BenchError>>;

/// The part that a command has in the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The command that peers of the group are compared with: a user of Calve would run it.
    Reference,
    /// Calve with other options.
    Calve,
    Peer,
}

impl Role {
    pub(crate) fn side(self) -> Side {
        if self == Self::Peer { Side::Peer } else { Side::Calve }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leftovers {
    Keep,
    DeleteAtOnce,
}

/// Commands whose results are worth the same. Only these are compared with each other.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) note: &'static str,
}

/// A workload with its runs.
pub(crate) struct Row {
    pub(crate) workload: Workload,
    /// The counted runs, in order.
    pub(crate) samples: Vec<Sample>,
    /// Why it was not run any more. Its earlier runs do not count then.
    pub(crate) failed: Option<BenchFailure>,
    /// The first line that its first run printed on stderr.
    pub(crate) said: String,
    /// Facts to know about its result.
    pub(crate) remarks: Vec<String>,
}

impl Row {
    pub(crate) fn new(workload: Workload) -> Self {
        Self { workload, samples: Vec::new(), failed: None, said: String::new(), remarks: Vec::new() }
    }

    pub(crate) fn is_measured(&self) -> bool {
        self.failed.is_none() && !self.samples.is_empty()
    }

    pub(crate) fn seconds(&self) -> Vec<f64> {
        self.samples.iter().map(|sample| sample.usage.seconds).collect()
    }

    /// Returns the round and the seconds of each run.
    pub(crate) fn times(&self) -> Vec<(u32, f64)> {
        self.samples.iter().map(|sample| (sample.round, sample.usage.seconds)).collect()
    }

    pub(crate) fn median(&self) -> f64 {
        self.middle(|sample| sample.usage.seconds)
    }

    /// Returns the median of a value of its runs.
    pub(crate) fn middle(&self, value: impl Fn(&Sample) -> f64) -> f64 {
        median(&self.samples.iter().map(value).collect::<Vec<_>>()).unwrap_or(f64::INFINITY)
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Sample {
    /// From 1; the warm-up rounds are not counted.
    pub(crate) round: u32,
    /// Which of all counted runs it was, from 0.
    pub(crate) position: usize,
    pub(crate) usage: Usage,
    /// How much fuller the file system was afterwards, everything written out.
    pub(crate) disk_bytes: i64,
    /// How long writing everything out took afterwards.
    pub(crate) flush_seconds: f64,
    /// The processors that other programs, or other machines on the same processors, used meanwhile. `None` where the system does
    /// not tell, and for a run too short to tell.
    pub(crate) others: Option<f64>,
}
