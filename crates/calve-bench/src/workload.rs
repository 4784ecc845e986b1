//! Commands to compare, and their results.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use calve_receipt::bench::{BenchFailure, BenchSide};

use crate::error::BenchError;
use crate::report::Usage;
use crate::stats::median;

pub(crate) struct Workload {
    /// As a user would type it, with words in capitals for the places.
    pub(crate) command: String,
    pub(crate) role: Role,
    pub(crate) group: Group,
    /// The program and its arguments for a run that makes the new path given.
    pub(crate) argv: Argv,
    pub(crate) environment: Vec<(&'static str, PathBuf)>,
    /// Makes a run's input at its new path, before its time begins. Returns why the command cannot run after all. `None`: it makes the path itself.
    pub(crate) prepare: Option<PrepareFunction>,
    /// Checks a run that ended well. Returns the times that the program measured itself, or why the run is a failure all the same.
    pub(crate) check: Option<CheckFunction>,
    /// Whether what a run made stays until room is needed, or would change the runs after it.
    pub(crate) leftovers: Leftovers,
}

impl Workload {
    /// Describes a command that makes the new path itself, in the environment of the bench. What it made stays.
    pub(crate) fn new(
        command: impl Into<String>,
        role: Role,
        group: Group,
        argv: impl Fn(&Path) -> Vec<OsString> + 'static,
    ) -> Self {
        let (command, argv) = (command.into(), Box::new(argv));
        let (environment, leftovers) = (Vec::new(), Leftovers::Keep);
        Self { command, role, group, argv, environment, prepare: None, check: None, leftovers }
    }
}

/// From the new path of a run to the words that make it.
pub(crate) type Argv = Box<dyn Fn(&Path) -> Vec<OsString>>;

pub(crate) type PrepareFunction = Box<dyn Fn(&Path) -> Result<Option<String>, BenchError>>;

pub(crate) type CheckFunction = Box<dyn Fn(&Path) -> Result<OwnTimes, String>>;

/// The times that a program took of a part of its work.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OwnTimes {
    /// Counts in place of the time of the whole process.
    pub(crate) seconds: Option<f64>,
    pub(crate) stall_seconds: Option<f64>,
}

/// The part that a command has in the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The command that peers of the group are compared with: a user of Calve would run it.
    Reference,
    Calve,
    Peer,
}

impl Role {
    pub(crate) fn side(self) -> BenchSide {
        if self == Self::Peer { BenchSide::Peer } else { BenchSide::Calve }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leftovers {
    Keep,
    DeleteAtOnce,
}

/// Commands whose results are worth the same. Only these are compared with each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) name: Cow<'static, str>,
    pub(crate) note: &'static str,
}

pub(crate) struct WorkloadRuns {
    pub(crate) workload: Workload,
    /// The counted runs, in order.
    pub(crate) samples: Vec<Sample>,
    /// Why it was not run any more. Its earlier runs do not count then.
    pub(crate) failed: Option<BenchFailure>,
    /// The first line that its first run printed on stderr.
    pub(crate) said: String,
    pub(crate) remarks: Vec<String>,
}

impl WorkloadRuns {
    pub(crate) fn new(workload: Workload) -> Self {
        Self { workload, samples: Vec::new(), failed: None, said: String::new(), remarks: Vec::new() }
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

    pub(crate) fn longest_stall(&self) -> Option<f64> {
        self.samples.iter().filter_map(|sample| sample.stall_seconds).reduce(f64::max)
    }

    pub(crate) fn middle(&self, value: impl Fn(&Sample) -> f64) -> f64 {
        median(&self.samples.iter().map(value).collect::<Vec<_>>()).unwrap_or(f64::INFINITY)
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Sample {
    /// From 1.
    pub(crate) round: u32,
    pub(crate) usage: Usage,
    /// How much fuller the file system was afterwards, everything written out.
    pub(crate) disk_bytes: i64,
    /// The longest time that the event loop of a program did not turn; of a program without one, `None`.
    pub(crate) stall_seconds: Option<f64>,
    pub(crate) others: Option<f64>,
}
