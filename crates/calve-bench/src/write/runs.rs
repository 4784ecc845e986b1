//! One run: started, timed by itself, looked at from outside, and checked.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use calve_core::{Cancel, Error};
use serde_json::Value;

use super::descriptors;
use super::node::Node;
use super::ways::{Kind, Task};
use crate::error::BenchError;
use crate::place::Place;
use crate::process::{self, Ended};
use crate::runs::no_room;
use crate::space::Room;
use calve_receipt::human::{count, duration};

/// What is the same for all runs.
pub(super) struct Ground<'a> {
    pub(super) node: &'a Node,
    pub(super) script: PathBuf,
    /// Of the machine; 0 where that is not known.
    pub(super) memory_bytes: u64,
    pub(super) cancel: &'a Cancel,
    pub(super) say: &'a dyn Fn(&str),
}

/// Whether somebody looks at the process meanwhile, which costs it time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    AtDescriptors,
    Away,
}

/// How a run went.
#[derive(Debug, Clone, Default)]
pub(super) struct Outcome {
    pub(super) seconds: f64,
    /// The longest time that the event loop did not turn; of a program without one, `None`.
    pub(super) stall_seconds: Option<f64>,
    pub(super) user_seconds: f64,
    pub(super) system_seconds: f64,
    pub(super) peak_memory_bytes: u64,
    pub(super) peak_descriptors: Option<u64>,
    /// "EMFILE", and how many files were not written.
    pub(super) error: Option<(String, Option<u64>)>,
}

impl Ground<'_> {
    /// Runs one, in a shell with `limit` as its limit of open files if there is one. The inner error is the program's, in words.
    pub(super) fn run(
        &self,
        place: &mut Place,
        kind: Kind,
        task: &Task,
        look: Look,
        limit: Option<u64>,
    ) -> Result<Result<Outcome, String>, BenchError> {
        self.make_room(place, task)?;
        let root = place.next_run();
        let result = place.path().join("result.json");
        let _ = fs_err::remove_file(&result);
        let stderr = place.stderr()?;
        place.flush()?;
        self.check_cancelled()?;
        let argv = limited(kind.argv(task, &root, &result, &self.script, self.node), limit);
        let mut peak_descriptors = None;
        let ran = match look {
            Look::Away => process::measure(&argv, stderr, self.cancel),
            Look::AtDescriptors => process::measure_watched(&argv, stderr, self.cancel, |process, has_ended| {
                peak_descriptors = descriptors::peak(process, has_ended);
            }),
        };
        self.check_cancelled()?;
        let answer = fs_err::read_to_string(&result).ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let outcome = match (ran, answer) {
            (Err(error), _) => Err(format!("it could not be started: {error}")),
            (Ok(ended), Some(answer)) if ended.status.success() => Ok(outcome(&ended, &answer, peak_descriptors)),
            (Ok(ended), _) => Err(with_words(ended.in_words(), &place.said())),
        };
        // What is missing would make a way fast that does nothing.
        let outcome = outcome.and_then(|outcome| match written(&root, task) {
            _ if outcome.error.is_some() => Ok(outcome),
            Some(files) if files == task.files => Ok(outcome),
            found => {
                Err(format!("it wrote {} of {} files", found.map_or_else(|| "some".into(), count), count(task.files)))
            }
        });
        Ok(outcome)
    }

    fn check_cancelled(&self) -> Result<(), BenchError> {
        if self.cancel.is_cancelled() { Err(Error::Interrupted.into()) } else { Ok(()) }
    }

    /// Results stay until they fill the memory, where they would slow down what comes after them, or the file system.
    fn make_room(&self, place: &mut Place, task: &Task) -> Result<(), BenchError> {
        let needs = needs(task);
        let lacks = |place: &Place| -> Result<bool, BenchError> {
            let free = place.free()?;
            Ok(free.bytes < needs.bytes || free.inodes < needs.inodes)
        };
        let kept = place.runs() as u64 * needs.bytes;
        let fills_memory = self.memory_bytes > 0 && kept > self.memory_bytes / 4;
        if place.has_runs() && (fills_memory || lacks(place)?) {
            place.delete_runs(self.cancel)?;
            place.settle()?;
        }
        if lacks(place)? { Err(no_room(place, needs)?) } else { Ok(()) }
    }
}

/// At the most: whole blocks, an inode and a name for each.
pub(super) fn needs(task: &Task) -> Room {
    let each = task.bytes.div_ceil(4096) * 4096 + 1024;
    Room { bytes: task.files.saturating_mul(each) + (1 << 20), inodes: task.files + task.directories + 100 }
}

/// The shell sets both limits of a program, so that it cannot raise them itself, as Node does.
fn limited(argv: Vec<OsString>, limit: Option<u64>) -> Vec<OsString> {
    let Some(limit) = limit else { return argv };
    let shell = ["sh", "-c", "ulimit -n \"$0\" && exec \"$@\""].map(OsString::from);
    shell.into_iter().chain([limit.to_string().into()]).chain(argv).collect()
}

fn outcome(ended: &Ended, answer: &Value, peak_descriptors: Option<u64>) -> Outcome {
    let error = &answer["error"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Outcome {
        seconds: answer["seconds"].as_f64().unwrap_or(ended.seconds),
        stall_seconds: answer["stall_seconds"].as_f64(),
        user_seconds: ended.user_seconds,
        system_seconds: ended.system_seconds,
        peak_memory_bytes: ended.peak_memory_bytes,
        peak_descriptors,
        error: text(&error["code"]).or_else(|| text(&error["message"])).map(|what| (what, error["failed"].as_u64())),
    }
}

fn with_words(what: String, said: &str) -> String {
    if said.is_empty() { what } else { format!("{what}: {said}") }
}

/// How many files there are.
fn written(root: &Path, task: &Task) -> Option<u64> {
    let mut files = 0;
    for number in 0..task.directories {
        files += fs_err::read_dir(root.join("files").join(format!("d{number}"))).ok()?.count() as u64;
    }
    Some(files)
}

/// "12.3 ms"
pub(super) fn shown(seconds: f64) -> String {
    duration(Duration::from_secs_f64(seconds.max(0.0)))
}
