//! A server that the user owns, measured from the client's side only: clones, and nothing else.

use std::path::Path;

use calve_core::CancelToken;

use super::cases::{Case, CloneKind};
use super::client::StepFailure;
use super::clients::{Clients, GitOutput, brief};
use super::repository::pack_bytes;
use super::rounds::CaseResult;
use super::sample::{ClientView, Sample, Step};
use super::source::GitAddress;
use super::testbed::PROTOCOL;
use crate::error::BenchError;
use crate::scratch::delete;

pub(super) struct Server<'a> {
    pub(super) address: &'a GitAddress,
    pub(super) branch: Option<&'a str>,
    pub(super) clients: Clients<'a>,
    pub(super) directory: &'a Path,
    pub(super) cancel: &'a CancelToken,
}

impl Server<'_> {
    /// Clones once, as a test wants it.
    pub(super) fn measure(&self, outcome: &mut CaseResult, round: u32) -> Result<(), BenchError> {
        match self.clone(outcome.case, round)? {
            Ok(sample) => outcome.samples.push(sample),
            Err(failure) => outcome.failure = Some(failure),
        }
        Ok(())
    }

    fn clone(&self, case: &'static Case, round: u32) -> Result<Result<Sample, StepFailure>, BenchError> {
        let directory = self.directory.join("client");
        let trace = self.directory.join("trace");
        let mut command = self.clients.git(self.directory, None);
        command.env("GIT_ALLOW_PROTOCOL", "https:http:ssh:git:file");
        // Its traffic, without contents and secrets.
        command.env("GIT_TRACE_CURL", &trace).env("GIT_TRACE_CURL_NO_DATA", "1").env("GIT_TRACE_REDACT", "1");
        command.args(["-c", &format!("protocol.version={PROTOCOL}"), "clone", "--quiet"]).args(case.clone.option());
        if let Some(branch) = self.branch {
            command.args(["--branch", branch]);
        }
        command.arg("--").arg(self.address.for_git()).arg(&directory);
        let mut ran = self.clients.run(&mut command)?;
        ran.said = self.address.censored(&ran.said);
        let requests = requests(&trace);
        let command = case.clone_command();
        let failure = |exit_code, reason| StepFailure { step: Step::Clone, command, round, exit_code, reason };
        let result = match not_honoured(case, &ran, &directory) {
            _ if !ran.is_success() => Err(failure(ran.ended.status.code(), self.clients.reason(&ran))),
            Some(text) => Err(failure(Some(0), text.into())),
            None => Ok(Sample {
                step: Step::Clone,
                round,
                ordinal: 1,
                usage: ran.ended.usage,
                charge: None,
                seen: Some(ClientView { requests, pack_bytes: pack_bytes(&directory) }),
                said: brief(&ran.said),
            }),
        };
        delete(&directory, self.cancel)?;
        let _ = fs_err::remove_file(&trace);
        Ok(result)
    }
}

/// Tells what the server took no notice of: git ends well all the same.
fn not_honoured(case: &Case, ran: &GitOutput, directory: &Path) -> Option<String> {
    if case.clone.is_filtered() && ran.said.contains("filtering not recognized") {
        return Some("the server does not support filters and sent everything".into());
    }
    let cut = directory.join(".git/shallow").exists();
    let one = case.clone == CloneKind::Shallow && !cut && has_parents(directory);
    one.then(|| "the server sent the whole history".into())
}

/// Returns whether the newest commit has any that are there.
fn has_parents(directory: &Path) -> bool {
    calve_git::Git::at(directory)
        .output(&["rev-parse", "--verify", "--quiet", "HEAD^"])
        .is_ok_and(|it| it.status.success())
}

/// Counts the requests in a trace. `None` where it was not by HTTP.
fn requests(trace: &Path) -> Option<u64> {
    let bytes = fs_err::read(trace).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let sent = text.lines().filter_map(|line| line.split_once("=> Send header: ").map(|(_, header)| header));
    let number = sent.filter(|header| ["GET ", "POST "].iter().any(|method| header.starts_with(method))).count() as u64;
    (number > 0).then_some(number)
}
