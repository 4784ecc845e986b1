//! The report of `calve bench git`.

use calve_receipt::bench::{
    BenchFailure, BenchResult, Conditions, GitConditions, GitRepository, GitResult, ResultDetails,
};
use calve_receipt::human::{count, counted, size};

use super::cases::Case;
use super::client::{Sample, Step, command_of};
use super::programs::PROTOCOL;
use super::pushes::FETCHES;
use super::repository::Repository;
use crate::report::{Report, Section, Table, Usage, or_dash, shown, shown_ms, times};
use crate::stats::{Summary, median, spread};

pub(super) struct CaseResult {
    pub(super) repository: usize,
    pub(super) case: &'static Case,
    pub(super) samples: Vec<Sample>,
    pub(super) failure: Option<BenchFailure>,
}

struct StepRuns<'a> {
    case: &'static Case,
    step: Step,
    command: String,
    /// At least one.
    samples: Vec<&'a Sample>,
}

impl CaseResult {
    pub(super) fn new(repository: usize, case: &'static Case) -> Self {
        Self { repository, case, samples: Vec::new(), failure: None }
    }

    /// Describes the round whose samples begin at `before`. `repository`: empty where there is only one.
    pub(super) fn progress(&self, before: usize, round: u32, repository: &str, back: u32) -> String {
        let case = format!("{} ({})", self.case.name, self.case.in_words());
        let head = format!("round {round}  {}", [repository, &case].join(" ").trim_start());
        if let Some(failure) = &self.failure {
            return format!("{head}: {} failed: {}", failure.command, failure.reason);
        }
        let steps = self.rows(before, back).into_iter();
        let steps = steps.map(|row| format!("{} {}", row.step, shown(median(&row.seconds()).unwrap_or(0.0))));
        format!("{head}: {}", steps.collect::<Vec<_>>().join(", "))
    }

    /// Returns one row for each step that was measured, of the samples from `first` on.
    fn rows(&self, first: usize, back: u32) -> Vec<StepRuns<'_>> {
        let row = |step| {
            let samples = self.samples[first..].iter().filter(|sample| sample.step == step).collect();
            StepRuns { case: self.case, step, command: command_of(self.case, step, back), samples }
        };
        Step::ALL.into_iter().map(row).filter(|row| !row.samples.is_empty()).collect()
    }
}

pub(super) fn complete(report: &mut Report, repositories: &[Repository], results: Vec<CaseResult>, rounds: u32) {
    report.document.schema = "calve.bench.git/1";
    report.document.rounds = rounds;
    let server = "git upload-pack over a pipe, as over SSH but without encryption";
    let state = "with bitmaps and a commit-graph, automatic gc off on both sides";
    report.circumstance("Server", format!("{server}, protocol {PROTOCOL}, {state}"));
    let rounds = counted(u64::from(rounds), "round");
    let pushes = format!("one user pushes before each clone and each of {FETCHES} fetches after it");
    report.circumstance("Runs", format!("{rounds}, the tests in another order in each; {pushes}"));
    let samples = results.iter().flat_map(|result| &result.samples);
    report.warn_of_others(&samples.map(|sample| sample.others).collect::<Vec<_>>());
    for (index, Repository { about, .. }) in repositories.iter().enumerate() {
        let mut rows = Vec::new();
        for result in results.iter().filter(|result| result.repository == index) {
            match &result.failure {
                Some(failure) => {
                    let label = format!("{} {}: `{}`", about.name, result.case.name, failure.command);
                    report.fail(&label, failure.clone());
                }
                None => rows.extend(result.rows(0, about.back)),
            }
        }
        let label = |row: &StepRuns<'_>| format!("{} {} `{}`", about.name, row.case.name, row.command);
        report.warn_of_spread(&rows.iter().map(|row| (label(row), row.seconds())).collect::<Vec<_>>());
        report.document.results.extend(rows.iter().map(|row| row.result(&about.name)));
        report.sections.push(section(about, &rows));
    }
    report.document.conditions = Conditions::Git(GitConditions {
        protocol: PROTOCOL,
        fetches: FETCHES,
        repositories: repositories.iter().map(|repository| repository.about.clone()).collect(),
    });
}

