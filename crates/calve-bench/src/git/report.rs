//! The report of `calve bench git`.

use calve_receipt::bench::{
    Accounting, BenchFailure, BenchResult, Conditions, GitConditions, GitRepository, GitResult, ResultDetails,
};
use calve_receipt::human::{count, size};

use super::GitBench;
use super::cases::Case;
use super::client::StepFailure;
use super::host::ledger::Charge;
use super::rounds::{CaseResult, FETCHES, PUSH_EVERY};
use super::sample::{Sample, Step};
use super::testbed::PROTOCOL;
use crate::machine::swapped_pages;
use crate::report::{Report, Section, Table, Usage, counted, or_dash, shown, shown_ms, times};
use crate::stats::{Summary, median};

/// One step of one test of one repository.
struct Row {
    /// Its position in the report.
    repository: usize,
    case: &'static Case,
    step: Step,
    command: String,
    samples: Vec<Sample>,
}

/// Everything that a report is made of.
pub(super) struct Measurement {
    /// With each its shape in words.
    pub(super) repositories: Vec<(GitRepository, String)>,
    pub(super) outcomes: Vec<CaseResult>,
    pub(super) rounds: u32,
    /// The URL of a server of the user's, of which only the client's side is known.
    pub(super) server: Option<String>,
    pub(super) accounting: Option<Accounting>,
    /// As the kernel had counted them before.
    pub(super) swapped_before: Option<u64>,
}

/// Adds a measurement to a report.
pub(super) fn complete(report: &mut Report, bench: &GitBench<'_>, measurement: Measurement) {
    let Measurement { repositories, outcomes, rounds, server, accounting, swapped_before } = measurement;
    report.document.schema = "calve.bench.git/1";
    report.document.rounds = rounds;
    describe(report, bench, server.as_deref(), rounds);
    let others: Vec<f64> = outcomes.iter().flat_map(|outcome| outcome.others.iter().copied()).collect();
    report.warn_of_others(&others, others.len(), "tests");
    let swapped = swapped_before.and_then(|before| Some(swapped_pages()?.saturating_sub(before)));
    if let Some(pages) = swapped.filter(|pages| *pages > 0) {
        report.warn("swapping", format!("the machine was swapping: {pages} pages during the runs"));
    }
    let mut all: Vec<Row> = Vec::new();
    for CaseResult { repository, case, samples, failure, .. } in outcomes {
        let (about, _) = &repositories[repository];
        match failure {
            Some(StepFailure { step, command, round, exit_code, reason }) => {
                let label = format!("{} {}: `{command}`", about.name, case.name);
                let (repository, test, operation) = (Some(about.name.clone()), Some(case.name), Some(step.name()));
                let failure = BenchFailure {
                    command,
                    repository,
                    test,
                    operation,
                    round,
                    exit_code,
                    reason: reason.text,
                    disk_full: reason.disk_full,
                    ..BenchFailure::default()
                };
                report.fail(&label, failure);
            }
            None => all.extend(rows(repository, case, samples, about.back)),
        }
    }
    let labelled = all.iter().map(|row| {
        let (repository, _) = &repositories[row.repository];
        (format!("{} {} `{}`", repository.name, row.case.name, row.command), row.seconds())
    });
    report.warn_of_spread(&labelled.collect::<Vec<_>>());
    for (index, (repository, shape)) in repositories.iter().enumerate() {
        let of_it: Vec<&Row> = all.iter().filter(|row| row.repository == index).collect();
        report.document.results.extend(of_it.iter().map(|row| row.result(&repository.name)));
        report.sections.push(section(repository, shape, &of_it));
    }
    if let Some(accounting) = &accounting {
        compare(report, accounting);
    }
    let of_all = |of: fn(&GitRepository) -> Option<bool>| {
        let states: Option<Vec<bool>> = repositories.iter().map(|(repository, _)| of(repository)).collect();
        states.map(|states| states.iter().all(|state| *state))
    };
    let pace = &bench.pace;
    report.document.conditions = Conditions::Git(Box::new(GitConditions {
        concurrency: if server.is_some() { 1 } else { pace.clients },
        server,
        protocol: PROTOCOL,
        bitmaps: of_all(|repository| repository.bitmaps),
        commit_graph: of_all(|repository| repository.commit_graph),
        automatic_gc: false,
        fetches: FETCHES,
        push_every_seconds: PUSH_EVERY.as_secs_f64(),
        repositories: repositories.into_iter().map(|(repository, _)| repository).collect(),
        accounting,
    }));
}

