//! `calve.bench/1`: a superset of what `hyperfine --export-json` writes.

use serde_json::{Map, Value, json};

use super::hyperfine::{self, Run};
use crate::machine::utc;
use crate::report::{Disk, Report};
use crate::space::Cache;
use crate::stats::{Summary, median};
use crate::workload::{Absent, Row, Sample, Side, Why};

pub(crate) fn document(report: &Report) -> Value {
    let mut facts = Map::new();
    for fact in &report.facts {
        facts.insert(fact.key.into(), fact.json.clone());
    }
    let versions: Map<String, Value> =
        report.versions.iter().map(|(program, version)| (program.clone(), json!(version))).collect();
    json!({
        "schema": "calve.bench/1",
        "bench": report.bench,
        "date": utc(report.began),
        "machine": report.machine.json(),
        "facts": facts,
        "cache": match report.cache { Cache::Warm => "warm", Cache::Cold => "cold" },
        "warmup_rounds": report.warmup,
        "rounds": report.rounds,
        "versions": versions,
        "memory_floor_bytes": report.memory_floor_bytes,
        "results": report.measured().map(|(row, summary)| result(report, row, &summary)).collect::<Vec<_>>(),
        "failed": report.failed().map(failed).collect::<Vec<_>>(),
        "not_run": report.absent.iter().map(absent).collect::<Vec<_>>(),
        "deletions": report.deletions,
        "warnings": report.warnings.iter().map(|warning| json!({
            "code": warning.code,
            "message": warning.message,
        })).collect::<Vec<_>>(),
        "conclusions": report.conclusions(),
    })
}

fn result(report: &Report, row: &Row, summary: &Summary) -> Value {
    let each = |value: fn(&Sample) -> Value| row.samples.iter().map(value).collect::<Vec<_>>();
    let runs = row.samples.iter().map(|sample| Run {
        seconds: sample.seconds,
        user_seconds: sample.user_seconds,
        system_seconds: sample.system_seconds,
        peak_memory_bytes: sample.peak_memory_bytes,
    });
    let hyperfine = hyperfine::fields(&row.workload.command, summary, &runs.collect::<Vec<_>>());
    let disk: Vec<f64> = row.samples.iter().map(|sample| sample.disk_bytes as f64).collect();
    let own = json!({
        "mad": summary.mad,
        "side": match row.workload.side { Side::Peer => "peer", Side::Reference | Side::Calve => "calve" },
        "group": row.workload.group.name,
        "steady": report.steady(row),
        "ratio_to_fastest": report.ratio(row),
        "faster_than": report.beats(row),
        "user_times": each(|sample| json!(sample.user_seconds)),
        "system_times": each(|sample| json!(sample.system_seconds)),
        "disk_bytes": median(&disk).map(|bytes| bytes as i64),
        "gained_bytes": (report.disk == Disk::Gained).then(|| row.gained_bytes()).flatten(),
        "disk_bytes_of_runs": each(|sample| json!(sample.disk_bytes)),
        "flush_times": each(|sample| json!(sample.flush_seconds)),
        "busy_processors_of_others": each(|sample| json!(sample.others)),
        "rounds": each(|sample| json!(sample.round)),
        "positions": each(|sample| json!(sample.position)),
        "said": row.said,
        "remarks": row.remarks,
    });
    hyperfine::joined([hyperfine, own])
}

fn failed(row: &Row) -> Value {
    let failed = row.failed.as_ref();
    json!({
        "command": row.workload.command,
        "side": match row.workload.side { Side::Peer => "peer", Side::Reference | Side::Calve => "calve" },
        "round": failed.map(|failed| failed.round),
        "exit_code": failed.and_then(|failed| failed.exit_code),
        "signal": failed.and_then(|failed| failed.signal),
        "reason": failed.map(|failed| &failed.reason),
    })
}

fn absent(absent: &Absent) -> Value {
    json!({
        "command": absent.command,
        "why": match absent.why { Why::Missing => "missing", Why::Refused => "refused" },
        "reason": absent.reason,
        "remedy": absent.remedy,
    })
}
