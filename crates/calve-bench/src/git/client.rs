//! One client: it clones, looks at the past, or fetches what was pushed meanwhile; each step is measured by itself.

use std::path::Path;
use std::process::Command;

use super::cases::Case;
use super::clients::{GitFailureReason, GitOutput, brief};
use super::pusher::Pusher;
use super::repository::Repository;
use super::rounds::FETCHES;
use super::sample::{Sample, Step};
use super::testbed::Testbed;
use crate::error::BenchError;
use crate::scratch::delete;

/// How a step went wrong, after which its test is not run again.
#[derive(Debug, Clone)]
pub(super) struct StepFailure {
    pub(super) step: Step,
    pub(super) command: String,
    pub(super) round: u32,
    pub(super) exit_code: Option<i32>,
    pub(super) reason: GitFailureReason,
}

/// Why a client stops.
pub(super) enum StopReason {
    Step(StepFailure),
    Failure(BenchError),
}

impl From<BenchError> for StopReason {
    fn from(failure: BenchError) -> Self {
        Self::Failure(failure)
    }
}

pub(super) struct Client<'a> {
    pub(super) testbed: &'a Testbed<'a>,
    pub(super) repository: &'a Repository,
    pub(super) case: &'static Case,
    pub(super) url: String,
    pub(super) pusher: &'a Pusher<'a>,
    pub(super) round: u32,
    /// Called with each measured step.
    pub(super) note: &'a (dyn Fn(Sample) + Sync),
}

impl Client<'_> {
    /// Makes one clone, does what comes after it, and removes the clone.
    pub(super) fn iteration(&self) -> Result<(), StopReason> {
        let directory = self.testbed.new_path("client");
        let done = self.steps(&directory);
        let removed = delete(&directory, self.testbed.cancel);
        done?;
        Ok(removed?)
    }

    fn steps(&self, directory: &Path) -> Result<(), StopReason> {
        let parent = directory.parent().unwrap_or(directory).to_path_buf();
        self.step(Step::Clone, 1, &parent, &|command| {
            command.args(["clone", "--quiet"]).args(self.case.clone.option()).arg("--").arg(&self.url).arg(directory);
        })?;
        self.check_honoured(directory)?;
        match self.case.fetch {
            None => self.look_back(directory),
            Some(_) => self.keep_up(directory),
        }
    }

    /// Runs `git checkout HEAD~N` and `git blame`, where the clone has a past.
    fn look_back(&self, directory: &Path) -> Result<(), StopReason> {
        let Repository { branch, file, back, .. } = self.repository;
        if self.case.clone == super::cases::CloneKind::Shallow || *back == 0 {
            return Ok(());
        }
        self.step(Step::Checkout, 1, directory, &|command| {
            command.args(["checkout", "--quiet", "--detach", &format!("HEAD~{back}")]);
        })?;
        let Some(file) = file else { return Ok(()) };
        self.step(Step::Blame, 1, directory, &|command| {
            command.args(["blame", &format!("{branch}~{back}..{branch}"), "--", file]);
        })
    }

    /// Fetches, each after at least one more push, and goes to what was fetched.
    fn keep_up(&self, directory: &Path) -> Result<(), StopReason> {
        let remote = format!("origin/{}", self.repository.branch);
        let mut before = self.tip(directory, &remote)?;
        for ordinal in 1..=FETCHES {
            let waited = self.pusher.wait_for_another(self.pusher.seen());
            waited.map_err(|reason| self.failure(Step::Fetch, None, reason))?;
            self.step(Step::Fetch, ordinal, directory, &|command| {
                command.args(["fetch", "--quiet"]).args(self.case.fetch.and_then(|fetch| fetch.option())).arg("origin");
            })?;
            let now = self.tip(directory, &remote)?;
            if now == before {
                return Err(self.failure(Step::Fetch, None, "it fetched nothing, though something was pushed"));
            }
            before = now;
            self.step(Step::Reset, ordinal, directory, &|command| {
                command.args(["reset", "--quiet", "--hard", &remote]);
            })?;
        }
        Ok(())
    }

    fn tip(&self, directory: &Path, reference: &str) -> Result<Vec<u8>, BenchError> {
        let clients = &self.testbed.clients;
        clients
            .output(clients.git(directory, None).args(["rev-parse", "--verify", reference]), "reading what was fetched")
    }

    /// Fails where the server sent the whole history for a shallow clone: git ends well all the same.
    fn check_honoured(&self, directory: &Path) -> Result<(), StopReason> {
        let is_shallow = directory.join(".git/shallow").exists();
        if self.case.clone == super::cases::CloneKind::Shallow && !is_shallow && self.repository.back > 0 {
            return Err(self.failure(Step::Clone, Some(0), "the server sent the whole history"));
        }
        Ok(())
    }

    fn step(
        &self,
        step: Step,
        ordinal: u32,
        directory: &Path,
        complete: &dyn Fn(&mut Command),
    ) -> Result<(), StopReason> {
        let operation = self.testbed.next_operation();
        let mut command = self.testbed.clients.git(directory, Some(operation));
        complete(&mut command);
        let ran = self.testbed.clients.run(&mut command)?;
        let charge = self.testbed.take(operation);
        if !ran.is_success() {
            return Err(self.failure(step, ran.ended.status.code(), self.testbed.clients.reason(&ran)));
        }
        if ran.said.contains("filtering not recognized") {
            return Err(self.failure(step, Some(0), "the server does not support filters and sent everything"));
        }
        let GitOutput { ended, said, .. } = ran;
        (self.note)(Sample {
            step,
            round: self.round,
            ordinal,
            usage: ended.usage,
            charge: Some(charge),
            seen: None,
            said: brief(&said),
        });
        Ok(())
    }

    fn failure(&self, step: Step, exit_code: Option<i32>, reason: impl Into<GitFailureReason>) -> StopReason {
        let command = command_of(self.case, step, self.repository.back);
        StopReason::Step(StepFailure { step, command, round: self.round, exit_code, reason: reason.into() })
    }
}

/// Returns the command as a user would type it.
pub(super) fn command_of(case: &Case, step: Step, back: u32) -> String {
    match step {
        Step::Clone => case.clone_command(),
        Step::Fetch => {
            let option =
                case.fetch.and_then(|fetch| fetch.option()).map_or_else(String::new, |option| format!(" {option}"));
            format!("git fetch{option}")
        }
        Step::Reset => "git reset --hard origin/BRANCH".into(),
        Step::Checkout => format!("git checkout HEAD~{back}"),
        Step::Blame => format!("git blame HEAD~{back}..HEAD FILE"),
    }
}
