use calve_core::Strategy;
use calve_db::{DatabaseTemplate, ServerProgram};
use calve_receipt::bench::{
    BenchFailure, BenchResult, DatabaseResult, DatabaseStepResult, NotRun, NotRunReason, ResultDetails, Spread,
    TemplateFact,
};
use calve_receipt::human::{counted, size};

use super::bench::{DatabaseBench, QUERY};
use super::sample::{Sample, VariantRuns};
use crate::report::{Report, Section, or_dash, shown_bytes, shown_ms};
use crate::stats::spread;

pub(super) fn complete(
    report: &mut Report,
    bench: &DatabaseBench<'_>,
    template: &DatabaseTemplate,
    write: &str,
    rows: &[VariantRuns],
) {
    describe(report, bench, template, write);
    let measured = rows.iter().filter(|row| row.failed.is_none() && !row.samples.is_empty());
    let results: Vec<DatabaseResult> = measured.map(VariantRuns::result).collect();
    report.sections.push(medians(&results));
    let details = results.into_iter().map(|result| ResultDetails::Database(Box::new(result)));
    report.document.results = details.map(|details| BenchResult { times: None, details }).collect();
    for row in rows {
        let started = row.strategy.map(|strategy| format!("calve db start --strategy {strategy}"));
        let command = started.unwrap_or_else(|| row.name.clone());
        if let Some(reason) = row.failed.clone() {
            report.fail(
                &format!("`{command}`"),
                BenchFailure { command, reason, side: Some(row.side()), ..BenchFailure::default() },
            );
        } else if let Some(reason) = row.refused.clone() {
            report.document.not_run.push(NotRun { command, why: NotRunReason::Refused, reason, remedy: None });
        }
    }
}

fn describe(report: &mut Report, bench: &DatabaseBench<'_>, template: &DatabaseTemplate, write: &str) {
    let DatabaseTemplate { name, program: ServerProgram { engine, version, .. }, files, bytes, .. } = template;
    report.circumstance("Template", format!("`{name}`: {version}, {}, {}", counted(*files, "file"), size(*bytes)));
    report.circumstance("First query", format!("`{QUERY}`, timed from the request for a server on, cloning included"));
    let which = if bench.write.is_some() { "" } else { ": a row of the largest table" };
    report.circumstance("Writes", format!("`{write}`{which}"));
    let facts = &mut report.document.facts;
    facts.template = Some(TemplateFact { name: name.clone(), engine: engine.clone(), files: *files, bytes: *bytes });
    facts.write = Some(write.to_owned());
    report.document.rounds = bench.runs;
    report.circumstance("Runs", format!("{} for each variant, in rotating order, with warm caches", bench.runs));
    report.circumstance("Disk", "how much fuller the file system is after the tenth write, everything written out");
    report.circumstance("An existing directory", "a clone made beforehand, outside of the measured time");
    report.circumstance("Memory", "of all the server's processes, shared memory counted once, after the tenth write");
    report.versions([("calve".into(), env!("CARGO_PKG_VERSION").into()), (engine.clone(), version.clone())]);
}

fn medians(results: &[DatabaseResult]) -> Section {
    let median = |spread: &Option<Spread>| spread.as_ref().map(|spread| spread.median);
    let line = |of: &DatabaseResult| {
        let times = [&of.clone_ms, &of.first_query_ms, &of.first_write_ms, &of.tenth_write_ms, &of.stop_ms];
        let mut line = vec![of.server.clone()];
        line.extend(times.map(|time| or_dash(median(time), shown_ms)));
        line.extend([&of.disk_bytes, &of.memory_bytes].map(|bytes| or_dash(median(bytes), shown_bytes)));
        line
    };
    let head = vec!["way", "clone", "first query", "first write", "tenth write", "stop", "disk", "memory"];
    Section::of_table("Medians", head, results.iter().map(line).collect())
}

pub(super) fn add_steps(report: &mut Report, steps: Vec<DatabaseStepResult>) {
    let line = |DatabaseStepResult { step, ms, memory_bytes }: &DatabaseStepResult| {
        let shown = |value: fn(&Spread) -> f64| or_dash(ms.as_ref().map(value), shown_ms);
        let memory = or_dash(memory_bytes.as_ref().map(|bytes| bytes.median), shown_bytes);
        vec![format!("`{step}`"), shown(|ms| ms.median), shown(|ms| ms.min), shown(|ms| ms.max), memory]
    };
    let title = "Commands as a whole, until a query is answered";
    let head = vec!["command", "median", "shortest", "longest", "memory"];
    report.sections.push(Section {
        note: "Memory: of a standby and its supervisor after the query, what is shared with other processes divided among them.",
        ..Section::of_table(title, head, steps.iter().map(line).collect())
    });
    let details = steps.into_iter().map(ResultDetails::DatabaseStep);
    report.document.results.extend(details.map(|details| BenchResult { times: None, details }));
}

impl VariantRuns {
    fn result(&self) -> DatabaseResult {
        let of_each = |value: fn(&Sample) -> Option<f64>| spread(self.samples.iter().filter_map(value).collect());
        DatabaseResult {
            side: self.side(),
            server: self.name.clone(),
            strategy: self.strategy.map(Strategy::name),
            clone_ms: of_each(|sample| sample.clone_ms),
            first_query_ms: of_each(|sample| Some(sample.ready_ms)),
            first_write_ms: of_each(|sample| sample.writes_ms.first().copied()),
            tenth_write_ms: of_each(|sample| sample.writes_ms.last().copied()),
            stop_ms: of_each(|sample| Some(sample.stop_ms)),
            disk_bytes: of_each(|sample| Some(sample.disk_bytes as f64)),
            memory_bytes: of_each(|sample| Some(sample.memory_bytes? as f64)),
        }
    }
}
