//! What `calve bench write` has to tell.

use std::path::PathBuf;
use std::time::SystemTime;

use calve_core::Shown;
use serde_json::{Value, json};

use super::Row;
use super::limit::{self, Trial};
use super::runs::{Outcome, shown};
use super::ways::{Kind, Task, in_words};
use crate::bench::export::markdown::aligned;
use crate::bench::machine::{Machine, utc};
use crate::bench::stats::{Summary, median};
use crate::output::{count, size};
use crate::receipt;

pub(crate) struct Report {
    pub(super) began: SystemTime,
    pub(super) machine: Machine,
    pub(super) node: String,
    /// The version of the npm package, if there is one.
    pub(super) package: Option<String>,
    pub(super) into: PathBuf,
    pub(super) file_system: String,
    pub(super) mount_options: String,
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
    fn row(&self, is_it: impl Fn(Kind) -> bool) -> Option<(&Row, Summary)> {
        let row = self.rows.iter().find(|row| is_it(row.way.kind))?;
        Some((row, row.summary()?))
    }

    fn ratio(&self, summary: &Summary) -> Option<f64> {
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
    fn of(&self, value: fn(&Outcome) -> f64) -> Vec<f64> {
        self.samples.iter().map(value).collect()
    }

    fn summary(&self) -> Option<Summary> {
        if self.failed.is_some() { None } else { Summary::of(&self.of(|outcome| outcome.seconds)) }
    }

    /// Of all runs.
    fn longest_stall(&self) -> Option<f64> {
        self.samples.iter().filter_map(|outcome| outcome.stall_seconds).reduce(f64::max)
    }

    fn memory(&self) -> Option<f64> {
        median(&self.of(|outcome| outcome.peak_memory_bytes as f64))
    }
}

impl Report {
    /// Calve's own ways that failed.
    pub(crate) fn broken(&self) -> Option<&str> {
        let rows = self.layouts.iter().flat_map(|layout| &layout.rows);
        rows.filter(|row| row.failed.is_some() && row.way.kind.is_ours()).map(|row| row.way.name.as_str()).next()
    }

    pub(crate) fn markdown(&self) -> String {
        let mut text = String::from("# calve bench write\n\n");
        for (label, line) in self.circumstances() {
            text.push_str(&format!("- {label}: {line}\n"));
        }
        for layout in &self.layouts {
            let title = layout_in_words(layout.task.directories);
            let (files, bytes) = (count(layout.task.files), size(layout.task.bytes));
            text.push_str(&format!("\n{files} files of {bytes}, in {title}:\n\n{}", table(layout)));
        }
        text.push_str(
            "\nRatio: to writeFileSync in a loop. Stall: the longest time that nothing else could happen on the event loop, in all runs. \
             Descriptors: the most that were open in a run that was not timed, with those that Node has anyway.\n",
        );
        if let Some((task, trials)) = &self.trials {
            let files = count(task.files);
            text.push_str(&format!("\n{files} files at once, in one directory:\n\n{}", trials_table(task, trials)));
        }
        let warnings = self.warnings();
        if !warnings.is_empty() {
            text.push_str("\nWarnings:\n\n");
            warnings.iter().for_each(|(_, line)| text.push_str(&format!("- {line}\n")));
        }
        text.push_str(&format!("\n{}\n", self.conclusion()));
        text
    }

    fn circumstances(&self) -> Vec<(&'static str, String)> {
        let machine = &self.machine;
        let memory = size(machine.memory_bytes);
        let cpu = format!("{}, {} cores, {memory} of memory, {}", machine.cpu, machine.cores, machine.kernel);
        let package = match &self.package {
            Some(version) => format!("{version}, with calve {}", env!("CARGO_PKG_VERSION")),
            None => "not found from here, so that the engine is measured without Node (npm install calve)".into(),
        };
        let rounds = if self.rounds == 1 { "1 round".to_owned() } else { format!("{} rounds", self.rounds) };
        vec![
            ("Date", utc(self.began)),
            ("Machine", cpu),
            ("Written to", format!("`{}`, {}, mounted {}", Shown(&self.into), self.file_system, self.mount_options)),
            ("Node", self.node.clone()),
            ("npm package calve", package),
            ("Runs", format!("{rounds}, the ways in another order in each; a process for each run")),
        ]
    }

