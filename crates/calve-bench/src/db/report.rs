//! What `calve bench db` has to tell.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use calve_core::{Shown, Strategy};
use calve_db::Template;
use serde_json::{Map, Value, json};

use super::sample::Sample;
use crate::document::Document;
use crate::error::{BenchError, FailureKind};
use crate::export::markdown::aligned;
use crate::machine::{Machine, utc};
use crate::stats::{Summary, median};
use calve_receipt as receipt;
use calve_receipt::human::{count, duration, size};

/// The report of `calve bench db`.
pub struct Report {
    pub(super) began: SystemTime,
    pub(super) machine: Machine,
    pub(super) file_system: String,
    pub(super) mount_options: String,
    pub(super) directory: PathBuf,
    pub(super) template: Template,
    pub(super) query: String,
    pub(super) write: Write,
    pub(super) runs: u32,
    /// The write load, in words.
    pub(super) load: Option<String>,
    /// The program for it that is not installed.
    pub(super) missing: Option<&'static str>,
    pub(super) rows: Vec<Row>,
}

/// The statement of the ten writes.
pub(super) struct Write {
    pub(super) sql: String,
    pub(super) is_given: bool,
}

/// A strategy with its runs.
pub(super) struct Row {
    pub(super) strategy: Strategy,
    pub(super) samples: Vec<Sample>,
    /// Why it does not work here.
    pub(super) refused: Option<String>,
    /// Why it was not run any more.
    pub(super) failed: Option<String>,
}

/// A column of times: its name in the table and in JSON, and its value in a run.
pub(super) struct Time {
    pub(super) title: &'static str,
    key: &'static str,
    of: fn(&Sample) -> Option<f64>,
}

pub(super) const TIMES: [Time; 6] = [
    Time { title: "clone", key: "clone_ms", of: |sample| Some(sample.clone_ms) },
    Time { title: "first query", key: "first_query_ms", of: |sample| Some(sample.ready_ms) },
    Time { title: "first write", key: "first_write_ms", of: |sample| sample.writes_ms.first().copied() },
    Time { title: "tenth write", key: "tenth_write_ms", of: |sample| sample.writes_ms.get(9).copied() },
    Time { title: "worst latency", key: "worst_latency_ms", of: |sample| Some(sample.load.as_ref()?.worst_ms) },
    Time { title: "stop", key: "stop_ms", of: |sample| Some(sample.stop_ms) },
];

impl Row {
    pub(super) fn new(strategy: Strategy) -> Self {
        Self { strategy, samples: Vec::new(), refused: None, failed: None }
    }

    pub(super) fn values(&self, time: &Time) -> Vec<f64> {
        self.samples.iter().filter_map(time.of).collect()
    }

    fn per_second(&self) -> Vec<f64> {
        self.samples.iter().filter_map(|sample| Some(sample.load.as_ref()?.per_second)).collect()
    }

    fn disk_bytes(&self) -> Vec<f64> {
        self.samples.iter().map(|sample| sample.disk_bytes as f64).collect()
    }

    fn memory_bytes(&self) -> Vec<f64> {
        self.samples.iter().filter_map(|sample| Some(sample.memory_bytes? as f64)).collect()
    }
}

pub(super) fn shown(ms: f64) -> String {
    duration(Duration::from_secs_f64(ms.max(0.0) / 1000.0))
}

impl Document for Report {
    fn json(&self) -> Value {
        self.in_json()
    }

    fn markdown(&self) -> String {
        self.in_markdown()
    }

    fn html(&self) -> String {
        super::html::document(self)
    }

    fn verdict(&self) -> Result<(), BenchError> {
        let Some(row) = self.rows.iter().find(|row| row.failed.is_some()) else { return Ok(()) };
        let text = format!("the servers by {} failed", row.strategy);
        let hint = "the report says why; try one with `calve db start --strategy`";
        Err(BenchError::stated(FailureKind::Failed, text, hint))
    }
}

