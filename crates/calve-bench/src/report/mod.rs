//! The one report of all benches: the document, and the tables that a terminal shows.

mod markdown;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use calve_receipt::bench::{
    BenchFailure, BenchReport, BenchSide, BenchWarning, Conditions, Facts, Machine, Spread, Times,
};
use calve_receipt::human::{duration, size};

use crate::error::BenchError;
use crate::machine::{self, utc};
use crate::remedy::Remedy;
use crate::stats::{mean, spread, stddev};

pub struct Report {
    pub document: BenchReport,
    /// Facts that a reader must know to judge the numbers.
    pub(crate) circumstances: Vec<(&'static str, String)>,
    pub(crate) sections: Vec<Section>,
    pub(crate) notes: Vec<String>,
}

#[derive(Default)]
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) lines: Vec<(&'static str, String)>,
    pub(crate) tables: Vec<Table>,
    pub(crate) note: &'static str,
}

pub(crate) struct Table {
    /// Empty when the section's title says it.
    pub(crate) title: &'static str,
    pub(crate) head: Vec<&'static str>,
    /// Number of text columns on the left. A column without a title is text, too.
    pub(crate) text_columns: usize,
    pub(crate) lines: Vec<Vec<String>>,
}

impl Section {
    /// Creates a section of one table, whose first column is text.
    pub(crate) fn of_table(title: impl Into<String>, head: Vec<&'static str>, lines: Vec<Vec<String>>) -> Self {
        let table = Table { title: "", head, text_columns: 1, lines };
        Self { title: title.into(), tables: vec![table], ..Self::default() }
    }
}

impl Report {
    pub(crate) fn new(bench: &'static str, began: SystemTime, machine: Machine) -> Self {
        let date = utc(began);
        let (cpu, cores, kernel) = (&machine.cpu, machine.cores, &machine.kernel);
        let memory = machine.memory_bytes.map(|bytes| format!(", {} of memory", size(bytes))).unwrap_or_default();
        let text = format!("{cpu}, {cores} cores{memory}, {kernel}");
        let mut report = Self {
            circumstances: vec![("Date", date.clone()), ("Machine", text)],
            document: BenchReport {
                schema: "calve.bench/1",
                bench,
                date,
                machine,
                facts: Facts::default(),
                conditions: Conditions::None {},
                rounds: 0,
                versions: BTreeMap::new(),
                memory_floor_bytes: machine::kibibytes("/proc/self/status", "VmHWM"),
                results: Vec::new(),
                failed: Vec::new(),
                not_run: Vec::new(),
                warnings: Vec::new(),
                conclusions: Vec::new(),
            },
            sections: Vec::new(),
            notes: Vec::new(),
        };
        let cores = report.document.machine.cores;
        if let Some(load) = report.document.machine.load_average_before.filter(|load| *load > cores as f64 / 2.0) {
            let message = format!("the machine was busy before the first run: load average {load:.1} on {cores} cores");
            report.warn("busy_before", message);
        }
        report
    }

    /// The document has the value in `facts` or elsewhere.
    pub(crate) fn circumstance(&mut self, label: &'static str, text: impl Into<String>) {
        self.circumstances.push((label, text.into()));
    }

    pub(crate) fn versions(&mut self, versions: impl IntoIterator<Item = (String, String)>) {
        let versions: Vec<(String, String)> = versions.into_iter().collect();
        let lines: Vec<String> = versions.iter().map(|(program, version)| format!("{program}: {version}")).collect();
        self.circumstance("Versions", lines.join("; "));
        self.document.versions = versions.into_iter().collect();
    }

    pub(crate) fn warn(&mut self, code: &'static str, message: String) {
        self.document.warnings.push(BenchWarning { code, message });
    }