/// Compares what was charged with what the kernel counted.
fn compare(report: &mut Report, accounting: &Accounting) {
    /// The kernel's sums come in hundredths of a second.
    const ENOUGH_TO_COMPARE_MS: f64 = 2000.0;
    let (Some(host), Some(difference)) = (accounting.host_cpu_ms, accounting.difference_percent) else { return };
    report.document.conclusions.push(format!(
        "The server's processes took {:.2} s of CPU by the kernel's count of all children; the operations and pushes were charged \
         {:.2} s, {difference:+.1} %.",
        host / 1000.0,
        (accounting.charged_cpu_ms + accounting.pushes_cpu_ms) / 1000.0
    ));
    if difference.abs() > 3.0 && host > ENOUGH_TO_COMPARE_MS {
        let message = format!("what was charged is {difference:+.1} % of what the server's processes took");
        report.warn("accounts", message);
    }
}

fn describe(report: &mut Report, bench: &GitBench<'_>, server: Option<&str>, rounds: u32) {
    let pace = &bench.pace;
    let text = server.map_or_else(
        || format!("git http-backend on 127.0.0.1, protocol {PROTOCOL}, automatic gc off on both sides"),
        |url| format!("`{url}`, seen from the client only; received: what the packs take"),
    );
    report.circumstance("Server", text);
    report.circumstance("Link", if server.is_some() { "the machine's own" } else { "loopback" });
    let clients = counted(if server.is_some() { 1 } else { u64::from(pace.clients) }, "client");
    let pushes = format!(
        "; one user pushes every {} s and before each fetch; {FETCHES} fetches after each clone",
        PUSH_EVERY.as_secs_f64()
    );
    let pushes = if server.is_some() { "" } else { &pushes };
    let rounds = counted(u64::from(rounds), "round");
    report.circumstance("Runs", format!("{clients}, {rounds}, the tests in another order in each{pushes}"));
}

/// Returns the tables of a repository, as the published experiment has them: clones, then fetches, then looks at the past.
fn section(repository: &GitRepository, shape: &str, rows: &[&Row]) -> Section {
    let mut lines = vec![("Source", format!("`{}`", repository.source))];
    if !shape.is_empty() {
        let by = repository.shape.as_ref().map_or("calve", |shape| shape.counted_by);
        lines.push(("Shape", format!("{shape} (counted by {by})")));
    }
    let state = |state: Option<bool>| state.map_or("unknown", |state| if state { "yes" } else { "no" }).to_owned();
    lines.push(("Bitmaps", state(repository.bitmaps)));
    lines.push(("Commit-graph", state(repository.commit_graph)));
    lines.extend(repository.branch.as_ref().map(|branch| ("Branch", format!("`{branch}`"))));
    let back = repository.back;
    lines.extend(repository.file.as_ref().map(|file| ("Blamed", format!("`{file}`, {back} commits back"))));
    let in_words = |row: &Row| format!("{}: {}", row.case.in_words(), row.step.name());
    let tables = [
        table("Clones", rows, &|row| row.is_listed_clone(), &|row| row.case.in_words()),
        table(
            "Fetches, each after a push, and resets to what was fetched",
            rows,
            &|row| [Step::Fetch, Step::Reset].contains(&row.step),
            &in_words,
        ),
        table("Looks at the past", rows, &|row| [Step::Checkout, Step::Blame].contains(&row.step), &in_words),
    ];
    Section {
        title: repository.name.clone(),
        lines,
        tables: tables.into_iter().filter(|table| !table.lines.is_empty()).collect(),
        note: "",
    }
}

fn table(title: &'static str, rows: &[&Row], belongs: &dyn Fn(&Row) -> bool, name: &dyn Fn(&Row) -> String) -> Table {
    const HEAD: [&str; 12] = [
        "test",
        "step",
        "wall",
        "stddev",
        "server CPU",
        "stddev",
        "upload-pack",
        "pack-objects",
        "server memory",
        "requests",
        "received",
        "sent",
    ];
    let of_table = rows.iter().filter(|row| belongs(row));
    Table {
        title,
        head: HEAD.map(str::to_owned).to_vec(),
        text_columns: 2,
        lines: of_table.map(|row| row.line(name(row))).collect(),
        ..Table::default()
    }
}

impl Row {
    fn seconds(&self) -> Vec<f64> {
        self.samples.iter().map(|sample| sample.usage.seconds).collect()
    }

    /// Returns what the server needed, in milliseconds; empty where that is not known.
    fn server_cpu_ms(&self) -> Vec<f64> {
        self.charges(|charge| charge.cpu.as_secs_f64() * 1000.0)
    }

    fn pack_objects_cpu_ms(&self) -> Option<f64> {
        median(&self.charges(|charge| charge.pack_objects.as_secs_f64() * 1000.0))
    }

