//! The report of `calve bench write`.

use calve_receipt::bench::{BenchFailure, BenchResult, ResultDetails, WriteResult};
use calve_receipt::human::{count, size};

use super::node::Node;
use super::runs::RunResult;
use super::ways::{Kind, Task, Way, in_words};
use crate::report::{Report, Section, Table, Usage, counted, or_dash, shown, shown_bytes, times};
use crate::stats::{Summary, median};

/// The same files in so many directories.
pub(super) struct Layout {
    pub(super) task: Task,
    pub(super) rows: Vec<Row>,
}

/// A way with its runs in one layout.
pub(super) struct Row {
    pub(super) way: Way,
    pub(super) samples: Vec<RunResult>,
    /// The open files of a run that was looked at and not timed.
    pub(super) peak_descriptors: Option<u64>,
    /// Why it was not run any more.
    pub(super) failed: Option<String>,
}

pub(super) fn layout_in_words(directories: u64) -> String {
    if directories == 1 { "one directory".into() } else { format!("{} directories", count(directories)) }
}

/// Adds the runs to a report that has its own facts already.
pub(super) fn complete(report: &mut Report, node: &Node, layouts: &[Layout], is_whole: bool) {
    let calve = env!("CARGO_PKG_VERSION");
    let package = node.package.as_ref().map(|package| package.version.as_str());
    let of_package = package.map_or_else(
        || "not found from here, so that the engine is measured without Node (npm install calve)".to_owned(),
        |version| format!("{version}, with calve {calve}"),
    );
    report.circumstance("npm package calve", of_package);
    report.document.facts.npm_package = package.map(str::to_owned);
    let rounds = counted(u64::from(report.document.rounds), "round");
    report.circumstance("Runs", format!("{rounds}, the ways in another order in each; a process for each run"));
    report.versions([("node".into(), node.version.clone()), ("calve".into(), calve.into())]);
    if let Some(version) = package.filter(|version| *version != calve) {
        report.warn("other_version", format!("the npm package is {version}, and this program {calve}"));
    }
    let mut labelled = Vec::new();
    for layout in layouts {
        for row in &layout.rows {
            let label = format!("{}, {}", row.way.name, layout_in_words(layout.task.directories));
            match &row.failed {
                Some(reason) => {
                    let (command, side) = (row.way.name.clone(), Some(row.way.kind.side()));
                    let (directories, reason) = (Some(layout.task.directories), reason.clone());
                    let failure = BenchFailure { command, side, directories, reason, ..BenchFailure::default() };
                    report.fail(&format!("{label}:"), failure);
                }
                None => labelled.push((label, row.seconds())),
            }
        }
        report.document.results.extend(layout.rows.iter().filter_map(|row| layout.result(row)));
        report.sections.push(layout.section());
    }
    report.warn_of_spread(&labelled);
    let conclusion = conclusion(layouts, report.document.machine.cores, is_whole);
    report.document.conclusions.push(conclusion);
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

    /// Returns the seconds of one thread, the best number of several, and its seconds.
    fn threads(&self) -> Option<(f64, usize, f64)> {
        let (_, one) = self.row(|kind| kind.threads() == Some(1))?;
        let several = self.rows.iter().filter_map(|row| {
            let threads = row.way.kind.threads().filter(|&threads| threads > 1)?;
            Some((threads, row.summary()?.median))
        });
        let (threads, best) = several.min_by(|a, b| a.1.total_cmp(&b.1))?;
        Some((one.median, threads, best))
    }

    fn result(&self, row: &Row) -> Option<BenchResult> {
        let Task { files, bytes, directories } = self.task;
        let usages: Vec<Usage> = row.samples.iter().map(|outcome| outcome.usage).collect();
        let details = WriteResult {
            side: row.way.kind.side(),
            files,
            bytes,
            directories,
            ratio_to_loop: self.ratio(&row.summary()?),
            longest_stall: row.longest_stall(),
            stalls: row.samples.iter().map(|outcome| outcome.stall_seconds).collect(),
            peak_descriptors: row.peak_descriptors,
        };
        Some(BenchResult { times: times(&row.way.name, &usages), details: ResultDetails::Write(details) })
    }

    fn section(&self) -> Section {
        const KEY: &str = "Ratio: to writeFileSync in a loop. Stall: the longest time that the event loop was blocked, in all runs. \
             Descriptors: the most that were open in a run that was not timed, with those that Node has anyway.";
        let Task { files, bytes, directories } = self.task;
        let head = ["way", "median", "min", "max", "stddev", "ratio", "stall", "descriptors", "memory"];
        Section {
            title: format!("{} files of {}, in {}", count(files), size(bytes), layout_in_words(directories)),
            tables: vec![Table {
                head: head.map(str::to_owned).to_vec(),
                text_columns: 1,
                lines: self.rows.iter().map(|row| self.line(row)).collect(),
                ..Table::default()
            }],
            note: KEY,
            ..Section::default()
        }
    }

    fn line(&self, row: &Row) -> Vec<String> {
        let Some(summary) = row.summary() else { return vec![row.way.name.clone(), "failed".into()] };
        let memory = row.samples.iter().map(|outcome| outcome.usage.peak_memory_bytes as f64);
        vec![
            row.way.name.clone(),
            shown(summary.median),
            shown(summary.min),
            shown(summary.max),
            or_dash(summary.stddev, shown),
            or_dash(self.ratio(&summary), |ratio| format!("{ratio:.2}")),
            or_dash(row.longest_stall(), shown),
            or_dash(row.peak_descriptors, count),
            or_dash(median(&memory.collect::<Vec<_>>()), shown_bytes),
        ]
    }
}

impl Row {
    pub(super) fn new(way: Way) -> Self {
        Self { way, samples: Vec::new(), peak_descriptors: None, failed: None }
    }

    fn seconds(&self) -> Vec<f64> {
        self.samples.iter().map(|outcome| outcome.usage.seconds).collect()
    }

    fn summary(&self) -> Option<Summary> {
        if self.failed.is_some() { None } else { Summary::of(&self.seconds()) }
    }

    /// Returns the longest stall of all runs.
    fn longest_stall(&self) -> Option<f64> {
        self.samples.iter().filter_map(|outcome| outcome.stall_seconds).reduce(f64::max)
    }
}

/// A part of the time of one thread that is worth having.
const HELPS: f64 = 0.9;

/// Says whether threads help here, and why.
fn conclusion(layouts: &[Layout], cores: usize, is_whole: bool) -> String {
    let measured: Vec<_> =
        layouts.iter().filter_map(|layout| Some((layout.task.directories, layout.threads()?))).collect();
    if measured.is_empty() && !is_whole {
        return "Whether threads help here is not known: the ways with one thread and with several were not asked for."
            .into();
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
        (false, false) if cores == 1 => "there is one processor",
        (false, false) => {
            "making files is the most of it, and this file system does that for one thread at a time, or other programs kept the \
             processors busy"
        }
    };
    let verdict = if flat || spread { "Threads help here" } else { "Threads do not help here" };
    format!("{verdict}: {parts}; {why}.")
}
