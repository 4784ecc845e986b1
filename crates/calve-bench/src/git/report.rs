//! What the bench has to tell, in whatever form.

use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};

use crate::document::Document;
use crate::error::{BenchError, FailureKind};

use super::cases::Case;
use super::clients::NO_SPACE;
use super::ground::Accounts;
use super::link::Link;
use super::sample::{Broken, Sample, Step};
use crate::machine::Machine;
use crate::report::Warning;
use crate::stats::{Summary, median, outliers};

/// The report of `calve bench git`.
pub struct Report {
    pub(crate) began: SystemTime,
    pub(crate) machine: Machine,
    /// Program and version.
    pub(crate) versions: Vec<(&'static str, String)>,
    pub(crate) protocol: u8,
    /// A server of the user's, of which only the client's side is known.
    pub(crate) server: Option<String>,
    pub(crate) link: Option<Link>,
    pub(crate) clients: u32,
    pub(crate) rounds: u32,
    pub(crate) duration: Option<Duration>,
    pub(crate) fetches: u32,
    pub(crate) push_every: Duration,
    pub(crate) repositories: Vec<Described>,
    /// In the order of the repositories, tests and steps.
    pub(crate) rows: Vec<Row>,
    pub(crate) broken: Vec<(usize, &'static Case, Broken)>,
    pub(crate) accounts: Option<Accounts>,
    /// Peaks of memory up to this are the bench's own.
    pub(crate) memory_floor_bytes: u64,
    pub(crate) warnings: Vec<Warning>,
}

/// A repository as the report has it.
pub(crate) struct Described {
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) branch: Option<String>,
    pub(crate) file: Option<String>,
    pub(crate) back: u32,
    pub(crate) shape: Map<String, Value>,
    pub(crate) in_words: String,
    pub(crate) bitmaps: Option<bool>,
    pub(crate) commit_graph: Option<bool>,
}

/// One step of one test of one repository.
pub(crate) struct Row {
    /// Its position in the report.
    pub(crate) repository: usize,
    pub(crate) case: &'static Case,
    pub(crate) step: Step,
    pub(crate) command: String,
    /// At least one.
    pub(crate) samples: Vec<Sample>,
}

impl Row {
    pub(crate) fn values(&self, value: impl Fn(&Sample) -> f64) -> Vec<f64> {
        self.samples.iter().map(value).collect()
    }

    pub(crate) fn seconds(&self) -> Summary {
        let empty = Summary { mean: 0.0, stddev: None, median: 0.0, min: 0.0, max: 0.0, mad: 0.0 };
        Summary::of(&self.values(|sample| sample.seconds)).unwrap_or(empty)
    }

    /// What the server needed, in milliseconds; empty where that is not known.
    pub(crate) fn server_cpu_ms(&self) -> Vec<f64> {
        self.charges(|charge| charge.cpu.as_secs_f64() * 1000.0)
    }

    pub(crate) fn pack_objects_cpu_ms(&self) -> Option<f64> {
        median(&self.charges(|charge| charge.pack_objects.as_secs_f64() * 1000.0))
    }

    /// With `git http-backend`, which does little.
    pub(crate) fn upload_pack_cpu_ms(&self) -> Option<f64> {
        median(&self.charges(|charge| charge.cpu.saturating_sub(charge.pack_objects).as_secs_f64() * 1000.0))
    }

    pub(crate) fn server_peak_memory_bytes(&self) -> Option<u64> {
        self.samples.iter().filter_map(|sample| Some(sample.charge?.peak_memory_bytes)).max()
    }

    pub(crate) fn requests(&self) -> Option<u64> {
        let of = |sample: &Sample| match (sample.charge, sample.seen) {
            (Some(charge), _) => Some(charge.requests as f64),
            (None, seen) => Some(seen?.requests? as f64),
        };
        median(&self.samples.iter().filter_map(of).collect::<Vec<_>>()).map(|number| number.round() as u64)
    }

    /// As the client sees it. Of a server of others, what its packs take.
    pub(crate) fn bytes_received(&self) -> Option<u64> {
        let of = |sample: &Sample| match (sample.charge, sample.seen) {
            (Some(_), _) if self.case.from_daemon => None,
            (Some(charge), _) => Some(charge.bytes_out as f64),
            (None, seen) => Some(seen?.pack_bytes as f64),
        };
        median(&self.samples.iter().filter_map(of).collect::<Vec<_>>()).map(|number| number.round() as u64)
    }

    pub(crate) fn bytes_sent(&self) -> Option<u64> {
        if self.case.from_daemon {
            return None;
        }
        median(&self.charges(|charge| charge.bytes_in as f64)).map(|number| number.round() as u64)
    }