    /// Warns of other programs that were busy. `others` has one value for each run.
    pub(crate) fn warn_of_others(&mut self, others: &[Option<f64>]) {
        let busy: Vec<f64> = others.iter().flatten().copied().filter(|others| *others > OTHERS_DISTURB).collect();
        if let Some(most) = busy.iter().copied().reduce(f64::max) {
            let (number, total, cores) = (busy.len(), others.len(), self.document.machine.cores);
            let message = format!(
                "other programs were busy during {number} of {total} runs, with up to {most:.1} of {cores} cores"
            );
            self.warn("busy_during", message);
        }
    }

    pub(crate) fn warn_of_spread(&mut self, rows: &[(String, Vec<f64>)]) {
        let spreads = rows.iter().filter_map(|(label, seconds)| Some((stddev(seconds)? / mean(seconds), label)));
        let mut wide: Vec<_> = spreads.filter(|(spread, _)| *spread > LARGE_SPREAD).collect();
        if !wide.is_empty() {
            wide.sort_by(|a, b| b.0.total_cmp(&a.0));
            let worst: Vec<String> =
                wide.iter().take(NAMED).map(|(spread, label)| format!("{label} {:.0} %", spread * 100.0)).collect();
            let more = wide.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            let worst = worst.join(", ");
            let message = format!("large spread, the standard deviation in percent of the mean: {worst}{more}");
            self.warn("large_spread", message);
        }
    }

    pub(crate) fn fail(&mut self, label: &str, failure: BenchFailure) {
        self.warn("failed", format!("{label} failed and was not run again: {}", failure.reason));
        self.document.failed.push(failure);
    }

    /// Fails if a command failed that is not a peer's.
    pub fn verdict(&self) -> Result<(), BenchError> {
        let ours = |failure: &&BenchFailure| failure.side != Some(BenchSide::Peer);
        let Some(failure) = self.document.failed.iter().find(ours) else { return Ok(()) };
        let test = failure.test.map_or_else(String::new, |test| format!("{test}: "));
        let text = format!("{test}`{}` failed: {}", failure.command, failure.reason);
        let hint = if failure.disk_full { Remedy::FreeSpaceOrChooseAnotherPlace } else { Remedy::RunByHand };
        Err(BenchError::failed(text, hint))
    }
}

/// One run as hyperfine counts it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    pub(crate) seconds: f64,
    pub(crate) user_seconds: f64,
    pub(crate) system_seconds: f64,
    pub(crate) peak_memory_bytes: u64,
}

/// Makes hyperfine's part of a row. `None` without runs.
pub(crate) fn times(command: &str, runs: &[Usage]) -> Option<Times> {
    let Spread { median, min, max, values: times } = spread(runs.iter().map(|run| run.seconds).collect())?;
    let mean_of = |value: fn(&Usage) -> f64| runs.iter().map(value).sum::<f64>() / runs.len() as f64;
    Some(Times {
        command: command.to_owned(),
        mean: mean(&times),
        stddev: stddev(&times),
        median,
        user: mean_of(|run| run.user_seconds),
        system: mean_of(|run| run.system_seconds),
        min,
        max,
        times,
        memory_usage_byte: runs.iter().map(|run| run.peak_memory_bytes).collect(),
        exit_codes: vec![0; runs.len()],
    })
}

/// In processors.
const OTHERS_DISTURB: f64 = 0.25;
const LARGE_SPREAD: f64 = 0.10;
/// Rows that a warning names.
const NAMED: usize = 5;

pub(crate) fn shown(seconds: f64) -> String {
    duration(Duration::from_secs_f64(seconds.max(0.0)))
}

pub(crate) fn shown_ms(milliseconds: f64) -> String {
    shown(milliseconds / 1000.0)
}

/// Formats bytes, which may be negative.
pub(crate) fn shown_bytes(bytes: f64) -> String {
    let sign = if bytes < 0.0 { "-" } else { "" };
    format!("{sign}{}", size(bytes.abs() as u64))
}

/// Formats a value, or a dash if it is not known.
pub(crate) fn or_dash<T>(value: Option<T>, shown: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".into(), shown)
}
