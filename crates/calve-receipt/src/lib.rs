//! The JSON shapes of Calve's reports, versioned: what the program prints, and what the packages for Node and Python hand over.

#[cfg(unix)]
#[allow(missing_docs, reason = "the fields are described in docs/benchmarks.md and docs/bench-git.md")]
pub mod bench;
mod error;
pub mod human;
mod sys;

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use calve_core::{Bytes, CloneReport, Entries, Plan, ProbeReport, Refusal, Remedy, RemoveReport, Strategy, Warning};
use serde_json::{Value, json};

pub use crate::error::{ErrorReceipt, code, errno, error};

/// A path as text, or `{"bytes_base64": …}` when it is none.
pub fn path(path: &Path) -> Value {
    match named(path).to_str() {
        Some(text) => text.into(),
        None => json!({ "bytes_base64": STANDARD.encode(path.as_os_str().as_encoded_bytes()) }),
    }
}

/// The root of a tree, relative to itself, is `.`.
pub fn named(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// `calve.clone/1`.
pub fn clone(report: &CloneReport) -> Value {
    json!({
        "schema": "calve.clone/1",
        "src": path(&report.src),
        "dst": path(&report.dst),
        "strategy": report.strategy.name(),
        "refused": refusals(&report.refused),
        "entries": report.entries.as_ref().map(entries),
        "bytes": report.bytes.as_ref().map(bytes),
        "fell_back": report.fell_back.iter().map(|fell| json!({
            "from": fell.from.name(),
            "to": fell.to.name(),
            "errno": sys::error_name(fell.errno),
            "files": fell.files,
            "first_path": path(&fell.first_path),
        })).collect::<Vec<_>>(),
        "skipped": report.skipped.iter().map(|skipped| json!({
            "path": path(&skipped.path),
            "reason": skipped.reason,
        })).collect::<Vec<_>>(),
        "changed": report.changed.iter().map(|changed| path(changed)).collect::<Vec<_>>(),
        "warnings": warnings(&report.warnings),
        "elapsed_ms": milliseconds(report.elapsed),
    })
}

/// `calve.clones/1`.
pub fn clones(reports: &[Value]) -> Value {
    json!({ "schema": "calve.clones/1", "clones": reports })
}

/// `calve.plan/1`: a dry run of one clone.
pub fn plan(src: &Path, dst: &Path, plan: &Plan) -> Value {
    json!({
        "schema": "calve.plan/1",
        "src": path(src),
        "dst": path(dst),
        "strategy": plan.strategy.name(),
        "refused": refusals(&plan.refused),
    })
}

/// `calve.plans/1`: a dry run of several.
pub fn plans(plans: &[Value]) -> Value {
    json!({ "schema": "calve.plans/1", "plans": plans })
}

/// `calve.remove/1`.
pub fn removals(removed: &[Value]) -> Value {
    json!({ "schema": "calve.remove/1", "removed": removed })
}

/// `calve.remove/1`, of a dry run.
pub fn would_remove(paths: &[Value]) -> Value {
    json!({ "schema": "calve.remove/1", "removed": [], "would_remove": paths })
}

/// One item of `removed` in `calve.remove/1`.
pub fn remove(report: &RemoveReport) -> Value {
    json!({
        "path": path(&report.path),
        "trash": report.trashed.as_ref().map(|trashed| path(&trashed.parent.join(&trashed.name))),
        "deleted_entries": report.deleted,
        "warnings": warnings(&report.warnings),
        "elapsed_ms": milliseconds(report.elapsed),
    })
}

/// `calve.probe/1`, with each remedy as `words` has it.
pub fn probe(report: &ProbeReport, words: impl Fn(&Remedy) -> String) -> Value {
    let place = |place: &calve_core::PlaceReport| {
        json!({
            "path": path(&place.path),
            "file_system": place.file_system,
            "device": format!("{}:{}", place.device.0, place.device.1),
        })
    };
    json!({
        "schema": "calve.probe/1",
        "src": place(&report.src),
        "dst": place(&report.dst),
        "chosen": report.chosen.map(Strategy::name),
        "strategies": report.offers.iter().map(|offer| json!({
            "strategy": offer.strategy.name(),
            "available": offer.refused.is_none(),
            "reason": offer.refused.as_ref().map(|refused| &refused.reason),
            "remedy": offer.refused.as_ref().and_then(|refused| refused.remedy.as_ref().map(&words)),
        })).collect::<Vec<_>>(),
    })
}

fn refusals(refused: &[Refusal]) -> Vec<Value> {
    refused.iter().map(|refusal| json!({ "strategy": refusal.strategy.name(), "reason": refusal.reason })).collect()
}

fn entries(entries: &Entries) -> Value {
    json!({
        "directories": entries.directories,
        "files": entries.files,
        "symlinks": entries.symlinks,
        "fifos": entries.fifos,
        "devices": entries.devices,
        "hard_links": entries.hard_links,
    })
}

fn bytes(bytes: &Bytes) -> Value {
    json!({
        "apparent": bytes.apparent,
        "shared": bytes.shared,
        "written": bytes.written,
        "inlined": bytes.inlined,
    })
}

/// Warnings, as every receipt has them.
pub fn warnings(warnings: &[Warning]) -> Vec<Value> {
    warnings
        .iter()
        .map(|warning| match &warning.path {
            Some(first) => json!({ "code": warning.code, "path": path(first), "message": warning.message }),
            None => json!({ "code": warning.code, "message": warning.message }),
        })
        .collect()
}

/// To the microsecond.
pub fn milliseconds(elapsed: std::time::Duration) -> f64 {
    (elapsed.as_secs_f64() * 1_000_000.0).round() / 1000.0
}

/// `calve.write/1`.
#[cfg(unix)]
pub fn write(report: &calve_core::WriteReport) -> Value {
    json!({
        "schema": "calve.write/1",
        "files": report.files,
        "bytes": report.bytes,
        "directories": report.directories,
        "threads": report.threads,
        "failures": report.failures.iter().map(|failure| json!({
            "index": failure.index,
            "error": error(&failure.error),
        })).collect::<Vec<_>>(),
        "elapsed_ms": milliseconds(report.elapsed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_is_printed_as_nothing() {
        assert_eq!((path(Path::new("")), path(Path::new("a/b"))), (json!("."), json!("a/b")));
    }
}
