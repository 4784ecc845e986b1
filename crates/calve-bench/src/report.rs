//! What a bench has to tell, in whatever form.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde_json::Value;

use crate::document::Document;
use crate::error::{BenchError, FailureKind};
use crate::export;

use super::machine::Machine;
use super::runs::{Plan, Runs};
use super::space::Cache;
use super::stats::{Summary, median, outliers, round_factors, steady};
use super::workload::{Absent, Group, Row, Side, Why};
use calve_receipt::human::duration;

/// The report of a bench that compares commands.
pub struct Report {
    /// "copy"
    pub(crate) bench: &'static str,
    /// What was measured, in a sentence.
    pub(crate) subject: String,
    pub(crate) began: SystemTime,
    pub(crate) machine: Machine,
    pub(crate) cache: Cache,
    pub(crate) warmup: u32,
    pub(crate) rounds: u32,
    /// About what was measured: only its own bench knows.
    pub(crate) facts: Vec<Fact>,
    /// Program and version.
    pub(crate) versions: Vec<(String, String)>,
    /// In the order in which they are shown: those measured first, the fastest of each group first.
    pub(crate) rows: Vec<Row>,
    pub(crate) absent: Vec<Absent>,
    /// Peaks of memory up to this are the bench's own.
    pub(crate) memory_floor_bytes: u64,
    pub(crate) deletions: Vec<String>,
    pub(crate) warnings: Vec<Warning>,
    /// What the numbers of disk space are.
    pub(crate) disk: Disk,
    /// What the bench itself has to say at the end, after the comparison of times.
    pub(crate) findings: Vec<String>,
    /// How many times as long as usual everything took in each round.
    round_factors: BTreeMap<u32, f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disk {
    /// How much fuller the file system was after a run.
    Taken,
    /// How much emptier.
    Gained,
}

pub(crate) struct Fact {
    pub(crate) key: &'static str,
    pub(crate) label: &'static str,
    pub(crate) text: String,
    pub(crate) json: Value,
}

impl Fact {
    pub(crate) fn new(key: &'static str, label: &'static str, text: String, json: Value) -> Self {
        Self { key, label, text, json }
    }
}

/// Something that makes the numbers worth less.
pub(crate) struct Warning {
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl Report {
    pub(crate) fn new(
        bench: &'static str,
        began: SystemTime,
        machine: Machine,
        plan: &Plan<'_>,
        runs: Runs,
        absent: Vec<Absent>,
        versions: Vec<(String, String)>,
    ) -> Self {
        let mut report = Self {
            bench,
            subject: String::new(),
            began,
            machine,
            cache: plan.cache,
            warmup: plan.warmup,
            rounds: runs.rounds,
            facts: Vec::new(),
            versions,
            rows: runs.rows,
            absent,
            memory_floor_bytes: 0,
            deletions: runs.deletions,
            warnings: Vec::new(),
            disk: Disk::Taken,
            findings: Vec::new(),
            round_factors: BTreeMap::new(),
        };
        report.round_factors = round_factors(&report.times_by_round());
        report.sort();
        report.warn_of_the_machine();
        report.warn_of_runs();
        report
    }

    fn sort(&mut self) {
        let mut groups: Vec<&Group> = Vec::new();
        for row in &self.rows {
            if !groups.contains(&row.workload.group) {
                groups.push(row.workload.group);
            }
        }
        let rank = |row: &Row| {
            let group = groups.iter().position(|group| *group == row.workload.group).unwrap_or(usize::MAX);
            (!row.is_measured(), group)
        };
        let factors = &self.round_factors;
        self.rows.sort_by(|a, b| {
            let time = |row: &Row| steady_seconds(row, factors).unwrap_or(f64::INFINITY);
            rank(a).cmp(&rank(b)).then(time(a).total_cmp(&time(b)))
        });
    }

    fn times_by_round(&self) -> Vec<Vec<(u32, f64)>> {
        let measured = self.rows.iter().filter(|row| row.is_measured());
        measured.map(|row| row.samples.iter().map(|sample| (sample.round, sample.seconds)).collect()).collect()
    }

    /// What commands are compared by, and so in the order in which they are shown: the time of an undisturbed run in a usual round.
    pub(crate) fn steady(&self, row: &Row) -> f64 {
        steady_seconds(row, &self.round_factors).unwrap_or(f64::INFINITY)
    }

    pub(crate) fn measured(&self) -> impl Iterator<Item = (&Row, Summary)> {
        let rows = self.rows.iter().filter(|row| row.is_measured());
        rows.filter_map(|row| Some((row, Summary::of(&row.seconds())?)))
    }

    pub(crate) fn failed(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.failed.is_some())
    }

