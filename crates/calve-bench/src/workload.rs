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
    pub(crate) argv: Argv,
    pub(crate) environment: Vec<(&'static str, PathBuf)>,
    /// Makes a run's input at its new path, untimed. Returns an obstacle. `None`: the command makes the path itself.
    pub(crate) prepare: Option<PrepareFunction>,
    /// Checks a run that ended well. Returns times that the program itself measured, or a reason to count it as failed.
    pub(crate) check: Option<CheckFunction>,
    /// Its results would change later runs. Others are kept until room is needed.
    pub(crate) is_deleted_at_once: bool,
}

impl Workload {
    /// Describes a command that makes the new path itself, in the bench's environment, with results that stay.
    pub(crate) fn new(
        command: impl Into<String>,
        role: Role,
        group: Group,
        argv: impl Fn(&Path) -> Vec<OsString> + 'static,
    ) -> Self {
        let (command, argv) = (command.into(), Box::new(argv));
        let environment = Vec::new();
        Self { command, role, group, argv, environment, prepare: None, check: None, is_deleted_at_once: false }
    }
}

/// Returns the program and the arguments of a run at a new path.
pub(crate) type Argv = Box<dyn Fn(&Path) -> Vec<OsString>>;

pub(crate) type PrepareFunction = Box<dyn Fn(&Path) -> Result<Option<String>, BenchError>>;

pub(crate) type CheckFunction = Box<dyn Fn(&Path) -> Result<OwnTimes, String>>;

/// A program's own times of a part of its work.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OwnTimes {
    /// Replaces the time of the whole process.
    pub(crate) seconds: Option<f64>,
    pub(crate) stall_seconds: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The command to compare the group's peers with: a user of Calve would run it.
    Reference,
    Calve,
    Peer,
}

impl Role {
    pub(crate) fn side(self) -> BenchSide {
        if self == Self::Peer { BenchSide::Peer } else { BenchSide::Calve }
    }
}

/// Commands with results of equal worth: only these are compared with each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) name: Cow<'static, str>,
    pub(crate) note: &'static str,
}

pub(crate) struct WorkloadRuns {
    pub(crate) workload: Workload,
    pub(crate) samples: Vec<Sample>,
    /// Its failure, after which it was not run again. Earlier runs do not count then.
    pub(crate) failed: Option<BenchFailure>,
    /// Its first run's stderr, on one line.
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
    /// Counted from 1.
    pub(crate) round: u32,
    pub(crate) usage: Usage,
    /// Growth of the used space, everything written out.
    pub(crate) disk_bytes: i64,
    /// Longest time that the program's event loop was blocked. `None` without one.
    pub(crate) stall_seconds: Option<f64>,
    pub(crate) others: Option<f64>,
}
