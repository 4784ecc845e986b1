//! The report as Markdown, which is also what a terminal shows.

use crate::machine::utc;
use crate::report::{Disk, Report, shown};
use crate::stats::{Summary, median};
use crate::workload::{Absent, Group, Row, Sample};
use calve_receipt::human::size;

pub(crate) fn document(report: &Report) -> String {
    let mut text = format!("# calve bench {}\n\n", report.bench);
    for (label, line) in circumstances(report) {
        text.push_str(&format!("- {label}: {line}\n"));
    }
    text.push('\n');
    text.push_str(&table(report));
    let mut groups: Vec<&Group> = report.rows.iter().map(|row| row.workload.group).collect();
    groups.dedup();
    for group in groups.into_iter().filter(|group| !group.note.is_empty()) {
        text.push_str(&format!("\n{}\n", group.note));
    }
    for (title, lines) in [
        ("Notes", notes(report)),
        ("Not installed", absent(report.missing())),
        ("Not possible here", absent(report.refused())),
        ("Warnings", report.warnings.iter().map(|warning| warning.message.clone()).collect()),
        ("In short", report.conclusions()),
    ] {
        if !lines.is_empty() {
            text.push_str(&format!("\n{title}:\n\n"));
            lines.iter().for_each(|line| text.push_str(&format!("- {line}\n")));
        }
    }
    text
}

/// What a reader must know to judge the numbers.
pub(crate) fn circumstances(report: &Report) -> Vec<(&'static str, String)> {
    let machine = &report.machine;
    let mut lines = vec![("Date", utc(report.began))];
    let memory = size(machine.memory_bytes);
    lines
        .push(("Machine", format!("{}, {} cores, {memory} of memory, {}", machine.cpu, machine.cores, machine.kernel)));
    lines.extend(report.facts.iter().map(|fact| (fact.label, fact.text.clone())));
    lines.push(("Caches", report.cache_in_words()));
    let rounds = if report.rounds == 1 { "1 round".to_owned() } else { format!("{} rounds", report.rounds) };
    let deleted = if report.disk == Disk::Gained {
        String::from("; what a run worked on was deleted after it")
    } else if report.deletions.is_empty() {
        String::from("; nothing was deleted in between, but for hard links")
    } else {
        format!("; to make room, earlier results were deleted {}", report.deletions.join(", "))
    };
    lines.push(("Runs", format!("{rounds}, the commands in another order in each{deleted}")));
    let ratios =
        "of steady times: what each round took as a whole is taken out, then the faster half of the runs is averaged";
    lines.push(("Ratios", ratios.to_owned()));
    let versions = report.versions.iter().map(|(program, version)| format!("{program}: {version}"));
    lines.push(("Versions", versions.collect::<Vec<_>>().join("; ")));
    lines
}

pub(crate) fn columns(report: &Report) -> [&'static str; 11] {
    let space = match report.disk {
        Disk::Taken => "disk used",
        Disk::Gained => "gained",
    };
    ["command", "median", "min", "max", "MAD", "ratio", "user", "system", "memory", space, ""]
}

/// The cells of one measured row.
pub(crate) fn cells(report: &Report, row: &Row, summary: &Summary) -> [String; 11] {
    let middle =
        |value: fn(&Sample) -> f64| median(&row.samples.iter().map(value).collect::<Vec<_>>()).unwrap_or_default();
    [
        format!("`{}`{}", row.workload.command, row.workload.group.mark),
        shown(summary.median),
        shown(summary.min),
        shown(summary.max),
        if row.samples.len() > 1 { shown(summary.mad) } else { "-".into() },
        format!("{:.2}", report.ratio(row)),
        shown(middle(|sample| sample.user_seconds)),
        shown(middle(|sample| sample.system_seconds)),
        memory(middle(|sample| sample.peak_memory_bytes as f64) as u64, report.memory_floor_bytes),
        disk(report, middle(|sample| sample.disk_bytes as f64) as i64),
        report.beats(row).map_or_else(String::new, |ours| format!("faster than `{ours}`")),
    ]
}

fn table(report: &Report) -> String {
    let columns = columns(report);
    let mut lines = vec![columns.map(str::to_owned)];
    lines.extend(report.measured().map(|(row, summary)| cells(report, row, &summary)));
    for row in report.failed() {
        let mut line: [String; 11] = Default::default();
        line[0] = format!("`{}`{}", row.workload.command, row.workload.group.mark);
        line[1] = "failed".into();
        lines.push(line);
    }
    let mut used = columns.len();
    if lines.iter().all(|line| line[10].is_empty()) {
        used -= 1;
    }
    let cut: Vec<Vec<String>> = lines.into_iter().map(|line| line.into_iter().take(used).collect()).collect();
    aligned(&cut, is_text)
}

/// A table whose first line is its head.
pub(crate) fn aligned(lines: &[Vec<String>], is_text: fn(usize) -> bool) -> String {
    let used = lines.first().map_or(0, Vec::len);
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..used).map(width).collect();
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        for (column, width) in widths.iter().enumerate() {
            let cell = line[column].replace('|', "\\|");
            // Numbers on the right, so that they can be compared.
            let padded = if is_text(column) { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
            text.push_str(&format!("| {padded} "));
        }
        text.push_str("|\n");
        if number == 0 {
            for (column, width) in widths.iter().enumerate() {
                let dashes = "-".repeat(width + 1);
                text.push_str(&if is_text(column) { format!("|{dashes}-") } else { format!("|{dashes}:") });
            }
            text.push_str("|\n");
        }
    }
    text
}

fn is_text(column: usize) -> bool {
    column == 0 || column == 10
}

/// The bench's own size is where the kernel begins to count, so that a smaller peak cannot be told.
pub(crate) fn memory(bytes: u64, floor: u64) -> String {
    if bytes <= floor { format!("≤ {}", size(floor)) } else { size(bytes) }
}

pub(crate) fn disk(report: &Report, bytes: i64) -> String {
    let bytes = if report.disk == Disk::Gained { -bytes } else { bytes };
    let sign = if bytes < 0 { "-" } else { "" };
    format!("{sign}{}", size(bytes.unsigned_abs()))
}

pub(crate) fn notes(report: &Report) -> Vec<String> {
    let mut notes = Vec::new();
    for row in report.rows.iter().filter(|row| row.is_measured()) {
        let command = &row.workload.command;
        if command.starts_with("calve ") && !row.said.is_empty() {
            notes.push(format!("`{command}` said: {}", row.said));
        }
        notes.extend(row.remarks.iter().map(|remark| format!("`{command}` {remark}")));
    }
    notes
}

pub(crate) fn absent<'a>(all: impl Iterator<Item = &'a Absent>) -> Vec<String> {
    let line = |absent: &Absent| {
        let remedy = absent.remedy.as_ref().map_or_else(String::new, |remedy| format!(" ({remedy})"));
        format!("`{}`: {}{remedy}", absent.command, absent.reason)
    };
    all.map(line).collect()
}
