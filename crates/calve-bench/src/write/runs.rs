//! One run: started, timed by itself, looked at from outside, and checked.

use std::path::{Path, PathBuf};

use calve_core::CancelToken;
use serde_json::Value;

use super::descriptors;
use super::node::Node;
use super::ways::{Kind, Task};
use crate::error::BenchError;
use crate::process::{self, ProcessResult};
use crate::report::Usage;
use crate::runs::no_room;
use crate::scratch::Scratch;
use crate::setup::check_cancelled;
use crate::space::Room;
use calve_receipt::human::count;

/// The common part of all runs.
pub(super) struct Runner<'a> {
    pub(super) node: &'a Node,
    pub(super) script: PathBuf,
    /// The memory of the machine; 0 where that is not known.
    pub(super) memory_bytes: u64,
    pub(super) cancel: &'a CancelToken,
    pub(super) say: &'a dyn Fn(&str),
}

/// Open descriptors are counted from outside, which costs the process time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Descriptors {
    Count,
    Ignore,
}

/// How a run went.
#[derive(Debug, Clone, Default)]
pub(super) struct RunResult {
    /// The time is that of the writing alone; the rest is of the whole program.
    pub(super) usage: Usage,
    /// The longest time that the event loop did not turn; of a program without one, `None`.
    pub(super) stall_seconds: Option<f64>,
    pub(super) peak_descriptors: Option<u64>,
    /// "EMFILE", and how many files were not written.
    pub(super) error: Option<(String, Option<u64>)>,
}

impl Runner<'_> {
    /// Runs one. The inner error is the program's, in words.
    pub(super) fn run(
        &self,
        scratch: &mut Scratch<'_>,
        kind: Kind,
        task: &Task,
        descriptors: Descriptors,
    ) -> Result<Result<RunResult, String>, BenchError> {
        self.make_room(scratch, task)?;
        let root = scratch.next_run();
        let result = scratch.path().join("result.json");
        let _ = fs_err::remove_file(&result);
        let stderr = scratch.stderr()?;
        scratch.flush()?;
        check_cancelled(self.cancel)?;
        let argv = kind.argv(task, &root, &result, &self.script, self.node);
        let mut peak_descriptors = None;
        let ran = match descriptors {
            Descriptors::Ignore => process::measure(&argv, &[], stderr, self.cancel),
            Descriptors::Count => process::measure_watched(&argv, stderr, self.cancel, |process, has_ended| {
                peak_descriptors = descriptors::peak(process, has_ended);
            }),
        };
        check_cancelled(self.cancel)?;
        let answer = fs_err::read_to_string(&result).ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let outcome = match (ran, answer) {
            (Err(error), _) => Err(format!("it could not be started: {error}")),
            (Ok(ended), Some(answer)) if ended.status.success() => Ok(outcome(&ended, &answer, peak_descriptors)),
            (Ok(ended), _) => Err(with_words(ended.in_words(), &scratch.said())),
        };
        // Missing files would make a way fast that does nothing.
        let outcome = outcome.and_then(|outcome| match written(&root, task) {
            _ if outcome.error.is_some() => Ok(outcome),
            Some(files) if files == task.files => Ok(outcome),
            found => {
                Err(format!("it wrote {} of {} files", found.map_or_else(|| "some".into(), count), count(task.files)))
            }
        });
        Ok(outcome)
    }

    /// Deletes results when they fill the memory, where they would slow down what comes after them, or the file system.
    fn make_room(&self, scratch: &mut Scratch<'_>, task: &Task) -> Result<(), BenchError> {
        let needs = needs(task);
        let lacks = |scratch: &Scratch<'_>| -> Result<bool, BenchError> {
            let free = scratch.free()?;
            Ok(free.bytes < needs.bytes || free.inodes < needs.inodes)
        };
        let kept = scratch.runs() as u64 * needs.bytes;
        let fills_memory = self.memory_bytes > 0 && kept > self.memory_bytes / 4;
        if scratch.has_runs() && (fills_memory || lacks(scratch)?) {
            scratch.delete_runs(self.cancel)?;
            scratch.settle()?;
        }
        if lacks(scratch)? { Err(no_room(scratch, needs)?) } else { Ok(()) }
    }
}

/// Returns the most room that a task needs: whole blocks, an inode and a name for each file.
fn needs(task: &Task) -> Room {
    let each = task.bytes.div_ceil(4096) * 4096 + 1024;
    Room { bytes: task.files.saturating_mul(each) + (1 << 20), inodes: task.files + task.directories + 100 }
}

fn outcome(ended: &ProcessResult, answer: &Value, peak_descriptors: Option<u64>) -> RunResult {
    let error = &answer["error"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    RunResult {
        usage: Usage { seconds: answer["seconds"].as_f64().unwrap_or(ended.usage.seconds), ..ended.usage },
        stall_seconds: answer["stall_seconds"].as_f64(),
        peak_descriptors,
        error: text(&error["code"]).or_else(|| text(&error["message"])).map(|what| (what, error["failed"].as_u64())),
    }
}

fn with_words(what: String, said: &str) -> String {
    if said.is_empty() { what } else { format!("{what}: {said}") }
}

/// Returns how many files there are.
fn written(root: &Path, task: &Task) -> Option<u64> {
    let mut files = 0;
    for number in 0..task.directories {
        files += fs_err::read_dir(root.join("files").join(format!("d{number}"))).ok()?.count() as u64;
    }
    Some(files)
}
