//! Receipts: the JSON shapes, versioned, and the one line for people.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use calve_core::{Bytes, CloneReport, Entries, Plan, ProbeReport, Refusal, RemoveReport, Shown, Strategy, Warning};
use serde_json::{Value, json};

use crate::commands::probe::Measurements;
use crate::measured;
use crate::output::{count, duration, entries as entry_count, size};
use crate::sys;

/// A path as text, or `{"bytes_base64": …}` when it is none.
pub(crate) fn path(path: &Path) -> Value {
    match named(path).to_str() {
        Some(text) => text.into(),
        None => json!({ "bytes_base64": STANDARD.encode(path.as_os_str().as_encoded_bytes()) }),
    }
}

/// The root of a tree, relative to itself, is `.`.
fn named(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// `calve.clone/1`.
pub(crate) fn clone(report: &CloneReport) -> Value {
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
pub(crate) fn clones(reports: &[Value]) -> Value {
    json!({ "schema": "calve.clones/1", "clones": reports })
}

/// `calve.plan/1`: a dry run of one clone.
pub(crate) fn plan(src: &Path, dst: &Path, plan: &Plan) -> Value {
    json!({
        "schema": "calve.plan/1",
        "src": path(src),
        "dst": path(dst),
        "strategy": plan.strategy.name(),
        "refused": refusals(&plan.refused),
    })
}

/// `calve.plans/1`: a dry run of several.
pub(crate) fn plans(plans: &[Value]) -> Value {
    json!({ "schema": "calve.plans/1", "plans": plans })
}

/// `calve.remove/1`.
pub(crate) fn removals(removed: &[Value]) -> Value {
    json!({ "schema": "calve.remove/1", "removed": removed })
}

/// `calve.remove/1`, of a dry run.
pub(crate) fn would_remove(paths: &[Value]) -> Value {
    json!({ "schema": "calve.remove/1", "removed": [], "would_remove": paths })
}

/// One item of `removed` in `calve.remove/1`.
pub(crate) fn remove(report: &RemoveReport) -> Value {
    json!({
        "path": path(&report.path),
        "trash": report.trashed.as_ref().map(|trashed| path(&trashed.parent.join(&trashed.name))),
        "deleted_entries": report.deleted,
        "warnings": warnings(&report.warnings),
        "elapsed_ms": milliseconds(report.elapsed),
    })
}

/// `calve.probe/1`.
pub(crate) fn probe(report: &ProbeReport, measured: &Measurements) -> Value {
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
        "copy_up_to_bytes": measured.copy_up_to_bytes().unwrap_or(report.copy_up_to_bytes),
        "strategies": report.offers.iter().map(|offer| json!({
            "strategy": offer.strategy.name(),
            "available": offer.refused.is_none(),
            "reason": offer.refused.as_ref().map(|refused| &refused.reason),
            "remedy": offer.refused.as_ref().and_then(|refused| refused.remedy.as_ref()),
        })).collect::<Vec<_>>(),
        "measured": measured.known().map(measured::document),
        "measured_ignored": measured.ignored(),
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

pub(crate) fn warnings(warnings: &[Warning]) -> Vec<Value> {
    warnings
        .iter()
        .map(|warning| match &warning.path {
            Some(first) => json!({ "code": warning.code, "path": path(first), "message": warning.message }),
            None => json!({ "code": warning.code, "message": warning.message }),
        })
        .collect()
}

pub(crate) fn milliseconds(elapsed: std::time::Duration) -> f64 {
    (elapsed.as_secs_f64() * 1_000_000.0).round() / 1000.0
}

/// The receipt in one line, and what needs attention in a few more.
pub(crate) fn sentence(report: &CloneReport) -> String {
    let mut line = format!("cloned `{}` to `{}` by {}", Shown(&report.src), Shown(&report.dst), report.strategy);
    if let Some(entries) = &report.entries {
        line.push_str(&format!(": {}", entry_count(entries.total())));
    }
    if let Some(bytes) = &report.bytes {
        let shared = if bytes.inlined.is_some() { "shared" } else { "shared or inlined by the file system" };
        for (amount, what) in [
            (bytes.shared, shared),
            (bytes.written, "written"),
            (bytes.inlined.unwrap_or(0), "inlined by the file system"),
        ] {
            if amount > 0 {
                line.push_str(&format!(", {} {what}", size(amount)));
            }
        }
    } else {
        line.push_str(": everything shared, nothing written");
    }
    line.push_str(&format!(", in {}", duration(report.elapsed)));
    line.push_str(&because(&report.refused));
    line
}

/// Left out because that was asked for, or because nobody wants it: hidden trees of Calve's own.
const EXPECTED: [&str; 2] = ["excluded", "calve's own"];

/// The lines that follow the receipt when something needs attention.
pub(crate) fn attention(report: &CloneReport) -> Vec<String> {
    let mut lines = Vec::new();
    for fell in &report.fell_back {
        lines.push(format!(
            "warning: {} made by {} instead of {}: {} (first: `{}`)",
            if fell.files == 1 { "one file was".into() } else { format!("{} files were", count(fell.files)) },
            fell.to,
            fell.from,
            std::io::Error::from_raw_os_error(fell.errno),
            Shown(named(&fell.first_path))
        ));
    }
    let unwanted: Vec<_> = report.skipped.iter().filter(|skipped| !EXPECTED.contains(&skipped.reason)).collect();
    if let Some(first) = unwanted.first() {
        let more = unwanted.len() - 1;
        let others = if more == 0 { String::new() } else { format!(" and {} more", count(more as u64)) };
        lines.push(format!("warning: left out `{}` ({}){others}", Shown(named(&first.path)), first.reason));
    }
    if let Some(first) = report.changed.first() {
        lines.push(format!(
            "warning: {} of the source changed meanwhile (first: `{}`)",
            entry_count(report.changed.len() as u64),
            Shown(named(first))
        ));
    }
    for warning in &report.warnings {
        let place = warning.path.as_ref().map(|path| format!(" (first: `{}`)", Shown(named(path)))).unwrap_or_default();
        lines.push(format!("warning: {}{place}", warning.message));
    }
    lines
}

/// What a dry run says.
pub(crate) fn plan_sentence(src: &Path, dst: &Path, plan: &Plan) -> String {
    let because = because(&plan.refused);
    format!("would clone `{}` to `{}` by {}{because}", Shown(src), Shown(dst), plan.strategy)
}

/// " (no snapshot: …; no reflink: …)". A strategy of another system is nobody's concern here.
fn because(refused: &[Refusal]) -> String {
    let reasons: Vec<String> = refused
        .iter()
        .filter(|refusal| !sys::FOREIGN.contains(&refusal.strategy))
        .map(|refusal| format!("no {}: {}", refusal.strategy, refusal.reason))
        .collect();
    if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_is_printed_as_nothing() {
        assert_eq!((path(Path::new("")), path(Path::new("a/b"))), (json!("."), json!("a/b")));
    }
}