impl Report {
    pub(super) fn measured(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.failed.is_none() && !row.samples.is_empty())
    }

    /// What a reader must know to judge the numbers.
    pub(super) fn circumstances(&self) -> Vec<(&'static str, String)> {
        let (machine, template) = (&self.machine, &self.template);
        let memory = size(machine.memory_bytes);
        let whose = if self.write.is_given { "" } else { ": a row of the largest table" };
        let load = match (&self.load, self.missing) {
            (Some(load), _) => load.clone(),
            (None, Some(missing)) => format!("none: `{missing}` is not installed"),
            (None, None) => "none".into(),
        };
        vec![
            ("Date", utc(self.began)),
            ("Machine", format!("{}, {} cores, {memory} of memory, {}", machine.cpu, machine.cores, machine.kernel)),
            ("Place", format!("`{}`: {}, {}", Shown(&self.directory), self.file_system, self.mount_options)),
            (
                "Template",
                format!(
                    "`{}`: {}, {} files, {}",
                    template.name,
                    template.version,
                    count(template.files),
                    size(template.bytes)
                ),
            ),
            ("First query", format!("`{}`, timed from the request for a server on, cloning included", self.query)),
            ("Writes", format!("`{}`{whose}", self.write.sql)),
            ("Write load", load),
            ("Runs", format!("{} of each strategy, in another order each time, with warm caches", self.runs)),
            ("Disk", "what the file system shows as used more after the tenth write, on the disk".into()),
            ("Memory", "of all the server's processes, shared memory counted once, the most seen".into()),
        ]
    }

    /// The head and a line for each strategy.
    pub(super) fn table(&self) -> Vec<Vec<String>> {
        let mut head = vec!["strategy".to_owned()];
        head.extend(TIMES.iter().map(|time| time.title.to_owned()));
        head.extend(["writes/s", "disk", "memory"].map(str::to_owned));
        let middle = |values: Vec<f64>, shown: fn(f64) -> String| median(&values).map_or_else(|| "-".into(), shown);
        let mut lines = vec![head];
        for row in self.measured() {
            let mut line = vec![row.strategy.to_string()];
            line.extend(TIMES.iter().map(|time| middle(row.values(time), shown)));
            line.push(middle(row.per_second(), |number| count(number.round() as u64)));
            line.push(middle(row.disk_bytes(), |bytes| size(bytes.max(0.0) as u64)));
            line.push(middle(row.memory_bytes(), |bytes| size(bytes as u64)));
            lines.push(line);
        }
        lines
    }

    /// By second, the head and a line for each strategy: the worst latency of all runs.
    pub(super) fn timeline(&self) -> Option<Vec<Vec<String>>> {
        let loads = |row: &Row| row.samples.iter().filter_map(|sample| sample.load.clone()).collect::<Vec<_>>();
        let seconds = self.measured().flat_map(loads).map(|load| load.timeline.len()).max().filter(|most| *most > 0)?;
        let mut lines = vec![vec!["strategy".to_owned()]];
        lines[0].extend((1..=seconds).map(|second| format!("{second} s")));
        for row in self.measured() {
            let mut line = vec![row.strategy.to_string()];
            let loads = loads(row);
            line.extend((0..seconds).map(|second| {
                let worst = loads.iter().filter_map(|load| Some(load.timeline.get(second)?.worst_ms));
                worst.reduce(f64::max).map_or_else(|| "-".into(), shown)
            }));
            lines.push(line);
        }
        Some(lines)
    }

    /// What did not work here or failed, and why.
    pub(super) fn absent(&self) -> Vec<String> {
        let told = self.rows.iter().filter_map(|row| match (&row.refused, &row.failed) {
            (Some(reason), _) => Some(format!("{}: not possible here: {reason}", row.strategy)),
            (_, Some(reason)) => Some(format!("{}: failed and was not run again: {reason}", row.strategy)),
            _ => None,
        });
        told.collect()
    }

    fn in_markdown(&self) -> String {
        let mut text = String::from("# calve bench db\n\n");
        for (label, line) in self.circumstances() {
            text.push_str(&format!("- {label}: {line}\n"));
        }
        text.push_str("\nMedians:\n\n");
        text.push_str(&aligned(&self.table(), |column| column == 0));
        if let Some(timeline) = self.timeline() {
            text.push_str("\nWorst latency in each second of the write load, of all runs:\n\n");
            text.push_str(&aligned(&timeline, |column| column == 0));
        }
        if !self.absent().is_empty() {
            text.push_str("\nNot measured:\n\n");
            self.absent().iter().for_each(|line| text.push_str(&format!("- {line}\n")));
        }
        text
    }

    fn in_json(&self) -> Value {
        let template = &self.template;
        json!({
            "schema": "calve.bench/1",
            "bench": "db",
            "date": utc(self.began),
            "machine": self.machine.json(),
            "facts": {
                "place": {
                    "path": receipt::path(&self.directory),
                    "file_system": self.file_system,
                    "mount_options": self.mount_options,
                },
                "template": {
                    "name": template.name,
                    "engine": template.engine,
                    "files": template.files,
                    "bytes": template.bytes,
                },
                "query": self.query,
                "write": self.write.sql,
                "load": self.load,
            },
            "rounds": self.runs,
            "versions": { "calve": env!("CARGO_PKG_VERSION"), template.engine.as_str(): template.version },
            "results": self.measured().map(result).collect::<Vec<_>>(),
            "failed": self.rows.iter().filter_map(|row| {
                Some(json!({ "strategy": row.strategy.to_string(), "reason": row.failed.as_ref()? }))
            }).collect::<Vec<_>>(),
            "not_run": self.not_run(),
        })
    }

    fn not_run(&self) -> Vec<Value> {
        let refused = self.rows.iter().filter_map(|row| {
            let reason = row.refused.as_ref()?;
            Some(json!({ "strategy": row.strategy.to_string(), "why": "refused", "reason": reason }))
        });
        let missing = self.missing.map(|program| json!({ "program": program, "why": "missing" }));
        refused.chain(missing).collect()
    }
}

fn result(row: &Row) -> Value {
    let mut document = Map::new();
    document.insert("strategy".into(), json!(row.strategy.to_string()));
    let times = TIMES.iter().map(|time| (time.key, row.values(time)));
    let others = [
        ("transactions_per_second", row.per_second()),
        ("disk_bytes", row.disk_bytes()),
        ("memory_bytes", row.memory_bytes()),
    ];
    for (key, values) in times.chain(others) {
        let summary = Summary::of(&values).map(|summary| {
            json!({
                "median": summary.median,
                "min": summary.min,
                "max": summary.max,
                "mad": summary.mad,
                "values": values,
            })
        });
        document.insert(key.into(), json!(summary));
    }
    let loads = row.samples.iter().filter_map(|sample| sample.load.as_ref());
    let timelines = loads.map(|load| {
        let seconds = load.timeline.iter();
        let second = |second: &super::load::Second| json!([second.transactions, second.worst_ms]);
        seconds.map(second).collect::<Vec<_>>()
    });
    document.insert("timelines".into(), json!(timelines.collect::<Vec<_>>()));
    document.insert("writes_ms".into(), json!(row.samples.iter().map(|it| &it.writes_ms).collect::<Vec<_>>()));
    Value::Object(document)
}
