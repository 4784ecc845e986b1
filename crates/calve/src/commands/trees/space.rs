use calve_core::internal::ShownPath;
use calve_core::report::SkippedEntry;
use calve_core::space::{DedupeReport, DiskUsage, Usage};

use crate::failure::{FAILED, Failure};
use crate::output;
use calve_receipt::human::{count, counted, duration, entries, size};

pub(super) fn usage_table(report: &DiskUsage) -> String {
    let mut text = String::new();
    for one in &report.paths {
        let note = if one.inside_another { "  (inside another PATH: not added to the total again)" } else { "" };
        text.push_str(&format!("{}{note}\n", ShownPath(&one.path)));
        text.push_str(&lines(&one.usage));
    }
    if report.paths.len() > 1 {
        text.push_str("all of them together\n");
        text.push_str(&lines(&report.total));
    }
    text
}

fn lines(usage: &Usage) -> String {
    let mut text = String::new();
    let mut line = |what: &str, value: String| text.push_str(&format!("  {what:<22} {value}\n"));
    line("files", format!("{} of {}", count(usage.entries.files), size(usage.apparent)));
    line("allocated", size(usage.allocated));
    line("exclusive", size(usage.exclusive));
    if usage.inline > 0 {
        line("in the metadata", size(usage.inline));
    }
    line("shared within", size(usage.shared_within));
    line("shared with others", between(usage.shared_outside_min, usage.shared_outside_max));
    let frees = between(usage.frees_min, usage.frees_max);
    let frees = match usage.frees_data {
        Some(data) if usage.frees_min != usage.frees_max => format!("{frees}; {} of it file contents", size(data)),
        _ => frees,
    };
    line("deleting frees", frees);
    text
}

fn between(min: u64, max: u64) -> String {
    let (low, high) = (size(min), size(max));
    if low == high { low } else { format!("{low} to {high}") }
}

/// Fails like du(1) if some entries were unreadable, because the result does not cover them. Names the first one.
pub(super) fn complete(unreadable: u64, skipped: &[SkippedEntry]) -> Result<(), Failure> {
    let Some(SkippedEntry { path, reason }) = skipped.first() else { return Ok(()) };
    output::warn(&format!("{} could not be read (first: `{}`: {reason})", entries(unreadable), ShownPath(path)));
    Err(Failure::reported(FAILED))
}

pub(super) fn say_sharing(report: &DedupeReport) {
    let what = if report.dry_run { "would share" } else { "shared" };
    let mut line = format!(
        "{what} {} in {} of {}, in {} with the same contents; {} already shared; {}",
        size(report.shared.bytes),
        counted(report.shared.files, "file"),
        count(report.files),
        counted(report.groups, "set"),
        counted(report.already_files, "file"),
        duration(report.elapsed)
    );
    if let Some(gained) = report.gained_bytes {
        let change = if gained < 0 { "less free space" } else { "of free space gained" };
        line.push_str(&format!("; {} {change}", size(gained.unsigned_abs())));
    }
    output::note(&line);
    for left in &report.left_alone {
        let first = ShownPath(&left.first_path);
        output::note(&format!("left alone {}: {} (first: `{first}`)", counted(left.files, "file"), left.reason));
    }
    report.warnings.iter().for_each(|warning| output::warn(&warning.message));
}

/// Returns the number of threads set by a test that counts calls or memory.
pub(super) fn threads_of_a_test() -> Option<std::num::NonZeroUsize> {
    std::env::var("CALVE_TEST_THREADS").ok()?.parse().ok()
}