    /// How many times as long as the fastest of its group.
    pub(crate) fn ratio(&self, row: &Row) -> f64 {
        let group = self.measured().filter(|(other, _)| other.workload.group == row.workload.group);
        self.steady(row) / group.map(|(other, _)| self.steady(other)).fold(f64::INFINITY, f64::min)
    }

    /// What the peers in a group are compared with, when it was measured.
    pub(crate) fn reference(&self, group: &Group) -> Option<(&Row, Summary)> {
        self.measured().find(|(row, _)| row.workload.group == group && row.workload.side == Side::Reference)
    }

    /// The command of Calve's that this peer is faster than.
    pub(crate) fn beats(&self, row: &Row) -> Option<&str> {
        let (reference, _) = self.reference(row.workload.group)?;
        let is_faster = row.workload.side == Side::Peer && self.steady(row) < self.steady(reference);
        is_faster.then_some(reference.workload.command.as_str())
    }

    /// The sentences at the end: for each group who is faster than Calve, or that nobody is.
    pub(crate) fn conclusions(&self) -> Vec<String> {
        let references = self.measured().filter(|(row, _)| row.workload.side == Side::Reference);
        let mut sentences: Vec<String> = references.map(|(row, ours)| self.conclusion(row, &ours)).collect();
        for row in self.failed().filter(|row| row.workload.side == Side::Reference) {
            sentences.push(format!("`{}` failed, so that nothing is compared with it.", row.workload.command));
        }
        sentences.extend(self.findings.iter().cloned());
        sentences
    }

    /// Names the times by which commands are compared and sorted, so that the sentence cannot contradict them.
    fn conclusion(&self, reference: &Row, ours: &Summary) -> String {
        let Group { name, .. } = reference.workload.group;
        let ours_shown = format!("`{}` ({})", reference.workload.command, shown(self.steady(reference)));
        let peers: Vec<_> = self
            .measured()
            .filter(|(row, _)| row.workload.side == Side::Peer && row.workload.group == reference.workload.group)
            .collect();
        let faster: Vec<String> = peers
            .iter()
            .filter(|(row, _)| self.steady(row) < self.steady(reference))
            .map(|(row, theirs)| {
                let times = self.steady(reference) / self.steady(row);
                let doubt = if theirs.max >= ours.min { ", within the spread" } else { "" };
                let (command, took) = (&row.workload.command, shown(self.steady(row)));
                format!("`{command}` ({took}; Calve takes {times:.2} times as long{doubt})")
            })
            .collect();
        if peers.is_empty() {
            return format!("{name}: {ours_shown}; no peer was measured.");
        }
        if faster.is_empty() {
            let (row, theirs) = &peers[0];
            let part = self.steady(reference) / self.steady(row);
            let (command, took) = (&row.workload.command, shown(self.steady(row)));
            let doubt = if ours.max >= theirs.min { ", within the spread" } else { "" };
            return format!(
                "{name}: no peer was faster than {ours_shown}; the next is `{command}` ({took}; Calve takes {part:.2} of its \
                 time{doubt})."
            );
        }
        format!("{name}: faster than {ours_shown}: {}.", faster.join(", "))
    }

