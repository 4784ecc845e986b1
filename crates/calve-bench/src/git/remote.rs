//! A server that the user owns, measured from the client's side only: clones, and nothing else.

use std::path::Path;
use std::time::Instant;

use calve_core::Cancel;

use super::cases::{Case, CloneKind};
use super::clients::{Clients, Ran, brief};
use super::plan::Pace;
use super::repository::pack_bytes;
use super::sample::{Broken, Sample, Seen, Step};
use super::source::Address;
use crate::error::BenchError;
use crate::place::delete;
use crate::runs::shuffled;

/// What one test came to.
pub(super) struct Outcome {
    pub(super) case: &'static Case,
    pub(super) samples: Vec<Sample>,
    pub(super) broken: Option<Broken>,
}

pub(super) struct Server<'a> {
    pub(super) address: &'a Address,
    pub(super) branch: Option<&'a str>,
    pub(super) protocol: u8,
    pub(super) clients: Clients<'a>,
    pub(super) place: &'a Path,
    pub(super) cancel: &'a Cancel,
}

impl Server<'_> {
    /// One clone at a time.
    pub(super) fn run(
        &self,
        cases: &[&'static Case],
        pace: &Pace,
        say: &dyn Fn(&str),
    ) -> Result<(u32, Vec<Outcome>), BenchError> {
        let mut outcomes: Vec<Outcome> =
            cases.iter().map(|case| Outcome { case, samples: Vec::new(), broken: None }).collect();
        let began = Instant::now();
        let mut rounds = 0;
        while pace.rounds.another(rounds, began.elapsed()) && outcomes.iter().any(|outcome| outcome.broken.is_none()) {
            rounds += 1;
            for index in shuffled(outcomes.len(), u64::from(rounds)) {
                let outcome = &mut outcomes[index];
                if outcome.broken.is_some() {
                    continue;
                }
                let head = format!("round {rounds}  {} ({})", outcome.case.name, outcome.case.in_words());
                match self.clone(outcome.case, rounds)? {
                    Ok(sample) => {
                        let took = calve_receipt::human::duration(std::time::Duration::from_secs_f64(sample.seconds));
                        say(&format!("{head}: {took}"));
                        outcome.samples.push(sample);
                    }
                    Err(broken) => {
                        say(&format!("{head}: {} failed: {}", broken.command, broken.reason));
                        outcome.broken = Some(broken);
                    }
                }
            }
        }
        Ok((rounds, outcomes))
    }

    fn clone(&self, case: &'static Case, round: u32) -> Result<Result<Sample, Broken>, BenchError> {
        let directory = self.place.join("client");
        let trace = self.place.join("trace");
        let mut command = self.clients.git(self.place, None);
        command.env("GIT_ALLOW_PROTOCOL", "https:http:ssh:git:file");
        // What it sends and is sent, without contents and secrets.
        command.env("GIT_TRACE_CURL", &trace).env("GIT_TRACE_CURL_NO_DATA", "1").env("GIT_TRACE_REDACT", "1");
        command
            .args(["-c", &format!("protocol.version={}", self.protocol), "clone", "--quiet"])
            .args(case.clone.option());
        if let Some(branch) = self.branch {
            command.args(["--branch", branch]);
        }
        command.arg("--").arg(self.address.for_git()).arg(&directory);
        let mut ran = self.clients.run(&mut command)?;
        ran.said = self.address.censored(&ran.said);
        let requests = requests(&trace);
        let command = case.clone_command();
        let broken = |exit_code, reason| Broken { step: Step::Clone, command, round, exit_code, reason };
        let result = match not_honoured(case, &ran, &directory) {
            _ if !ran.is_success() => Err(broken(ran.ended.status.code(), self.clients.reason(&ran))),
            Some(reason) => Err(broken(Some(0), reason)),
            None => Ok(Sample {
                step: Step::Clone,
                round,
                ordinal: 1,
                seconds: ran.ended.seconds,
                user_seconds: ran.ended.user_seconds,
                system_seconds: ran.ended.system_seconds,
                peak_memory_bytes: ran.ended.peak_memory_bytes,
                charge: None,
                seen: Some(Seen { requests, pack_bytes: pack_bytes(&directory) }),
                said: brief(&ran.said),
            }),
        };
        delete(&directory, self.cancel)?;
        let _ = fs_err::remove_file(&trace);
        Ok(result)
    }
}

/// git ends well when the server took no notice of what was asked for.
fn not_honoured(case: &Case, ran: &Ran, directory: &Path) -> Option<String> {
    if case.clone.is_filtered() && ran.said.contains("filtering not recognized") {
        return Some("the server does not support filters and sent everything".into());
    }
    let cut = directory.join(".git/shallow").exists();
    let one = case.clone == CloneKind::Shallow && !cut && has_parents(directory);
    one.then(|| "the server sent the whole history".into())
}

/// Whether the newest commit has any that are there.
fn has_parents(directory: &Path) -> bool {
    calve_git::Git::at(directory)
        .output(&["rev-parse", "--verify", "--quiet", "HEAD^"])
        .is_ok_and(|it| it.status.success())
}

/// `None` where it was not by HTTP.
fn requests(trace: &Path) -> Option<u64> {
    let bytes = fs_err::read(trace).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let sent = text.lines().filter_map(|line| line.split_once("=> Send header: ").map(|(_, header)| header));
    let number = sent.filter(|header| ["GET ", "POST "].iter().any(|method| header.starts_with(method))).count() as u64;
    (number > 0).then_some(number)
}