    /// Returns the CPU time without packing objects. It includes that of `git http-backend`, which does little.
    fn upload_pack_cpu_ms(&self) -> Option<f64> {
        median(&self.charges(|charge| charge.cpu.saturating_sub(charge.pack_objects).as_secs_f64() * 1000.0))
    }

    fn server_peak_memory_bytes(&self) -> Option<u64> {
        self.samples.iter().filter_map(|sample| Some(sample.charge?.peak_memory_bytes)).max()
    }

    fn requests(&self) -> Option<u64> {
        let of = |sample: &Sample| match (sample.charge, sample.seen) {
            (Some(charge), _) => Some(charge.requests as f64),
            (None, seen) => Some(seen?.requests? as f64),
        };
        median(&self.samples.iter().filter_map(of).collect::<Vec<_>>()).map(|number| number.round() as u64)
    }

    /// Returns the bytes as the client sees them. Of a server of others, it is the bytes of its packs.
    fn bytes_received(&self) -> Option<u64> {
        let of = |sample: &Sample| match (sample.charge, sample.seen) {
            (Some(charge), _) => Some(charge.bytes_out as f64),
            (None, seen) => Some(seen?.pack_bytes as f64),
        };
        median(&self.samples.iter().filter_map(of).collect::<Vec<_>>()).map(|number| number.round() as u64)
    }

    fn bytes_sent(&self) -> Option<u64> {
        median(&self.charges(|charge| charge.bytes_in as f64)).map(|number| number.round() as u64)
    }

    fn charges(&self, value: impl Fn(&Charge) -> f64) -> Vec<f64> {
        self.samples.iter().filter_map(|sample| Some(value(sample.charge.as_ref()?))).collect()
    }

    /// Returns whether it belongs in the table of clones. Clones for the fetch tests repeat those of other tests.
    fn is_listed_clone(&self) -> bool {
        self.step == Step::Clone && self.case.fetch.is_none()
    }

    fn line(&self, name: String) -> Vec<String> {
        let (seconds, server) = (Summary::of(&self.seconds()), Summary::of(&self.server_cpu_ms()));
        let stddev = |summary: Option<Summary>| summary.and_then(|summary| summary.stddev);
        vec![
            self.case.name.into(),
            name,
            or_dash(seconds, |seconds| shown(seconds.median)),
            or_dash(stddev(seconds), shown),
            or_dash(server, |server| shown_ms(server.median)),
            or_dash(stddev(server), shown_ms),
            or_dash(self.upload_pack_cpu_ms(), shown_ms),
            or_dash(self.pack_objects_cpu_ms(), shown_ms),
            or_dash(self.server_peak_memory_bytes(), size),
            or_dash(self.requests(), count),
            or_dash(self.bytes_received(), size),
            or_dash(self.bytes_sent(), size),
        ]
    }

    fn result(&self, repository: &str) -> BenchResult {
        let server = self.server_cpu_ms();
        let summary = Summary::of(&server);
        let usages: Vec<Usage> = self.samples.iter().map(|sample| sample.usage).collect();
        let details = GitResult {
            repository: repository.to_owned(),
            test: self.case.name,
            operation: self.step.name(),
            clone: self.case.clone.name(),
            fetch: self.case.fetch.map(|fetch| fetch.name()),
            server_cpu_ms_median: summary.map(|summary| summary.median),
            server_cpu_ms_min: summary.map(|summary| summary.min),
            server_cpu_ms_max: summary.map(|summary| summary.max),
            server_cpu_ms: summary.map(|_| server),
            server_upload_pack_cpu_ms_median: self.upload_pack_cpu_ms(),
            server_pack_objects_cpu_ms_median: self.pack_objects_cpu_ms(),
            server_peak_memory_bytes: self.server_peak_memory_bytes(),
            requests: self.requests(),
            bytes_received: self.bytes_received(),
            bytes_sent: self.bytes_sent(),
            rounds: self.samples.iter().map(|sample| sample.round).collect(),
            ordinals: self.samples.iter().map(|sample| sample.ordinal).collect(),
            said: self.samples.iter().find(|it| !it.said.is_empty()).map_or_else(String::new, |it| it.said.clone()),
        };
        BenchResult { times: times(&self.command, &usages), details: ResultDetails::Git(details) }
    }
}

/// Makes of the samples of a test one row for each step that was measured.
fn rows(repository: usize, case: &'static Case, samples: Vec<Sample>, back: u32) -> Vec<Row> {
    let mut left = samples;
    let mut rows = Vec::new();
    for step in Step::ALL {
        let (of_step, others): (Vec<_>, Vec<_>) = left.into_iter().partition(|sample| sample.step == step);
        left = others;
        if !of_step.is_empty() {
            let command = super::client::command_of(case, step, back);
            rows.push(Row { repository, case, step, command, samples: of_step });
        }
    }
    rows
}