    /// Each round, and what its runs took as a multiple of their commands' medians, in the middle.
    pub(crate) fn rounds_in_relation(&self) -> Vec<(u32, f64)> {
        let of = |round: u32| {
            let runs =
                self.measured().flat_map(|(row, summary)| row.samples.iter().map(move |sample| (sample, summary)));
            let runs = runs.filter(|(sample, _)| sample.round == round);
            median(&runs.map(|(sample, summary)| sample.seconds / summary.median).collect::<Vec<_>>())
        };
        (1..=self.rounds).filter_map(|round| Some((round, of(round)?))).collect()
    }

    pub(crate) fn missing(&self) -> impl Iterator<Item = &Absent> {
        self.absent.iter().filter(|absent| absent.why == Why::Missing)
    }

    pub(crate) fn refused(&self) -> impl Iterator<Item = &Absent> {
        self.absent.iter().filter(|absent| absent.why == Why::Refused)
    }

    pub(crate) fn cache_in_words(&self) -> String {
        let rounds = match self.warmup {
            0 => String::new(),
            1 => "; one round before these is not counted".into(),
            number => format!("; {number} rounds before these are not counted"),
        };
        match self.cache {
            Cache::Warm => format!("warm: the tree was read once before the first run{rounds}"),
            Cache::Cold => format!("cold: emptied before each run, also of the programs themselves{rounds}"),
        }
    }

    pub(crate) fn warn(&mut self, code: &'static str, message: String) {
        self.warnings.push(Warning { code, message });
    }

    fn warn_of_the_machine(&mut self) {
        let cores = self.machine.cores;
        if let Some(load) = self.machine.load.filter(|load| *load > cores as f64 / 2.0) {
            let message = format!("the machine was busy before the first run: load average {load:.1} on {cores} cores");
            self.warn("busy_before", message);
        }
        let all = || self.rows.iter().flat_map(|row| &row.samples);
        let busy: Vec<f64> =
            all().filter_map(|sample| sample.others).filter(|others| *others > OTHERS_DISTURB).collect();
        if !busy.is_empty() {
            let (most, number) = (busy.iter().copied().fold(0.0, f64::max), busy.len());
            let message = format!(
                "other programs were busy during {number} of {} runs, with up to {most:.1} of {cores} cores",
                all().count()
            );
            self.warn("busy_during", message);
        }
    }

    fn warn_of_runs(&mut self) {
        let mut warnings = Vec::new();
        let mut wide = Vec::new();
        for (row, summary) in self.measured() {
            let command = &row.workload.command;
            let far: Vec<String> = outliers(&row.seconds())
                .into_iter()
                .map(|index| format!("{} in round {}", shown(row.samples[index].seconds), row.samples[index].round))
                .collect();
            if !far.is_empty() {
                let (list, middle) = (far.join(", "), shown(summary.median));
                warnings.push(("outliers", format!("`{command}`: far from its median of {middle}: {list}")));
            }
            let spread = summary.mad / summary.median;
            if spread > LARGE_SPREAD {
                wide.push(format!("`{command}` {:.0} %", spread * 100.0));
            }
        }
        if !wide.is_empty() {
            let message = format!("large spread, the MAD in percent of the median: {}", wide.join(", "));
            warnings.push(("large_spread", message));
        }
        let rounds = self.rounds_in_relation();
        let compare = |a: &&(u32, f64), b: &&(u32, f64)| a.1.total_cmp(&b.1);
        if let (Some(fast), Some(slow)) = (rounds.iter().min_by(compare), rounds.iter().max_by(compare))
            && slow.1 / fast.1 > DRIFT
        {
            let times = slow.1 / fast.1;
            let message = format!(
                "the machine was not equally fast all the time: round {} took {times:.2} times as long as round {}",
                slow.0, fast.0
            );
            warnings.push(("drift", message));
        }
        for (code, message) in warnings {
            self.warn(code, message);
        }
        for row in self.rows.iter().filter(|row| row.failed.is_some()) {
            let Some(failed) = &row.failed else { continue };
            let message = format!("`{}` failed and was not run again: {}", row.workload.command, failed.reason);
            self.warnings.push(Warning { code: "failed", message });
        }
    }
}

/// In processors.
const OTHERS_DISTURB: f64 = 0.25;
const LARGE_SPREAD: f64 = 0.10;
/// Of the slowest round to the fastest.
const DRIFT: f64 = 1.25;

fn steady_seconds(row: &Row, factors: &BTreeMap<u32, f64>) -> Option<f64> {
    let usual = |round: &u32| factors.get(round).copied().unwrap_or(1.0);
    steady(&row.samples.iter().map(|sample| sample.seconds / usual(&sample.round)).collect::<Vec<_>>())
}

impl Document for Report {
    fn json(&self) -> Value {
        export::json::document(self)
    }

