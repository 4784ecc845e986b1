//! What `calve bench write` has to tell.

use std::path::PathBuf;
use std::time::SystemTime;

use calve_core::Shown;

use super::Row;
use super::limit::{self, Trial};
use super::runs::{Outcome, shown};
use super::ways::{Kind, Task, in_words};
use crate::document::Document;
use crate::error::{BenchError, FailureKind};
use crate::export::markdown::aligned;
use crate::machine::{Machine, utc};
use crate::report::Fact;
use crate::stats::{Summary, median};
use calve_receipt::human::{count, size};
use serde_json::Value;

/// The report of `calve bench write`.
pub struct Report {
    pub(super) began: SystemTime,
    pub(super) machine: Machine,
    pub(super) node: String,
    /// The version of the npm package, if there is one.
    pub(super) package: Option<String>,
    pub(super) into: PathBuf,
    pub(super) file_system: String,
    pub(super) mount_options: String,
    /// What `--only` has left.
    pub(super) chosen: Option<Fact>,
    pub(super) rounds: u32,
    pub(super) layouts: Vec<Layout>,
    pub(super) trials: Option<(Task, Vec<Trial>)>,
}

/// The same files in so many directories.
pub(super) struct Layout {
    pub(super) task: Task,
    pub(super) rows: Vec<Row>,
}

pub(super) fn layout_in_words(directories: u64) -> String {
    if directories == 1 { "one directory".into() } else { format!("{} directories", count(directories)) }
}

impl Layout {
    /// "1,000 files of 6 KiB, in 20 directories"
    pub(super) fn title(&self) -> String {
        let Task { files, bytes, directories } = self.task;
        format!("{} files of {}, in {}", count(files), size(bytes), layout_in_words(directories))
    }

    fn row(&self, is_it: impl Fn(Kind) -> bool) -> Option<(&Row, Summary)> {
        let row = self.rows.iter().find(|row| is_it(row.way.kind))?;
        Some((row, row.summary()?))
    }

    pub(super) fn ratio(&self, summary: &Summary) -> Option<f64> {
        let (_, of_loop) = self.row(|kind| kind == Kind::Loop)?;
        Some(summary.median / of_loop.median)
    }

    /// The seconds of one thread, the best number of several, and its seconds.
    fn threads(&self) -> Option<(f64, usize, f64)> {
        let (_, one) = self.row(|kind| kind.threads() == Some(1))?;
        let several = self.rows.iter().filter_map(|row| {
            let threads = row.way.kind.threads().filter(|&threads| threads > 1)?;
            Some((threads, row.summary()?.median))
        });
        let (threads, best) = several.min_by(|a, b| a.1.total_cmp(&b.1))?;
        Some((one.median, threads, best))
    }
}

impl Row {
    pub(super) fn of(&self, value: fn(&Outcome) -> f64) -> Vec<f64> {
        self.samples.iter().map(value).collect()
    }

    pub(super) fn summary(&self) -> Option<Summary> {
        if self.failed.is_some() { None } else { Summary::of(&self.of(|outcome| outcome.seconds)) }
    }

    /// Of all runs.
    pub(super) fn longest_stall(&self) -> Option<f64> {
        self.samples.iter().filter_map(|outcome| outcome.stall_seconds).reduce(f64::max)
    }

    fn memory(&self) -> Option<f64> {
        median(&self.of(|outcome| outcome.peak_memory_bytes as f64))
    }
}

impl Document for Report {
    fn json(&self) -> Value {
        super::json::document(self)
    }

    fn markdown(&self) -> String {
        self.in_markdown()
    }

    fn html(&self) -> String {
        super::html::document(self)
    }

    fn verdict(&self) -> Result<(), BenchError> {
        let mut rows = self.layouts.iter().flat_map(|layout| &layout.rows);
        let Some(row) = rows.find(|row| row.failed.is_some() && row.way.kind.is_ours()) else { return Ok(()) };
        let text = format!("`{}` failed", row.way.name);
        Err(BenchError::stated(FailureKind::Failed, text, "the report says why; see `calve bench write --help`"))
    }
}

