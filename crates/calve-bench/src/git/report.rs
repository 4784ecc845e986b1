use calve_receipt::bench::{
    BenchFailure, BenchResult, Conditions, GitConditions, GitRepository, GitResult, ResultDetails, Times,
};
use calve_receipt::human::{count, counted, size};
use strum::VariantArray as _;

use super::cases::Case;
use super::client::{Sample, Step, command_of};
use super::programs::PROTOCOL;
use super::pushes::FETCHES;
use super::repository::Repository;
use super::upload_pack::ServerCost;
use crate::report::{Report, Section, Table, Usage, or_dash, shown, shown_ms, times};
use crate::stats::{median, spread, stddev};

pub(super) struct CaseResult {
    pub(super) repository: usize,
    pub(super) case: &'static Case,
    pub(super) samples: Vec<Sample>,
    pub(super) failure: Option<BenchFailure>,
}

struct StepRow {
    case: &'static Case,
    step: Step,
    times: Times,
    result: GitResult,
}

impl CaseResult {
    /// Describes the round whose samples begin at `before`. `repository` is empty if there is only one.
    pub(super) fn progress(&self, before: usize, round: u32, repository: &str, about: &GitRepository) -> String {
        let case = format!("{} ({})", self.case.name, self.case.in_words());
        let head = format!("round {round}  {}", [repository, &case].join(" ").trim_start());
        if let Some(failure) = &self.failure {
            return format!("{head}: {} failed: {}", failure.command, failure.reason);
        }
        let steps = self.rows(before, about).into_iter();
        let steps = steps.map(|row| format!("{} {}", row.step, shown(row.times.median)));
        format!("{head}: {}", steps.collect::<Vec<_>>().join(", "))
    }

    /// Returns a row for each measured step, of the samples from `first` on.
    fn rows(&self, first: usize, about: &GitRepository) -> Vec<StepRow> {
        Step::VARIANTS.iter().filter_map(|step| self.row(*step, &self.samples[first..], about)).collect()
    }

    fn row(&self, step: Step, samples: &[Sample], about: &GitRepository) -> Option<StepRow> {
        let case = self.case;
        let samples: Vec<&Sample> = samples.iter().filter(|sample| sample.step == step).collect();
        let usages: Vec<Usage> = samples.iter().map(|sample| sample.usage).collect();
        let times = times(&command_of(case, step, about.back), &usages)?;
        let each =
            |value: fn(&ServerCost) -> f64| samples.iter().map(|sample| value(&sample.server)).collect::<Vec<_>>();
        let middle = |value| median(&each(value)).unwrap_or(0.0).round() as u64;
        let said = samples.iter().find(|sample| !sample.said.is_empty());
        let result = GitResult {
            repository: about.name.clone(),
            test: case.name,
            operation: step.into(),
            clone: case.clone.into(),
            fetch: case.fetch.map(Into::into),
            server_cpu_ms: spread(each(|server| (server.user_seconds + server.system_seconds) * 1000.0)),
            server_peak_memory_bytes: samples.iter().map(|sample| sample.server.peak_memory_bytes).max().unwrap_or(0),
            connections: middle(|server| server.connections as f64),
            bytes_received: middle(|server| server.sent_bytes as f64),
            said: said.map_or_else(String::new, |sample| sample.said.clone()),
        };
        Some(StepRow { case, step, times, result })
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
                None => rows.extend(result.rows(0, about)),
            }
        }
        let label = |row: &StepRow| format!("{} {} `{}`", about.name, row.case.name, row.times.command);
        report.warn_of_spread(&rows.iter().map(|row| (label(row), row.times.times.clone())).collect::<Vec<_>>());
        report.sections.push(section(about, &rows));
        let results = rows.into_iter().map(|StepRow { times, result, .. }| (Some(times), ResultDetails::Git(result)));
        report.document.results.extend(results.map(|(times, details)| BenchResult { times, details }));
    }
    report.document.conditions = Conditions::Git(GitConditions {
        protocol: PROTOCOL,
        fetches: FETCHES,
        repositories: repositories.iter().map(|repository| repository.about.clone()).collect(),
    });
}

fn section(about: &GitRepository, rows: &[StepRow]) -> Section {
    let contents = format!(
        "{} packed; a checkout has {} files with {}",
        size(about.pack_bytes),
        count(about.checkout_files),
        size(about.checkout_bytes)
    );
    let mut lines = vec![("Source", format!("`{}`, branch `{}`", about.source, about.branch)), ("Size", contents)];
    lines.extend(about.file.as_ref().map(|file| ("Blamed", format!("`{file}`, {} commits back", about.back))));
    let in_words = |row: &StepRow| format!("{}: {}", row.case.in_words(), row.step);
    // Clones for the fetch tests repeat those of other tests.
    let is_listed_clone = |row: &StepRow| row.step == Step::Clone && row.case.fetch.is_none();
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
    rows: &[StepRow],
    belongs: &dyn Fn(&StepRow) -> bool,
    name: &dyn Fn(&StepRow) -> String,
) -> Table {
    const HEAD: [&str; 9] =
        ["test", "step", "wall", "stddev", "server CPU", "stddev", "server memory", "connections", "received"];
    Table {
        title,
        head: HEAD.to_vec(),
        text_columns: 2,
        lines: rows.iter().filter(|row| belongs(row)).map(|row| row.line(name(row))).collect(),
    }
}

impl StepRow {
    fn line(&self, name: String) -> Vec<String> {
        let Self { times, result, .. } = self;
        let cpu = result.server_cpu_ms.as_ref();
        vec![
            result.test.into(),
            name,
            shown(times.median),
            or_dash(times.stddev, shown),
            or_dash(cpu, |cpu| shown_ms(cpu.median)),
            or_dash(cpu.and_then(|cpu| stddev(&cpu.values)), shown_ms),
            size(result.server_peak_memory_bytes),
            count(result.connections),
            size(result.bytes_received),
        ]
    }
}