    fn markdown(&self) -> String {
        export::markdown::document(self)
    }

    fn html(&self) -> String {
        export::html::document(self)
    }

    fn verdict(&self) -> Result<(), BenchError> {
        let Some(row) = self.failed().find(|row| row.workload.command.starts_with("calve ")) else { return Ok(()) };
        let text = format!("`{}` failed", row.workload.command);
        let hint = "the report has its exit code and what it said; run it by hand to see more";
        Err(BenchError::stated(FailureKind::Failed, text, hint))
    }
}

/// Seconds for people.
pub(crate) fn shown(seconds: f64) -> String {
    duration(std::time::Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use calve_core::Cancel;

    use super::super::space::Room;
    use super::super::workload::{Leftovers, Sample, Workload};
    use super::*;
    use crate::runs::Rounds;

    const GROUP: Group = Group { name: "Copies", mark: "", note: "" };

    fn row(command: &str, side: Side, seconds: &[f64]) -> Row {
        let sample = |(number, &seconds): (usize, &f64)| Sample {
            round: number as u32 + 1,
            position: number,
            seconds,
            user_seconds: 0.0,
            system_seconds: 0.0,
            peak_memory_bytes: 0,
            disk_bytes: 0,
            flush_seconds: 0.0,
            others: None,
        };
        Row {
            workload: Workload {
                command: command.into(),
                side,
                group: &GROUP,
                argv: Box::new(|_| Vec::new()),
                prepare: None,
                kept: &[],
                leftovers: Leftovers::Keep,
            },
            samples: seconds.iter().enumerate().map(sample).collect(),
            failed: None,
            said: String::new(),
            remarks: Vec::new(),
        }
    }

    /// The median of the peer is the lower one, its steady time the higher.
    #[test]
    fn the_sentence_names_the_times_that_it_compares() {
        let cancel = Cancel::default();
        let plan = Plan {
            rounds: Rounds::Exactly(3),
            warmup: 0,
            cache: Cache::Warm,
            needs: Room { bytes: 0, inodes: 0 },
            memory_bytes: 0,
            inspect: &|_| Vec::new(),
            say: &|_| {},
            cancel: &cancel,
        };
        let rows = vec![
            row("calve cp", Side::Reference, &[0.030, 0.0664, 0.070]),
            row("cp -a", Side::Peer, &[0.062, 0.0627, 0.063]),
        ];
        let runs = Runs { rows, rounds: 3, deletions: Vec::new() };
        let report = Report::new("copy", SystemTime::now(), Machine::here(), &plan, runs, Vec::new(), Vec::new());
        let [sentence] = &report.conclusions()[..] else { panic!("one group, one sentence") };
        assert!(sentence.contains("no peer was faster than `calve cp` (44.6 ms)"), "{sentence}");
        assert!(sentence.contains("the next is `cp -a` (62.3 ms; Calve takes 0.72 of its time"), "{sentence}");
    }
}