impl Report {
    pub(super) fn in_markdown(&self) -> String {
        let mut text = String::from("# calve bench write\n\n");
        for (label, line) in self.circumstances() {
            text.push_str(&format!("- {label}: {line}\n"));
        }
        for layout in &self.layouts {
            text.push_str(&format!("\n{}:\n\n{}", layout.title(), aligned(&lines(layout), |column| column == 0)));
        }
        text.push_str(&format!("\n{KEY}\n"));
        if let Some((task, trials)) = self.trials() {
            let table = aligned(&trial_lines(task, trials), |column| column == 0 || column == 3);
            text.push_str(&format!("\n{}:\n\n{table}", trials_title(task)));
        }
        let warnings = self.warnings();
        if !warnings.is_empty() {
            text.push_str("\nWarnings:\n\n");
            warnings.iter().for_each(|(_, line)| text.push_str(&format!("- {line}\n")));
        }
        text.push_str(&format!("\n{}\n", self.conclusion()));
        text
    }

    /// Those there were.
    pub(super) fn trials(&self) -> Option<&(Task, Vec<Trial>)> {
        self.trials.as_ref().filter(|(_, trials)| !trials.is_empty())
    }

    pub(super) fn circumstances(&self) -> Vec<(&'static str, String)> {
        let machine = &self.machine;
        let memory = size(machine.memory_bytes);
        let cpu = format!("{}, {} cores, {memory} of memory, {}", machine.cpu, machine.cores, machine.kernel);
        let package = match &self.package {
            Some(version) => format!("{version}, with calve {}", env!("CARGO_PKG_VERSION")),
            None => "not found from here, so that the engine is measured without Node (npm install calve)".into(),
        };
        let rounds = if self.rounds == 1 { "1 round".to_owned() } else { format!("{} rounds", self.rounds) };
        let mut circumstances = vec![
            ("Date", utc(self.began)),
            ("Machine", cpu),
            ("Written to", format!("`{}`, {}, mounted {}", Shown(&self.into), self.file_system, self.mount_options)),
            ("Node", self.node.clone()),
            ("npm package calve", package),
            ("Runs", format!("{rounds}, the ways in another order in each; a process for each run")),
        ];
        circumstances.extend(self.chosen.as_ref().map(|chosen| (chosen.label, chosen.text.clone())));
        circumstances
    }

    pub(super) fn warnings(&self) -> Vec<(&'static str, String)> {
        let mut warnings = Vec::new();
        let cores = self.machine.cores;
        if let Some(load) = self.machine.load.filter(|load| *load > cores as f64 / 2.0) {
            let message = format!("the machine was busy before the first run: load average {load:.1} on {cores} cores");
            warnings.push(("busy_before", message));
        }
        if let Some(version) = self.package.as_deref().filter(|version| *version != env!("CARGO_PKG_VERSION")) {
            let message = format!("the npm package is {version}, and this program {}", env!("CARGO_PKG_VERSION"));
            warnings.push(("other_version", message));
        }
        let mut wide = Vec::new();
        for layout in &self.layouts {
            for row in &layout.rows {
                let what = format!("{}, {}", row.way.name, layout_in_words(layout.task.directories));
                if let Some(reason) = &row.failed {
                    warnings.push(("failed", format!("{what}: failed and was not run again: {reason}")));
                }
                if let Some(summary) = row.summary().filter(|summary| summary.mad / summary.median > LARGE_SPREAD) {
                    wide.push(format!("{what} {:.0} %", summary.mad / summary.median * 100.0));
                }
            }
        }
        if !wide.is_empty() {
            let message = format!("large spread, the MAD in percent of the median: {}", wide.join("; "));
            warnings.push(("large_spread", message));
        }
        if self.trials.is_none() {
            let message = "many files at once were not tried: there is no room for so many".to_owned();
            warnings.push(("no_room_for_many", message));
        }
        warnings
    }

