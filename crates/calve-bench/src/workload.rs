//! What is compared, and what became of it.

use std::ffi::OsString;
use std::path::Path;

use calve_core::Refusal;

use super::stats::median;
use crate::error::BenchError;

/// One command that takes its turn.
pub(crate) struct Workload {
    /// As a user would type it, with words in capitals for the places.
    pub(crate) command: String,
    pub(crate) side: Side,
    pub(crate) group: &'static Group,
    /// The program and its arguments for a run that makes the new path given.
    pub(crate) argv: Argv,
    /// Makes what the command works on, at the new path of a run, before its time begins. `None` when it makes that path itself.
    /// What it gives back says why the command cannot be run after all.
    pub(crate) prepare: Option<Prepare>,
    /// What a run leaves below its path for later runs, and that does not count as disk space.
    pub(crate) kept: &'static [&'static str],
    /// Whether what a run made stays until room is needed, or would change the runs after it.
    pub(crate) leftovers: Leftovers,
}

/// From the new path of a run to the words that make it.
pub(crate) type Argv = Box<dyn Fn(&Path) -> Vec<OsString>>;

pub(crate) type Prepare = Box<dyn Fn(&Path) -> Result<Option<String>, BenchError>>;

/// Whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// What peers of the group are compared with: what a user of Calve would run.
    Reference,
    /// Calve with other options.
    Calve,
    Peer,
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
    /// Put behind the command; explained by `note`.
    pub(crate) mark: &'static str,
    pub(crate) note: &'static str,
}

/// A command that was not run, and why.
#[derive(Debug, Clone)]
pub(crate) struct Absent {
    pub(crate) command: String,
    pub(crate) why: Why,
    pub(crate) reason: String,
    pub(crate) remedy: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// The program is not installed.
    Missing,
    /// It cannot be done in this place.
    Refused,
}

impl Absent {
    pub(crate) fn missing(command: impl Into<String>, program: &str, remedy: &str) -> Self {
        let reason = format!("`{program}` is not installed");
        Self { command: command.into(), why: Why::Missing, reason, remedy: Some(remedy.into()) }
    }

    pub(crate) fn refused(command: impl Into<String>, refusal: &Refusal) -> Self {
        let Refusal { reason, remedy, .. } = refusal.clone();
        Self { command: command.into(), why: Why::Refused, reason, remedy }
    }
}

/// A workload with its runs.
pub(crate) struct Row {
    pub(crate) workload: Workload,
    /// The counted runs, in order.
    pub(crate) samples: Vec<Sample>,
    /// Why it was not run any more. Its earlier runs do not count then.
    pub(crate) failed: Option<Failed>,
    /// What its first run printed on stderr, the first line.
    pub(crate) said: String,
    /// What is to be known about its result.
    pub(crate) remarks: Vec<String>,
}

impl Row {
    pub(crate) fn is_measured(&self) -> bool {
        self.failed.is_none() && !self.samples.is_empty()
    }

    /// How much emptier the file system was after a run; the median.
    pub(crate) fn gained_bytes(&self) -> Option<i64> {
        let bytes: Vec<f64> = self.samples.iter().map(|sample| -(sample.disk_bytes as f64)).collect();
        Some(median(&bytes)? as i64)
    }

    pub(crate) fn seconds(&self) -> Vec<f64> {
        self.samples.iter().map(|sample| sample.seconds).collect()
    }
}

/// One counted run.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    /// From 1; the warm-up rounds are not counted.
    pub(crate) round: u32,
    /// Which of all counted runs it was, from 0.
    pub(crate) position: usize,
    pub(crate) seconds: f64,
    pub(crate) user_seconds: f64,
    pub(crate) system_seconds: f64,
    pub(crate) peak_memory_bytes: u64,
    /// How much fuller the file system was afterwards, everything written out.
    pub(crate) disk_bytes: i64,
    /// How long writing everything out took afterwards.
    pub(crate) flush_seconds: f64,
    /// What other programs, or other machines on the same processors, used meanwhile, in processors. `None` where the system does
    /// not tell, and for a run too short to tell.
    pub(crate) others: Option<f64>,
}

/// How a run went wrong.
#[derive(Debug, Clone)]
pub(crate) struct Failed {
    /// 0 is a warm-up round.
    pub(crate) round: u32,
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
    /// In words, with what it printed.
    pub(crate) reason: String,
}
