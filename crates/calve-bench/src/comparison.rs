//! The report of a bench that compares commands: for each group, a section and a sentence about the faster ones.

use calve_receipt::bench::{
    BenchFailure, BenchResult, BenchSide, CommandConditions, CommandResult, Conditions, NotRun, NotRunReason,
    ResultDetails, Spread,
};

use calve_receipt::human::counted;

use crate::remedy::ProgramSource;
use crate::report::{Report, Section, Usage, or_dash, shown, shown_bytes, times};
use crate::runs::Runs;
use crate::stats::ratio;
use crate::workload::{Group, Role, Workload, WorkloadRuns};

/// The rows of a group. Measured ones are sorted, the fastest first.
struct Ranking<'a> {
    group: &'a Group,
    rows: Vec<&'a WorkloadRuns>,
    failed: Vec<&'a WorkloadRuns>,
}

pub(crate) fn complete(report: &mut Report, runs: &Runs) {
    let rankings = rankings(&runs.rows);
    describe(report, runs);
    for ranking in &rankings {
        report.document.results.extend(ranking.rows.iter().filter_map(|row| ranking.result(row)));
        let section = ranking.section(report.document.memory_floor_bytes);
        report.sections.push(section);
        report.document.conclusions.extend(ranking.conclusion());
        for row in &ranking.rows {
            let (command, side) = (&row.workload.command, row.workload.role.side());
            if side == BenchSide::Calve && !row.said.is_empty() {
                report.notes.push(format!("`{command}` said: {}", row.said));
            }
            report.notes.extend(row.remarks.iter().map(|remark| format!("`{command}` {remark}")));
        }
    }
    let measured = || rankings.iter().flat_map(|ranking| &ranking.rows);
    let samples = measured().flat_map(|row| &row.samples);
    report.warn_of_others(&samples.map(|sample| sample.others).collect::<Vec<_>>());
    let seconds = measured().map(|row| (format!("`{}`", row.workload.command), row.seconds()));
    report.warn_of_spread(&seconds.collect::<Vec<_>>());
    for row in &runs.rows {
        let Some(failure) = &row.failed else { continue };
        let Workload { command, role, group, .. } = &row.workload;
        let label = format!("{}: `{command}`", group.name);
        let (command, side, group) = (command.clone(), Some(role.side()), Some(group.name.to_string()));
        report.fail(&label, BenchFailure { command, side, group, ..failure.clone() });
    }
}

fn describe(report: &mut Report, runs: &Runs) {
    let deleted = match runs.deletions.is_empty() {
        true => String::new(),
        false => format!("; to make room, earlier results were deleted {}", runs.deletions.join(", ")),
    };
    let rounds = counted(u64::from(runs.rounds), "round");
    report.circumstance("Runs", format!("{rounds}, the commands in another order in each{deleted}"));
    let ratios =
        "to the fastest of the table, taken within each round: the median, the least and the most of the rounds";
    report.circumstance("Ratios", ratios);
    report.document.rounds = runs.rounds;
    report.document.conditions = Conditions::Commands(CommandConditions { deletions: runs.deletions.clone() });
}

fn rankings(rows: &[WorkloadRuns]) -> Vec<Ranking<'_>> {
    let mut rankings: Vec<Ranking<'_>> = Vec::new();
    for row in rows {
        let group = &row.workload.group;
        let index = rankings.iter().position(|ranking| ranking.group == group).unwrap_or_else(|| {
            rankings.push(Ranking { group, rows: Vec::new(), failed: Vec::new() });
            rankings.len() - 1
        });
        let is_measured = row.failed.is_none() && !row.samples.is_empty();
        let list = if is_measured { &mut rankings[index].rows } else { &mut rankings[index].failed };
        list.push(row);
    }
    for ranking in &mut rankings {
        ranking.rows.sort_by(|a, b| a.median().total_cmp(&b.median()));
    }
    rankings
}