    /// Whether threads help here, and why.
    pub(super) fn conclusion(&self) -> String {
        let measured: Vec<_> =
            self.layouts.iter().filter_map(|layout| Some((layout.task.directories, layout.threads()?))).collect();
        if measured.is_empty() && self.chosen.is_some() {
            return "Whether threads help here is not known: the ways with one thread and with several were not asked for.".into();
        }
        if measured.is_empty() {
            return "Whether threads help here is not known: Calve's own ways could not be measured.".into();
        }
        let part = |(directories, (one, threads, best)): &(u64, (f64, usize, f64))| {
            let place = layout_in_words(*directories);
            format!("in {place} {} take {:.2} of the time of one", in_words(*threads), best / one)
        };
        let parts = measured.iter().map(part).collect::<Vec<_>>().join(", and ");
        let helps = |flat: bool| {
            let mut of_kind = measured.iter().filter(|(directories, _)| (*directories == 1) == flat);
            of_kind.any(|(_, (one, _, best))| best / one < HELPS)
        };
        let (flat, spread) = (helps(true), helps(false));
        let why = match (flat, spread) {
            (true, true) => {
                "files in different directories are made side by side, and in one directory the writing of contents goes on while \
                 another thread waits for the directory's lock"
            }
            (false, true) => {
                "files in different directories are made side by side, those in one directory one after the other"
            }
            (true, false) => "writing contents goes on in one thread while another one makes a file",
            (false, false) if self.machine.cores == 1 => "there is one processor",
            (false, false) => {
                "making files is the most of it, and this file system does that for one thread at a time, or other programs kept the \
                 processors busy"
            }
        };
        let verdict = if flat || spread { "Threads help here" } else { "Threads do not help here" };
        format!("{verdict}: {parts}; {why}.")
    }
}

/// What the columns mean.
pub(super) const KEY: &str = "Ratio: to writeFileSync in a loop. Stall: the longest time that nothing else could happen on the event loop, in all runs. \
     Descriptors: the most that were open in a run that was not timed, with those that Node has anyway.";

pub(super) fn trials_title(task: &Task) -> String {
    format!("{} files at once, in one directory", count(task.files))
}

/// In parts of the median.
const LARGE_SPREAD: f64 = 0.10;
/// A part of the time of one thread that is worth having.
const HELPS: f64 = 0.9;

/// Of one layout: the head, and a line for each way.
pub(super) fn lines(layout: &Layout) -> Vec<Vec<String>> {
    let head = ["way", "median", "min", "max", "MAD", "ratio", "stall", "descriptors", "memory"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for row in &layout.rows {
        let Some(summary) = row.summary() else {
            let mut line = vec![row.way.name.clone(), "failed".into()];
            line.resize(head.len(), String::new());
            lines.push(line);
            continue;
        };
        lines.push(vec![
            row.way.name.clone(),
            shown(summary.median),
            shown(summary.min),
            shown(summary.max),
            if row.samples.len() > 1 { shown(summary.mad) } else { "-".into() },
            layout.ratio(&summary).map_or_else(|| "-".into(), |ratio| format!("{ratio:.2}")),
            row.longest_stall().map_or_else(|| "-".into(), shown),
            row.peak_descriptors.map_or_else(|| "-".into(), count),
            row.memory().map_or_else(|| "-".into(), |bytes| size(bytes as u64)),
        ]);
    }
    lines
}

/// Of many files at once: the head, and a line for each trial.
pub(super) fn trial_lines(task: &Task, trials: &[Trial]) -> Vec<Vec<String>> {
    let head = ["way", "limit of open files", "most open", "result"].map(str::to_owned).to_vec();
    let line = |trial: &Trial| {
        let peak = trial.outcome.as_ref().ok().and_then(|outcome| outcome.peak_descriptors);
        let peak = peak.map_or_else(|| "-".into(), count);
        vec![trial.way.to_owned(), limit::in_words(trial.limit), peak, trial.result(task)]
    };
    std::iter::once(head).chain(trials.iter().map(line)).collect()
}