    fn warnings(&self) -> Vec<(&'static str, String)> {
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
    fn conclusion(&self) -> String {
        let measured: Vec<_> =
            self.layouts.iter().filter_map(|layout| Some((layout.task.directories, layout.threads()?))).collect();
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

    pub(crate) fn json(&self) -> Value {
        let results: Vec<Value> = self
            .layouts
            .iter()
            .flat_map(|layout| layout.rows.iter().map(move |row| (layout, row)))
            .filter_map(|(layout, row)| Some(result(layout, row, &row.summary()?)))
            .collect();
        let failed: Vec<Value> = self
            .layouts
            .iter()
            .flat_map(|layout| layout.rows.iter().map(move |row| (layout.task.directories, row)))
            .filter_map(|(directories, row)| {
                let reason = row.failed.as_ref()?;
                Some(json!({ "command": row.way.name, "directories": directories, "reason": reason }))
            })
            .collect();
        json!({
            "schema": "calve.bench/1",
            "bench": "write",
            "date": utc(self.began),
            "machine": self.machine.json(),
            "facts": {
                "target": {
                    "path": receipt::path(&self.into),
                    "file_system": self.file_system,
                    "mount_options": self.mount_options,
                },
                "npm_package": self.package,
            },
            "rounds": self.rounds,
            "versions": { "node": self.node, "calve": env!("CARGO_PKG_VERSION") },
            "results": results,
            "failed": failed,
            "at_once": self.trials.as_ref().map(|(task, trials)| trials_json(task, trials)),
            "warnings": self.warnings().iter().map(|(code, message)| json!({ "code": code, "message": message })).collect::<Vec<_>>(),
            "conclusions": [self.conclusion()],
        })
    }
}

/// In parts of the median.
const LARGE_SPREAD: f64 = 0.10;
/// A part of the time of one thread that is worth having.
const HELPS: f64 = 0.9;

fn table(layout: &Layout) -> String {
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
    aligned(&lines, |column| column == 0)
}

fn result(layout: &Layout, row: &Row, summary: &Summary) -> Value {
    let Task { files, bytes, directories } = layout.task;
    json!({
        "command": row.way.name,
        "files": files,
        "bytes": bytes,
        "directories": directories,
        "mean": summary.mean,
        "stddev": summary.stddev,
        "median": summary.median,
        "min": summary.min,
        "max": summary.max,
        "mad": summary.mad,
        "times": row.of(|outcome| outcome.seconds),
        "ratio_to_loop": layout.ratio(summary),
        "longest_stall": row.longest_stall(),
        "stalls": row.samples.iter().map(|outcome| outcome.stall_seconds).collect::<Vec<_>>(),
        "peak_descriptors": row.peak_descriptors,
        "memory_usage_byte": row.of(|outcome| outcome.peak_memory_bytes as f64),
        "side": if row.way.kind.is_ours() { "calve" } else { "peer" },
    })
}

fn trials_table(task: &Task, trials: &[Trial]) -> String {
    let head = ["way", "limit of open files", "most open", "result"].map(str::to_owned).to_vec();
    let line = |trial: &Trial| {
        let peak = trial.outcome.as_ref().ok().and_then(|outcome| outcome.peak_descriptors);
        let peak = peak.map_or_else(|| "-".into(), count);
        vec![trial.way.to_owned(), limit::in_words(trial.limit), peak, trial.result(task)]
    };
    let lines: Vec<Vec<String>> = std::iter::once(head).chain(trials.iter().map(line)).collect();
    aligned(&lines, |column| column == 0 || column == 3)
}

fn trials_json(task: &Task, trials: &[Trial]) -> Value {
    let each = trials.iter().map(|trial| {
        let outcome = trial.outcome.as_ref().ok();
        let error = outcome.and_then(|outcome| outcome.error.as_ref());
        json!({
            "command": trial.way,
            "limit": (trial.limit != u64::MAX).then_some(trial.limit),
            "peak_descriptors": outcome.and_then(|outcome| outcome.peak_descriptors),
            "seconds": outcome.filter(|_| error.is_none()).map(|outcome| outcome.seconds),
            "error": error.map(|(what, _)| what).or(trial.outcome.as_ref().err()),
            "files_not_written": error.and_then(|(_, failed)| *failed),
        })
    });
    json!({ "files": task.files, "bytes": task.bytes, "trials": each.collect::<Vec<_>>() })
}