impl Ranking<'_> {
    fn ratio(&self, row: &WorkloadRuns) -> Spread {
        ratio(&row.times(), &self.rows[0].times())
    }

    /// Returns the row that the peers are compared with, if it was measured.
    fn reference(&self) -> Option<&WorkloadRuns> {
        self.rows.iter().copied().find(|row| row.workload.role == Role::Reference)
    }

    /// Returns Calve's command if this peer is faster.
    fn beaten_by(&self, row: &WorkloadRuns) -> Option<&str> {
        let reference = self.reference()?;
        let is_faster = row.workload.role == Role::Peer && row.median() < reference.median();
        is_faster.then_some(reference.workload.command.as_str())
    }

    fn result(&self, row: &WorkloadRuns) -> Option<BenchResult> {
        let ratio = self.ratio(row);
        let runs: Vec<Usage> = row.samples.iter().map(|sample| sample.usage).collect();
        Some(BenchResult {
            times: Some(times(&row.workload.command, &runs)?),
            details: ResultDetails::Command(CommandResult {
                side: row.workload.role.side(),
                group: row.workload.group.name.to_string(),
                ratio_to_fastest: ratio.median,
                ratios: ratio.values,
                faster_than: self.beaten_by(row).map(str::to_owned),
                disk_bytes: row.middle(|sample| sample.disk_bytes as f64) as i64,
                disk_bytes_of_runs: row.samples.iter().map(|sample| sample.disk_bytes).collect(),
                longest_stall: row.longest_stall(),
                said: row.said.clone(),
                remarks: row.remarks.clone(),
            }),
        })
    }

    fn section(&self, memory_floor_bytes: Option<u64>) -> Section {
        let command = |row: &WorkloadRuns| format!("`{}`", row.workload.command);
        let faster =
            |row: &WorkloadRuns| self.beaten_by(row).map_or_else(String::new, |ours| format!("faster than `{ours}`"));
        let mut head =
            vec!["command", "median", "min", "max", "ratio", "in rounds", "user", "system", "memory", "disk used"];
        let stalls = self.rows.iter().any(|row| row.longest_stall().is_some());
        head.extend(stalls.then_some("stall"));
        let beaten = self.rows.iter().any(|row| self.beaten_by(row).is_some());
        head.extend(beaten.then_some(""));
        let line = |row: &&WorkloadRuns| {
            let (ratio, values) = (self.ratio(row), row.seconds());
            let bounds =
                [values.iter().copied().fold(f64::INFINITY, f64::min), values.iter().copied().fold(0.0, f64::max)];
            let memory = row.middle(|sample| sample.usage.peak_memory_bytes as f64);
            // The kernel counts from the bench's own size on: a smaller peak is invisible.
            let floor = memory_floor_bytes.unwrap_or(0) as f64;
            let memory = if memory <= floor { format!("≤ {}", shown_bytes(floor)) } else { shown_bytes(memory) };
            let mut cells = vec![
                command(row),
                shown(row.median()),
                shown(bounds[0]),
                shown(bounds[1]),
                format!("{:.2}", ratio.median),
                format!("{:.2}–{:.2}", ratio.min, ratio.max),
                shown(row.middle(|sample| sample.usage.user_seconds)),
                shown(row.middle(|sample| sample.usage.system_seconds)),
                memory,
                shown_bytes(row.middle(|sample| sample.disk_bytes as f64)),
            ];
            cells.extend(stalls.then(|| or_dash(row.longest_stall(), shown)));
            cells.extend(beaten.then(|| faster(row)));
            cells
        };
        let failed = self.failed.iter().map(|row| vec![command(row), "failed".into()]);
        let lines = self.rows.iter().map(line).chain(failed).collect();
        Section { note: self.group.note, ..Section::of_table(self.group.name.clone(), head, lines) }
    }

    /// Names the programs that are faster than Calve, if any.
    fn conclusion(&self) -> Option<String> {
        let name = &self.group.name;
        let Some(ours) = self.reference() else {
            let failed = self.failed.iter().find(|row| row.workload.role == Role::Reference)?;
            return Some(format!("{name}: `{}` failed, so that nothing is compared with it.", failed.workload.command));
        };
        let named = |row: &WorkloadRuns| format!("`{}` ({}", row.workload.command, shown(row.median()));
        let peers: Vec<&WorkloadRuns> =
            self.rows.iter().copied().filter(|row| row.workload.role == Role::Peer).collect();
        let compared = |row: &&WorkloadRuns| {
            let ratio = ratio(&ours.times(), &row.times());
            let (slower, rounds) = (ratio.values.iter().filter(|ratio| **ratio > 1.0).count(), ratio.values.len());
            let times = format!("{:.2} times as long, and longer in {slower} of {rounds} rounds", ratio.median);
            format!("{}; Calve takes {times})", named(row))
        };
        let faster: Vec<String> = peers.iter().filter(|row| row.median() < ours.median()).map(compared).collect();
        Some(match (peers.first(), faster.is_empty()) {
            (None, _) => format!("{name}: {}); no peer was measured.", named(ours)),
            (Some(next), true) => {
                format!("{name}: no peer was faster than {}); the next is {}.", named(ours), compared(next))
            }
            (Some(_), false) => format!("{name}: faster than {}): {}.", named(ours), faster.join(", ")),
        })
    }
}

pub(crate) fn missing(command: impl Into<String>, program: &str, source: ProgramSource) -> NotRun {
    let reason = format!("`{program}` is not installed");
    NotRun { command: command.into(), why: NotRunReason::Missing, reason, remedy: Some(source.to_string()) }
}

/// Makes the entry of a refused command. `hint` words a remedy.
pub(crate) fn refused(
    command: impl Into<String>,
    refusal: &calve_core::Refusal,
    hint: fn(&calve_core::error::Remedy) -> String,
) -> NotRun {
    let remedy = refusal.remedy.as_ref().map(hint);
    NotRun { command: command.into(), why: NotRunReason::Refused, reason: refusal.reason.clone(), remedy }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::workload::Sample;

    const GROUP: Group = Group { name: Cow::Borrowed("copies"), note: "" };

    fn row(command: &str, role: Role, seconds: &[f64]) -> WorkloadRuns {
        let sample = |(position, &seconds): (usize, &f64)| Sample {
            round: position as u32 + 1,
            usage: Usage { seconds, ..Usage::default() },
            ..Sample::default()
        };
        let mut row = WorkloadRuns::new(Workload::new(command, role, GROUP, |_| Vec::new()));
        row.samples = seconds.iter().enumerate().map(sample).collect();
        row
    }

    #[test]
    fn the_sentence_names_the_times_that_it_compares() {
        let ours = row("calve cp", Role::Reference, &[0.030, 0.040, 0.070]);
        let rows = [ours, row("cp -a", Role::Peer, &[0.060, 0.080, 0.060])];
        let sentence = rankings(&rows)[0].conclusion().unwrap();
        assert_eq!(
            sentence,
            "copies: no peer was faster than `calve cp` (40.0 ms); the next is `cp -a` (60.0 ms; Calve takes 0.50 \
             times as long, and longer in 1 of 3 rounds)."
        );
        let rows = [row("calve cp", Role::Reference, &[0.2]), row("cp -a", Role::Peer, &[0.1])];
        let sentence = rankings(&rows)[0].conclusion().unwrap();
        assert!(
            sentence
                .starts_with("copies: faster than `calve cp` (200.0 ms): `cp -a` (100.0 ms; Calve takes 2.00 times")
        );
    }
}