/// Returns the tables of a repository: clones, then fetches, then looks at the past.
fn section(about: &GitRepository, rows: &[StepRuns<'_>]) -> Section {
    let contents = format!(
        "{} packed; a checkout has {} files with {}",
        size(about.pack_bytes),
        count(about.checkout_files),
        size(about.checkout_bytes)
    );
    let mut lines = vec![("Source", format!("`{}`, branch `{}`", about.source, about.branch)), ("Size", contents)];
    lines.extend(about.file.as_ref().map(|file| ("Blamed", format!("`{file}`, {} commits back", about.back))));
    let in_words = |row: &StepRuns<'_>| format!("{}: {}", row.case.in_words(), row.step);
    // Clones for the fetch tests repeat those of other tests.
    let is_listed_clone = |row: &StepRuns<'_>| row.step == Step::Clone && row.case.fetch.is_none();
    let tables = [
        table("Clones", rows, &is_listed_clone, &|row| row.case.in_words()),
        table(
            "Fetches, each after a push, and resets to what was fetched",
            rows,
            &|row| [Step::Fetch, Step::Reset].contains(&row.step),
            &in_words,
        ),
        table("Reading older commits", rows, &|row| [Step::Checkout, Step::Blame].contains(&row.step), &in_words),
    ];
    let tables = tables.into_iter().filter(|table| !table.lines.is_empty()).collect();
    Section { title: about.name.clone(), lines, tables, note: "" }
}

fn table(
    title: &'static str,
    rows: &[StepRuns<'_>],
    belongs: &dyn Fn(&StepRuns<'_>) -> bool,
    name: &dyn Fn(&StepRuns<'_>) -> String,
) -> Table {
    const HEAD: [&str; 9] =
        ["test", "step", "wall", "stddev", "server CPU", "stddev", "server memory", "connections", "received"];
    Table {
        title,
        head: HEAD.to_vec(),
        text_columns: 2,
        lines: rows.iter().filter(|row| belongs(row)).map(|row| row.line(name(row))).collect(),
        ..Table::default()
    }
}

impl StepRuns<'_> {
    fn each(&self, value: impl Fn(&Sample) -> f64) -> Vec<f64> {
        self.samples.iter().map(|sample| value(sample)).collect()
    }

    fn seconds(&self) -> Vec<f64> {
        self.each(|sample| sample.usage.seconds)
    }

    fn server_cpu_ms(&self) -> Vec<f64> {
        self.each(|sample| (sample.server.user_seconds + sample.server.system_seconds) * 1000.0)
    }

    fn server_peak_memory_bytes(&self) -> u64 {
        self.samples.iter().map(|sample| sample.server.peak_memory_bytes).max().unwrap_or(0)
    }

    fn connections(&self) -> u64 {
        median(&self.each(|sample| sample.server.connections as f64)).unwrap_or(0.0).round() as u64
    }

    fn bytes_received(&self) -> u64 {
        median(&self.each(|sample| sample.server.sent_bytes as f64)).unwrap_or(0.0).round() as u64
    }

    fn line(&self, name: String) -> Vec<String> {
        let (seconds, server) = (Summary::from_values(&self.seconds()), Summary::from_values(&self.server_cpu_ms()));
        let stddev = |summary: Option<Summary>| summary.and_then(|summary| summary.stddev);
        vec![
            self.case.name.into(),
            name,
            or_dash(seconds, |seconds| shown(seconds.median)),
            or_dash(stddev(seconds), shown),
            or_dash(server, |server| shown_ms(server.median)),
            or_dash(stddev(server), shown_ms),
            size(self.server_peak_memory_bytes()),
            count(self.connections()),
            size(self.bytes_received()),
        ]
    }

    fn result(&self, repository: &str) -> BenchResult {
        let usages: Vec<Usage> = self.samples.iter().map(|sample| sample.usage).collect();
        let said = self.samples.iter().find(|sample| !sample.said.is_empty());
        let details = GitResult {
            repository: repository.to_owned(),
            test: self.case.name,
            operation: self.step.into(),
            clone: self.case.clone.into(),
            fetch: self.case.fetch.map(Into::into),
            server_cpu_ms: spread(self.server_cpu_ms()),
            server_peak_memory_bytes: self.server_peak_memory_bytes(),
            connections: self.connections(),
            bytes_received: self.bytes_received(),
            said: said.map_or_else(String::new, |sample| sample.said.clone()),
        };
        BenchResult { times: times(&self.command, &usages), details: ResultDetails::Git(details) }
    }
}
