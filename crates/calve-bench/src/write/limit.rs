//! All files at once, under limits of open files: where `EMFILE` comes from.

use rustix::process::{Resource, getrlimit};

use super::runs::{Descriptors, RunResult, Runner, needs};
use super::ways::{Kind, Task, Way};
use crate::error::BenchError;
use crate::report::shown;
use crate::scratch::Scratch;
use calve_receipt::human::count;

/// So many times as many files as are measured.
const TIMES: u64 = 100;
/// The limit that most systems give a program that does not ask for more.
const USUAL: u64 = 1024;

/// One of these runs.
pub(super) struct Trial {
    pub(super) way: &'static str,
    pub(super) limit: u64,
    pub(super) outcome: Result<RunResult, String>,
}

/// Tries the ways that are measured, and returns the trials and what each wrote. `None` where there is no room for so many files.
pub(super) fn try_all_at_once(
    runner: &Runner<'_>,
    scratch: &mut Scratch<'_>,
    files: u64,
    ways: &[Way],
) -> Result<Option<(Task, Vec<Trial>)>, BenchError> {
    let task = Task { files: files.saturating_mul(TIMES), bytes: 1, directories: 1 };
    let is_measured = |kind: Kind| ways.iter().any(|way| way.kind == kind);
    let ours = if is_measured(Kind::WriteFiles) {
        Some(("calve.writeFiles", Kind::WriteFiles))
    } else {
        is_measured(Kind::Engine(2)).then_some(("calve's engine", Kind::Engine(2)))
    };
    let all = is_measured(Kind::PromiseAll).then_some(("Promise.all of writeFile", Kind::PromiseAll));
    if ours.is_none() && all.is_none() {
        return Ok(Some((task, Vec::new())));
    }
    scratch.delete_runs(runner.cancel)?;
    let (free, needs) = (scratch.free()?, needs(&task));
    if free.bytes < needs.bytes || free.inodes < needs.inodes {
        return Ok(None);
    }
    let own = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let usual = USUAL.min(own);
    let mut trials = Vec::new();
    for (trial, limit) in [(all, own), (all, usual), (ours, usual)] {
        let Some((way, kind)) = trial else { continue };
        if own == usual && !trials.is_empty() && kind == Kind::PromiseAll {
            continue;
        }
        let outcome = runner.run(scratch, kind, &task, Descriptors::Count, (limit != own).then_some(limit))?;
        let trial = Trial { way, limit, outcome };
        (runner.say)(&format!("limit {}  {}: {}", in_words(limit), trial.way, trial.result(&task)));
        trials.push(trial);
        scratch.delete_runs(runner.cancel)?;
    }
    Ok(Some((task, trials)))
}

pub(super) fn in_words(limit: u64) -> String {
    if limit == u64::MAX { "none".into() } else { count(limit) }
}

impl Trial {
    /// Describes the result: "all written in 4.2 s", or what went wrong.
    pub(super) fn result(&self, task: &Task) -> String {
        match &self.outcome {
            Err(reason) => format!("failed: {reason}"),
            Ok(RunResult { error: None, usage, .. }) => format!("all written in {}", shown(usage.seconds)),
            Ok(RunResult { error: Some((what, None)), .. }) => what.clone(),
            Ok(RunResult { error: Some((what, Some(failed))), .. }) => {
                format!("{what}: {} of {} files not written", count(*failed), count(task.files))
            }
        }
    }
}
