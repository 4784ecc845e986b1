use std::path::PathBuf;

use calve_core::internal::ShownPath;
use calve_core::report::{SkipReason, SpareCheck, SpareReport};
use calve_core::{CloneReport, Refusal};
use calve_receipt::named;

use crate::sys;
use calve_receipt::human::{count, duration, entries as entry_count, size};

pub(crate) fn sentence(report: &CloneReport) -> String {
    let mut line =
        format!("cloned `{}` to `{}` by {}", ShownPath(&report.src), ShownPath(&report.dst), report.strategy);
    if let Some(spare) = &report.spare {
        line.push_str(&spare_sentence(spare));
    }
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
    } else if report.spare.is_none() {
        line.push_str(": everything shared, nothing written");
    }
    line.push_str(&format!(", in {}", duration(report.elapsed)));
    line.push_str(&because(&report.refused));
    line
}

/// Describes how the spare was checked against its source.
fn spare_sentence(spare: &SpareReport) -> String {
    let updated = match spare.entries_updated {
        0 => String::new(),
        some => format!(", {} brought up to date", entry_count(some)),
    };
    match spare.checked {
        SpareCheck::Frozen => ": of a template, which does not change".into(),
        SpareCheck::Watched if spare.entries_updated == 0 => ": watched, nothing has changed".into(),
        _ => format!(": {} checked{updated}", entry_count(spare.entries_checked)),
    }
}

/// Omitted on request, or hidden trees of Calve's own.
const EXPECTED: [SkipReason; 2] = [SkipReason::Excluded, SkipReason::CalvesOwn];

pub(crate) fn attention(report: &CloneReport) -> Vec<String> {
    let mut lines = Vec::new();
    for fell in &report.fell_back {
        lines.push(format!(
            "{} made by {} instead of {}: {} (first: `{}`)",
            if fell.files == 1 { "one file was".into() } else { format!("{} files were", count(fell.files)) },
            fell.to,
            fell.from,
            std::io::Error::from_raw_os_error(fell.errno),
            ShownPath(named(&fell.first_path))
        ));
    }
    let unwanted: Vec<_> = report.skipped.iter().filter(|skipped| !EXPECTED.contains(&skipped.reason)).collect();
    if let Some(first) = unwanted.first() {
        let more = unwanted.len() - 1;
        let others = if more == 0 { String::new() } else { format!(" and {} more", count(more as u64)) };
        lines.push(format!("left out `{}` ({}){others}", ShownPath(named(&first.path)), first.reason));
    }
    lines.extend(changed(&report.changed));
    for warning in &report.warnings {
        let place =
            warning.path.as_ref().map(|path| format!(" (first: `{}`)", ShownPath(named(path)))).unwrap_or_default();
        lines.push(format!("{}{place}", warning.message));
    }
    lines
}

/// Warns of entries that changed during the clone: data in use may be torn in the copy.
pub(crate) fn changed(changed: &[PathBuf]) -> Option<String> {
    let first = changed.first()?;
    let entries = entry_count(changed.len() as u64);
    Some(format!("{entries} of the source changed meanwhile (first: `{}`)", ShownPath(named(first))))
}

pub(crate) fn plan_sentence(report: &CloneReport) -> String {
    let (src, dst, because) = (ShownPath(&report.src), ShownPath(&report.dst), because(&report.refused));
    format!("would clone `{src}` to `{dst}` by {}{because}", report.strategy)
}

/// Lists the refusals, as in " (no snapshot: …; no reflink: …)", except strategies of other systems.
fn because(refused: &[Refusal]) -> String {
    let reasons: Vec<String> = refused
        .iter()
        .filter(|refusal| !sys::FOREIGN.contains(&refusal.strategy))
        .map(|refusal| format!("no {}: {}", refusal.strategy, refusal.reason))
        .collect();
    if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join("; ")) }
}
