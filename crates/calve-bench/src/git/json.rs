//! `calve.bench.git/1`; docs/bench-git.md describes it.

use serde_json::{Map, Value, json};

use super::link::Link;
use super::report::{Report, Row};
use super::sample::Sample;
use crate::export::hyperfine::{self, Run};
use crate::machine::utc;
use crate::stats::{Summary, median};

pub(crate) fn document(report: &Report) -> Value {
    let versions: Map<String, Value> =
        report.versions.iter().map(|(program, version)| ((*program).to_owned(), json!(version))).collect();
    let of_all = |of: fn(&super::report::Described) -> Option<bool>| {
        let states: Option<Vec<bool>> = report.repositories.iter().map(of).collect();
        states.map(|states| states.iter().all(|state| *state))
    };
    json!({
        "schema": "calve.bench.git/1",
        "bench": "git",
        "date": utc(report.began),
        "machine": report.machine.json(),
        "versions": versions,
        "server": report.server,
        "protocol": report.protocol,
        "bitmaps": of_all(|described| described.bitmaps),
        "commit_graph": of_all(|described| described.commit_graph),
        "automatic_gc": false,
        "link": report.link.as_ref().map(Link::json),
        "concurrency": report.clients,
        "rounds": report.rounds,
        "duration_seconds": report.duration.map(|duration| duration.as_secs_f64()),
        "fetches": report.fetches,
        "push_every_seconds": report.push_every.as_secs_f64(),
        "memory_floor_bytes": report.memory_floor_bytes,
        "repositories": report.repositories.iter().map(|described| json!({
            "name": described.name,
            "source": described.source,
            "branch": described.branch,
            "file": described.file,
            "back": described.back,
            "bitmaps": described.bitmaps,
            "commit_graph": described.commit_graph,
            "shape": described.shape,
        })).collect::<Vec<_>>(),
        "results": report.rows.iter().map(|row| result(report, row)).collect::<Vec<_>>(),
        "failed": report.broken.iter().map(|(repository, case, broken)| json!({
            "repository": report.repositories[*repository].name,
            "test": case.name,
            "operation": broken.step.name(),
            "command": broken.command,
            "round": broken.round,
            "exit_code": broken.exit_code,
            "reason": broken.reason,
        })).collect::<Vec<_>>(),
        "accounting": report.accounts.map(|accounts| json!({
            "host_cpu_ms": accounts.host_seconds.map(|seconds| seconds * 1000.0),
            "charged_cpu_ms": accounts.charged_seconds * 1000.0,
            "pushes_cpu_ms": accounts.pushes_seconds * 1000.0,
            "not_charged_cpu_ms": accounts.nobodys_seconds * 1000.0,
            "bench_cpu_ms": accounts.own_seconds * 1000.0,
            "difference_percent": accounts.difference_percent(),
        })),
        "against_daemon": report.against_daemon().into_iter().map(|(repository, ratio)| json!({
            "repository": report.repositories[repository].name,
            "ratio": ratio,
        })).collect::<Vec<_>>(),
        "warnings": report.warnings.iter().map(|warning| json!({
            "code": warning.code,
            "message": warning.message,
        })).collect::<Vec<_>>(),
        "conclusions": report.conclusions(),
    })
}

fn result(report: &Report, row: &Row) -> Value {
    let seconds = row.seconds();
    let each = |value: &dyn Fn(&Sample) -> Value| row.samples.iter().map(value).collect::<Vec<_>>();
    let server = row.server_cpu_ms();
    let server_summary = Summary::of(&server);
    let what = json!({
        "repository": report.repositories[row.repository].name,
        "test": row.case.name,
        "operation": row.step.name(),
        "clone": row.case.clone.name(),
        "fetch": row.case.fetch.map(|fetch| fetch.name()),
    });
    let runs = row.samples.iter().map(|sample| Run {
        seconds: sample.seconds,
        user_seconds: sample.user_seconds,
        system_seconds: sample.system_seconds,
        peak_memory_bytes: sample.peak_memory_bytes,
    });
    let hyperfine = hyperfine::fields(&row.command, &seconds, &runs.collect::<Vec<_>>());
    let own = json!({
        "mad": seconds.mad,
        "server_cpu_ms_median": median(&server),
        "server_cpu_ms_min": server_summary.map(|summary| summary.min),
        "server_cpu_ms_max": server_summary.map(|summary| summary.max),
        "server_cpu_ms_mad": server_summary.map(|summary| summary.mad),
        "server_cpu_ms": if server.is_empty() { Value::Null } else { json!(server) },
        "server_upload_pack_cpu_ms_median": row.upload_pack_cpu_ms(),
        "server_pack_objects_cpu_ms_median": row.pack_objects_cpu_ms(),
        "server_peak_memory_bytes": row.server_peak_memory_bytes(),
        "requests": row.requests(),
        "bytes_received": row.bytes_received(),
        "bytes_sent": row.bytes_sent(),
        "rounds": each(&|sample| json!(sample.round)),
        "ordinals": each(&|sample| json!(sample.ordinal)),
        "said": row.samples.iter().map(|sample| sample.said.as_str()).find(|said| !said.is_empty()).unwrap_or(""),
    });
    hyperfine::joined([what, hyperfine, own])
}
