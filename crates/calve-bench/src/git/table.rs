//! The tables of a report, as the published experiment has them: clones, then fetches, then looks at the past.

use super::report::{Report, Row};
use super::sample::Step;
use crate::report::shown;
use crate::stats::{Summary, median};
use calve_receipt::human::{count, size};

/// Of one repository.
pub(super) struct Table {
    pub(super) title: &'static str,
    pub(super) columns: Vec<&'static str>,
    /// The first two cells are text.
    pub(super) lines: Vec<Vec<String>>,
}

const COST: [&str; 10] = [
    "wall",
    "MAD",
    "server CPU",
    "MAD",
    "upload-pack",
    "pack-objects",
    "server memory",
    "requests",
    "received",
    "sent",
];

pub(super) fn tables(report: &Report, repository: usize) -> Vec<Table> {
    let rows = |steps: &'static [Step], only_clones: bool| {
        report.rows.iter().filter(move |row| {
            row.repository == repository && steps.contains(&row.step) && (!only_clones || row.case.fetch.is_none())
        })
    };
    let columns = |second: &'static str| [&["test", second][..], &COST[..]].concat();
    let clones = rows(&[Step::Clone], true).map(|row| line(row, row.case.in_words()));
    let fetches = rows(&[Step::Fetch, Step::Reset], false)
        .map(|row| line(row, format!("{}: {}", row.case.in_words(), row.step.name())));
    let past = rows(&[Step::Checkout, Step::Blame], false)
        .map(|row| line(row, format!("{}: {}", row.case.in_words(), row.step.name())));
    let tables = [
        Table { title: "Clones", columns: columns("clone"), lines: clones.collect() },
        Table {
            title: "Fetches, each after a push, and resets to what was fetched",
            columns: columns("step"),
            lines: fetches.collect(),
        },
        Table { title: "Looks at the past", columns: columns("step"), lines: past.collect() },
    ];
    tables.into_iter().filter(|table| !table.lines.is_empty()).collect()
}

fn line(row: &Row, what: String) -> Vec<String> {
    let seconds = row.seconds();
    let spread = |mad: f64| if row.samples.len() > 1 { shown(mad) } else { "-".into() };
    let unknown = || "-".to_owned();
    let milliseconds = |ms: f64| shown(ms / 1000.0);
    let server = Summary::of(&row.server_cpu_ms());
    vec![
        row.case.name.into(),
        what,
        shown(seconds.median),
        spread(seconds.mad),
        median(&row.server_cpu_ms()).map_or_else(unknown, milliseconds),
        server.map_or_else(unknown, |server| spread(server.mad / 1000.0)),
        row.upload_pack_cpu_ms().map_or_else(unknown, milliseconds),
        row.pack_objects_cpu_ms().map_or_else(unknown, milliseconds),
        row.server_peak_memory_bytes().map_or_else(unknown, size),
        row.requests().map_or_else(unknown, count),
        row.bytes_received().map_or_else(unknown, size),
        row.bytes_sent().map_or_else(unknown, size),
    ]
}

/// What a reader must know to judge the numbers.
pub(super) fn circumstances(report: &Report) -> Vec<(&'static str, String)> {
    let machine = &report.machine;
    let memory = size(machine.memory_bytes);
    let mut lines = vec![
        ("Date", crate::machine::utc(report.began)),
        ("Machine", format!("{}, {} cores, {memory} of memory, {}", machine.cpu, machine.cores, machine.kernel)),
    ];
    let versions = report.versions.iter().map(|(program, version)| format!("{program}: {version}"));
    lines.push(("Versions", versions.collect::<Vec<_>>().join("; ")));
    match &report.server {
        Some(url) => {
            lines.push(("Server", format!("`{url}`, seen from the client only; received: what the packs take")))
        }
        None => lines.push((
            "Server",
            format!("git http-backend on 127.0.0.1, protocol {}, automatic gc off on both sides", report.protocol),
        )),
    }
    let link = report.link.as_ref().map_or_else(
        || if report.server.is_some() { "the machine's own".to_owned() } else { "loopback as it is".to_owned() },
        super::link::Link::in_words,
    );
    lines.push(("Link", link));
    let clients = if report.clients == 1 { "1 client".to_owned() } else { format!("{} clients", report.clients) };
    let rounds = if report.rounds == 1 { "1 round".to_owned() } else { format!("{} rounds", report.rounds) };
    let during =
        report.duration.map_or_else(String::new, |duration| format!(" of {} s for each test", duration.as_secs_f64()));
    let pushes = if report.server.is_some() {
        String::new()
    } else {
        format!(
            "; one user pushes every {} s and before each fetch; {} fetches after each clone",
            report.push_every.as_secs_f64(),
            report.fetches
        )
    };
    lines.push(("Runs", format!("{clients}, {rounds}{during}, the tests in another order in each{pushes}")));
    lines
}

/// What is known of one repository.
pub(super) fn about(report: &Report, repository: usize) -> Vec<(&'static str, String)> {
    let described = &report.repositories[repository];
    let mut lines = vec![("Source", format!("`{}`", described.source))];
    if !described.in_words.is_empty() {
        let by = described.shape.get("counted_by").and_then(serde_json::Value::as_str).unwrap_or("calve");
        lines.push(("Shape", format!("{} (counted by {by})", described.in_words)));
    }
    let state = |state: Option<bool>| match state {
        Some(true) => "yes",
        Some(false) => "no",
        None => "unknown",
    };
    lines.push(("Bitmaps", state(described.bitmaps).into()));
    lines.push(("Commit-graph", state(described.commit_graph).into()));
    if let Some(branch) = &described.branch {
        lines.push(("Branch", format!("`{branch}`")));
    }
    if let Some(file) = &described.file {
        lines.push(("Blamed", format!("`{file}`, {} commits back", described.back)));
    }
    lines
}
