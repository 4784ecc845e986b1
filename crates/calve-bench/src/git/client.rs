//! One client: a clone and the steps after it, each measured on both sides.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use calve_core::CancelToken;
use calve_receipt::bench::{BenchFailure, GitRepository};
use strum::{Display, IntoStaticStr, VariantArray};

use super::cases::{Case, CloneKind};
use super::programs::{GitPrograms, brief};
use super::pushes::{FETCHES, reference};
use super::repository::Repository;
use super::upload_pack::{COMMAND, REPORTS, ServerCost};
use crate::error::BenchError;
use crate::report::Usage;
use crate::scratch::{Scratch, delete};

/// In the order of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(super) enum Step {
    Clone,
    Checkout,
    Blame,
    Fetch,
    Reset,
}

#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) step: Step,
    /// The client's. Memory is the larger side's, because git starts the server.
    pub(super) usage: Usage,
    pub(super) server: ServerCost,
    pub(super) others: Option<f64>,
    /// git's stderr, without progress.
    pub(super) said: String,
}

pub(super) enum StopReason {
    /// A step failed: its test is not run again.
    Step(Box<BenchFailure>),
    Failure(BenchError),
}

impl<E: Into<BenchError>> From<E> for StopReason {
    fn from(failure: E) -> Self {
        Self::Failure(failure.into())
    }
}

pub(super) struct Client<'a> {
    git: &'a GitPrograms<'a>,
    repository: &'a Repository,
    case: &'static Case,
    round: u32,
    directory: PathBuf,
    served: PathBuf,
    reports: PathBuf,
    samples: Vec<Sample>,
}

/// Runs a test once, on a server in its first state, and removes everything made.
pub(super) fn run(
    git: &GitPrograms<'_>,
    scratch: &Scratch<'_>,
    repository: &Repository,
    case: &'static Case,
    round: u32,
    cancel: &CancelToken,
) -> Result<Vec<Sample>, StopReason> {
    let [directory, served, reports] = ["client", "served.git", "reports"].map(|name| scratch.path.join(name));
    fs_err::create_dir(&reports)?;
    let mut client = Client { git, repository, case, round, directory, served, reports, samples: Vec::new() };
    let done = client.steps();
    for path in [&client.directory, &client.served, &client.reports] {
        delete(path, cancel)?;
    }
    done.map(|()| client.samples)
}

impl Client<'_> {
    fn steps(&mut self) -> Result<(), StopReason> {
        // It shares the packs as hard links: git never writes to a pack.
        let mut command = self.git.at(&self.repository.template);
        command.args(["clone", "--quiet", "--bare", "--local", "--template=", "--"]);
        self.git.output(command.arg(&self.repository.template).arg(&self.served), "copying the repository")?;
        // So every clone finds the server with a push since it was packed.
        self.push(0)?;
        let (url, directory) = (url(&self.served), self.directory.clone());
        // `git clone` does not read it from the configuration.
        let (option, upload_pack) = (self.case.clone.option(), format!("--upload-pack={COMMAND}"));
        self.step(Step::Clone, |command| {
            command
                .current_dir("/")
                .args(["clone", "--quiet", &upload_pack])
                .args(option)
                .arg("--")
                .arg(&url)
                .arg(&directory);
        })?;
        match self.case.fetch {
            None => self.look_back(),
            Some(fetch) => self.keep_up(fetch.option()),
        }
    }

    /// Runs `git checkout HEAD~N` and `git blame`, if the clone has a history.
    fn look_back(&mut self) -> Result<(), StopReason> {
        let GitRepository { branch, file, back, .. } = &self.repository.about;
        if self.case.clone == CloneKind::Shallow || *back == 0 {
            return Ok(());
        }
        self.step(Step::Checkout, |command| {
            command.args(["checkout", "--quiet", "--detach", &format!("HEAD~{back}")]);
        })?;
        let Some(file) = file else { return Ok(()) };
        self.step(Step::Blame, |command| {
            command.args(["blame", &format!("{branch}~{back}..{branch}"), "--", file]);
        })
    }

    /// Fetches after each push, and checks the fetched commit out.
    fn keep_up(&mut self, option: Option<&str>) -> Result<(), StopReason> {
        let remote = format!("origin/{}", self.repository.about.branch);
        for number in 1..=FETCHES {
            self.push(number)?;
            self.step(Step::Fetch, |command| {
                command.args(["fetch", "--quiet"]).args(option).arg("origin");
            })?;
            self.step(Step::Reset, |command| {
                command.args(["reset", "--quiet", "--hard", &remote]);
            })?;
        }
        Ok(())
    }

    fn push(&self, number: u32) -> Result<(), BenchError> {
        let mut command = self.git.at(&self.repository.pushing);
        command.args(["push", "--quiet"]).arg(&self.served);
        command.arg(format!("{}:refs/heads/{}", reference(number), self.repository.about.branch));
        self.git.output(&mut command, "pushing to the bench's own repository").map(drop)
    }

    fn step(&mut self, step: Step, complete: impl FnOnce(&mut Command)) -> Result<(), StopReason> {
        let mut command = self.git.at(&self.directory);
        complete(command.env(REPORTS, &self.reports));
        let ran = self.git.run(&mut command)?;
        // The cause of the client's failure, such as a full disk, may cost the server's report too.
        let server = if ran.ended.status.success() { ServerCost::take(&self.reports).ok() } else { None };
        let Some(server) = server else {
            let about = &self.repository.about;
            let (reason, disk_full) = self.git.reason(&ran);
            return Err(StopReason::Step(Box::new(BenchFailure {
                command: command_of(self.case, step, about.back),
                repository: Some(about.name.clone()),
                test: Some(self.case.name),
                operation: Some(step.into()),
                round: self.round,
                exit_code: ran.ended.status.code(),
                reason,
                disk_full,
                ..BenchFailure::default()
            })));
        };
        // git started the server, and the kernel counts it as a part of the client.
        let mut usage = ran.ended.usage;
        usage.user_seconds = (usage.user_seconds - server.user_seconds).max(0.0);
        usage.system_seconds = (usage.system_seconds - server.system_seconds - server.own_seconds).max(0.0);
        self.samples.push(Sample { step, usage, server, others: ran.ended.others, said: brief(&ran.said) });
        Ok(())
    }
}

/// Returns the URL of a directory: given a path, git would copy files and ignore filters and depths.
fn url(directory: &Path) -> OsString {
    let parts: Vec<&[u8]> = directory.as_os_str().as_bytes().split(|&byte| byte == b'%').collect();
    OsString::from_vec([b"file://", &*parts.join(&b"%25"[..])].concat())
}

/// Returns the command as a user would type it.
pub(super) fn command_of(case: &Case, step: Step, back: u32) -> String {
    let with = |command: &str, option: Option<&str>| [command].into_iter().chain(option).collect::<Vec<_>>().join(" ");
    match step {
        Step::Clone => with("git clone", case.clone.option()),
        Step::Fetch => with("git fetch", case.fetch.and_then(|fetch| fetch.option())),
        Step::Reset => "git reset --hard origin/BRANCH".into(),
        Step::Checkout => format!("git checkout HEAD~{back}"),
        Step::Blame => format!("git blame HEAD~{back}..HEAD FILE"),
    }
}
