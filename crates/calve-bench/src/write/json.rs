//! `calve.bench/1`: a superset of what `hyperfine --export-json` writes.

use serde_json::{Value, json};

use super::Row;
use super::limit::Trial;
use super::report::{Layout, Report};
use super::ways::Task;
use crate::export::hyperfine::{self, Run};
use crate::machine::utc;
use crate::stats::Summary;
use calve_receipt as receipt;

pub(crate) fn document(report: &Report) -> Value {
    let rows = || report.layouts.iter().flat_map(|layout| layout.rows.iter().map(move |row| (layout, row)));
    json!({
        "schema": "calve.bench/1",
        "bench": "write",
        "date": utc(report.began),
        "machine": report.machine.json(),
        "facts": {
            "commands_chosen": report.chosen.as_ref().map(|chosen| &chosen.json),
            "target": {
                "path": receipt::path(&report.into),
                "file_system": report.file_system,
                "mount_options": report.mount_options,
            },
            "npm_package": report.package,
        },
        "rounds": report.rounds,
        "versions": { "node": report.node, "calve": env!("CARGO_PKG_VERSION") },
        "results": rows().filter_map(|(layout, row)| Some(result(layout, row, &row.summary()?))).collect::<Vec<_>>(),
        "failed": rows().filter_map(|(layout, row)| Some(json!({
            "command": row.way.name,
            "directories": layout.task.directories,
            "reason": row.failed.as_ref()?,
        }))).collect::<Vec<_>>(),
        "at_once": report.trials().map(|(task, trials)| at_once(task, trials)),
        "warnings": report.warnings().iter().map(|(code, message)| json!({
            "code": code,
            "message": message,
        })).collect::<Vec<_>>(),
        "conclusions": [report.conclusion()],
    })
}

fn result(layout: &Layout, row: &Row, summary: &Summary) -> Value {
    let Task { files, bytes, directories } = layout.task;
    // The times are the writing alone, as the program took them; processor time is the whole program's.
    let runs = row.samples.iter().map(|outcome| Run {
        seconds: outcome.seconds,
        user_seconds: outcome.user_seconds,
        system_seconds: outcome.system_seconds,
        peak_memory_bytes: outcome.peak_memory_bytes,
    });
    let hyperfine = hyperfine::fields(&row.way.name, summary, &runs.collect::<Vec<_>>());
    let own = json!({
        "mad": summary.mad,
        "side": if row.way.kind.is_ours() { "calve" } else { "peer" },
        "files": files,
        "bytes": bytes,
        "directories": directories,
        "ratio_to_loop": layout.ratio(summary),
        "longest_stall": row.longest_stall(),
        "stalls": row.samples.iter().map(|outcome| outcome.stall_seconds).collect::<Vec<_>>(),
        "peak_descriptors": row.peak_descriptors,
    });
    hyperfine::joined([hyperfine, own])
}

fn at_once(task: &Task, trials: &[Trial]) -> Value {
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
