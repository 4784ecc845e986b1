use std::path::PathBuf;
use std::time::Instant;

use calve_core::CancelToken;
use calve_core::internal::json::{As, Seconds, Text};
use serde::Serialize;

use crate::error::Error;
use crate::git::Git;
use crate::redact;
use crate::remedy::Remedy;
use crate::remote::clone::purpose::Purpose;
use crate::remote::clone::recipe::Step;
use crate::remote::error::RemoteError;
use crate::remote::git_version::git_version;
use crate::remote::notice::{Notice, NoticeCode};
use crate::remote::prompts::Prompts;
use crate::remote::session::{Listener, Session};
use crate::remote::traffic::{Traces, Traffic};
use crate::remote::url::RepositoryUrl;

#[derive(Debug, Clone)]
pub struct FetchOptions {
    pub directory: PathBuf,
    /// Branches, tags or commits; if empty, those that the clone follows.
    pub references: Vec<String>,
    pub prompts: Prompts,
    pub cancel: CancelToken,
}

/// How a clone is brought up to date, and why so.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedFetch {
    /// The purpose of the clone. Null if it is not recorded.
    #[serde(with = "As::<Option<Text>>")]
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["dev", "ci", "history", "blobs", null])))]
    pub purpose: Option<Purpose>,
    /// True if the history of the clone is cut off.
    pub shallow: bool,
    /// The objects that stay on the server, in git's words. Null if none do.
    pub filter: Option<String>,
    /// The commands.
    pub commands: Vec<String>,
    /// Why these commands are right, with numbers.
    pub reason: &'static str,
}

/// The report of `calve git fetch`.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(tag = "schema", rename = "calve.git-fetch/1")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FetchReport {
    #[serde(flatten)]
    pub plan: PlannedFetch,
    #[serde(flatten)]
    pub traffic: Traffic,
    /// The time that it took.
    #[serde(with = "As::<Seconds>")]
    pub seconds: f64,
    /// The references that git updated, in its words.
    pub updated: Vec<String>,
    /// Other facts that the user should know.
    pub warnings: Vec<Notice>,
}

/// Plans [`fetch`], and fails like it if that can be foreseen. Asks no server.
pub fn plan_fetch(options: &FetchOptions) -> Result<PlannedFetch, RemoteError> {
    Ok(FetchPlan::new(options)?.report.plan)
}

/// Fetches from the clone's origin, without touching the working tree.
pub fn fetch(options: &FetchOptions, listener: Listener<'_>) -> Result<FetchReport, RemoteError> {
    let started = Instant::now();
    let FetchPlan { mut report, step, url, git_directory } = FetchPlan::new(options)?;
    let traces = Traces::new(&git_directory, url.kind)?;
    let FetchOptions { prompts, cancel, .. } = options;
    let session = Session { url: &url, makes: None, prompts: *prompts, cancel, listener, traces: &traces };
    let said = session.run(&step, &options.directory)?;
    let updates = said.lines().filter(|line| line.contains(" -> "));
    report.updated.extend(updates.map(|line| line.trim().to_owned()));
    let warnings = said.lines().filter_map(|line| line.trim().strip_prefix("warning: "));
    report.warnings.extend(warnings.map(|line| Notice::new(NoticeCode::Git, line)));
    report.traffic = Traffic { requests: traces.requests(), bytes_received: traces.received() };
    report.seconds = started.elapsed().as_secs_f64();
    Ok(report)
}

struct FetchPlan {
    report: FetchReport,
    step: Step,
    url: RepositoryUrl,
    git_directory: PathBuf,
}

impl FetchPlan {
    fn new(options: &FetchOptions) -> Result<FetchPlan, RemoteError> {
        let git = Git::at(&options.directory);
        let git_directory = crate::repository::asked(&options.directory, &["rev-parse", "--absolute-git-dir"])?;
        let value = |key: &str| git.answer(&["config", "--get", key]);
        let Some(url) = value("remote.origin.url")? else {
            let reason = "this repository has no remote `origin` to fetch from";
            return Err(Error::refused(reason, Remedy::AddRemote).into());
        };
        let promisor = value("remote.origin.promisor")?.is_some_and(|value| value == "true");
        let filter = value("remote.origin.partialclonefilter")?.filter(|_| promisor);
        let purpose = value("calve.purpose")?.and_then(|word| word.parse().ok());
        let shallow = git.line(&["rev-parse", "--is-shallow-repository"])? == "true";
        let follows = value("remote.origin.fetch")?.is_some();
        let url = RepositoryUrl::parse(url.as_ref())?;
        git_version(&git)?;
        let step = step(&options.references, follows)?;
        let (commands, reason) = (vec![redact::git_command(&step.arguments)], reason(shallow, filter.as_deref()));
        let plan = PlannedFetch { purpose, shallow, filter, commands, reason };
        let report = FetchReport { plan, ..FetchReport::default() };
        Ok(FetchPlan { report, step, url, git_directory })
    }
}

/// Returns why the fetch is the cheapest. It never has a depth: the server would have to work out and send objects that
/// are already here, and the history would be cut off.
fn reason(shallow: bool, filter: Option<&str>) -> &'static str {
    match (shallow, filter) {
        (true, _) => "a shallow clone is fetched into without a depth: only what is new comes",
        (false, Some("tree:0")) => "a treeless clone asks for trees with every fetch",
        (false, Some(_)) => "a partial clone is fetched into in full; contents come when they are checked out",
        (false, None) => "a full clone is fetched into in full: nothing is cheaper",
    }
}

fn step(references: &[String], follows: bool) -> Result<Step, RemoteError> {
    if let Some(bad) = references.iter().find(|name| name.is_empty() || name.starts_with('-')) {
        return Err(RemoteError::senseless(format!("{bad:?} cannot be the name of a branch or commit")));
    }
    if references.is_empty() && !follows {
        return Err(RemoteError::senseless(
            "this repository follows no branch of `origin` (`remote.origin.fetch` is not set): name the branch or commit to fetch",
        ));
    }
    Ok(references.iter().fold(Step::inside(["fetch", "origin"]), Step::with))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetched(follows: bool, reference: Option<&str>) -> Result<String, RemoteError> {
        let references: Vec<String> = reference.map(str::to_owned).into_iter().collect();
        Ok(redact::git_command(&step(&references, follows)?.arguments))
    }

    #[test]
    fn a_depth_is_never_added() {
        assert_eq!(fetched(true, None).unwrap(), "git fetch origin");
        assert_eq!(fetched(false, Some("x")).unwrap(), "git fetch origin x");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert!(fetched(false, None).unwrap_err().to_string().contains("name the branch"));
        fetched(true, Some("--upload-pack=x")).unwrap_err();
        fetched(true, Some("")).unwrap_err();
    }
}