    fn charges(&self, value: impl Fn(&super::host::ledger::Charge) -> f64) -> Vec<f64> {
        self.samples.iter().filter_map(|sample| Some(value(sample.charge.as_ref()?))).collect()
    }
}

/// Of these tests, one row for each step that was measured.
pub(super) fn rows(repository: usize, case: &'static Case, samples: Vec<Sample>, back: u32) -> Vec<Row> {
    let steps = [Step::Clone, Step::Checkout, Step::Blame, Step::Fetch, Step::Reset];
    let mut left = samples;
    let mut rows = Vec::new();
    for step in steps {
        let (of_step, others): (Vec<_>, Vec<_>) = left.into_iter().partition(|sample| sample.step == step);
        left = others;
        if !of_step.is_empty() {
            let command = super::client::command_of(case, step, back);
            rows.push(Row { repository, case, step, command, samples: of_step });
        }
    }
    rows
}

impl Document for Report {
    fn json(&self) -> Value {
        super::json::document(self)
    }

    fn markdown(&self) -> String {
        super::markdown::document(self)
    }

    fn html(&self) -> String {
        super::html::document(self)
    }

    fn verdict(&self) -> Result<(), BenchError> {
        let Some((_, case, broken)) = self.broken.first() else { return Ok(()) };
        let text = format!("{}: `{}` failed: {}", case.name, broken.command, broken.reason);
        let hint = if broken.reason.starts_with(NO_SPACE) {
            "free some there, or name another place with `--into`"
        } else {
            "what git said is the reason; the other tests are in the report"
        };
        Err(BenchError::stated(FailureKind::Failed, text, hint))
    }
}

impl Report {
    pub(crate) fn row(&self, repository: usize, test: &str, step: Step) -> Option<&Row> {
        self.rows.iter().find(|row| row.repository == repository && row.case.name == test && row.step == step)
    }

    pub(crate) fn warn(&mut self, code: &'static str, message: String) {
        self.warnings.push(Warning { code, message });
    }

    /// What the host adds to a full clone, beside git's own server: the ratio of the medians, for each repository.
    pub(crate) fn against_daemon(&self) -> Vec<(usize, f64)> {
        let of = |repository| {
            let ours = self.row(repository, "T1", Step::Clone)?.seconds().median;
            let theirs = self.row(repository, "daemon", Step::Clone)?.seconds().median;
            (theirs > 0.0).then_some((repository, ours / theirs))
        };
        (0..self.repositories.len()).filter_map(of).collect()
    }

    /// The sentences at the end.
    pub(crate) fn conclusions(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for (repository, ratio) in self.against_daemon() {
            let name = &self.repositories[repository].name;
            lines.push(format!(
                "{name}: a full clone from the bench's host takes {ratio:.3} times as long as one from git daemon."
            ));
        }
        if let Some(accounts) = &self.accounts
            && let (Some(host), Some(difference)) = (accounts.host_seconds, accounts.difference_percent())
        {
            lines.push(format!(
                "The server's processes took {host:.2} s of CPU by the kernel's count of all children; the operations and pushes were \
                 charged {:.2} s, {difference:+.1} %.",
                accounts.charged_seconds + accounts.pushes_seconds
            ));
        }
        lines
    }

    pub(super) fn warn_of_the_machine(&mut self, others: &[f64], swapped: Option<u64>) {
        let cores = self.machine.cores;
        if let Some(load) = self.machine.load.filter(|load| *load > cores as f64 / 2.0) {
            self.warn(
                "busy_before",
                format!("the machine was busy before the first run: load average {load:.1} on {cores} cores"),
            );
        }
        let busy: Vec<f64> = others.iter().copied().filter(|others| *others > OTHERS_DISTURB).collect();
        if !busy.is_empty() {
            let most = busy.iter().copied().fold(0.0, f64::max);
            let message = format!(
                "other programs were busy during {} of {} tests, with up to {most:.1} of {cores} cores",
                busy.len(),
                others.len()
            );
            self.warn("busy_during", message);
        }
        if let Some(pages) = swapped.filter(|pages| *pages > 0) {
            self.warn("swapping", format!("the machine was swapping: {pages} pages during the runs"));
        }
    }

    pub(super) fn warn_of_rows(&mut self) {
        let mut warnings = Vec::new();
        for row in &self.rows {
            let (name, command, test) = (&self.repositories[row.repository].name, &row.command, row.case.name);
            let far = outliers(&row.values(|sample| sample.seconds)).len();
            if far > 0 {
                let total = row.samples.len();
                warnings.push((
                    "outliers",
                    format!("{name} {test} `{command}`: {far} of {total} runs are far from the median"),
                ));
            }
        }
        for (repository, case, broken) in &self.broken {
            let name = &self.repositories[*repository].name;
            let Broken { command, reason, .. } = broken;
            warnings.push((
                "failed",
                format!("{name} {}: `{command}` failed, and the test was not run again: {reason}", case.name),
            ));
        }
        for (code, message) in warnings {
            self.warn(code, message);
        }
        if let Some(accounts) = &self.accounts
            && let Some(difference) = accounts.difference_percent()
            && difference.abs() > 3.0
            && accounts.host_seconds.is_some_and(|seconds| seconds > ENOUGH_TO_COMPARE)
        {
            let message = format!("what was charged is {difference:+.1} % of what the server's processes took");
            self.warn("accounts", message);
        }
    }
}

/// In processors.
const OTHERS_DISTURB: f64 = 0.25;

/// The kernel's sums come in hundredths of a second.
const ENOUGH_TO_COMPARE: f64 = 2.0;
