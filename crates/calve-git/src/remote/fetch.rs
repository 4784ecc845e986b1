//! Fetching into a clone in the way that its purpose wants.

use std::path::{Path, PathBuf};
use std::time::Instant;

use calve_core::CancelToken;

use crate::git::Git;
use crate::redact;
use crate::remote::clone::purpose::Purpose;
use crate::remote::clone::recipe::Step;
use crate::remote::error::RemoteError;
use crate::remote::features::Features;
use crate::remote::session::{Listener, Maintenance, Prompts, Session};
use crate::remote::traffic::{Traces, Traffic};
use crate::remote::url::RepositoryUrl;
use crate::remote::{Notice, NoticeCode};

#[derive(Debug, Clone)]
pub struct FetchOptions {
    /// A directory in the clone.
    pub directory: PathBuf,
    /// Branches, tags or commits; what the clone follows when there are none.
    pub references: Vec<String>,
    pub prompts: Prompts,
    pub cancel: CancelToken,
}

/// The properties of a clone that matter for fetching.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CloneState {
    pub(crate) purpose: Option<Purpose>,
    pub(crate) shallow: bool,
    pub(crate) filter: Option<String>,
    pub(crate) follows: bool,
    pub(crate) url: RepositoryUrl,
}

#[derive(Debug, Clone, Default)]
pub struct FetchReport {
    pub purpose: Option<Purpose>,
    pub shallow: bool,
    pub filter: Option<String>,
    pub commands: Vec<String>,
    pub reason: &'static str,
    pub traffic: Traffic,
    pub seconds: f64,
    /// The references that git has updated, in its words.
    pub updated: Vec<String>,
    pub notices: Vec<Notice>,
}

/// Plans [`fetch`], and fails as that where it can know. Asks no server.
pub fn plan_fetch(options: &FetchOptions) -> Result<FetchReport, RemoteError> {
    let (state, _) = state_of(&options.directory)?;
    Features::ask(&Git::at(&options.directory))?;
    Ok(receipt(&state, &step(&state, options)?))
}

/// Fetches from the clone's origin. The working tree is not touched.
pub fn fetch(options: &FetchOptions, listener: Listener<'_>) -> Result<FetchReport, RemoteError> {
    let started = Instant::now();
    let (state, git_directory) = state_of(&options.directory)?;
    Features::ask(&Git::at(&options.directory))?;
    let step = step(&state, options)?;
    let mut receipt = receipt(&state, &step);
    let traces = Traces::new(&git_directory, state.url.kind())?;
    let session = Session {
        url: &state.url,
        origin: "",
        credentials: None,
        prompts: options.prompts,
        cancel: &options.cancel,
        listener,
        traces: &traces,
        maintenance: Maintenance::AsConfigured,
    };
    let said = session.run(&step, &options.directory)?;
    let updates = said.lines().filter(|line| line.contains(" -> "));
    receipt.updated.extend(updates.map(|line| line.trim().to_owned()));
    let warnings = said.lines().filter_map(|line| line.trim().strip_prefix("warning: "));
    receipt.notices.extend(warnings.map(|line| Notice::new(NoticeCode::Git, line)));
    receipt.traffic = Traffic { requests: traces.requests(), bytes_received: traces.received() };
    receipt.seconds = started.elapsed().as_secs_f64();
    Ok(receipt)
}

fn receipt(state: &CloneState, step: &Step) -> FetchReport {
    let words = step.arguments.iter().map(|word| redact::word(&word.to_string_lossy()));
    let words = std::iter::once("git".to_owned()).chain(words.filter(|word| word != "--progress"));
    FetchReport {
        purpose: state.purpose,
        shallow: state.shallow,
        filter: state.filter.clone(),
        commands: vec![words.collect::<Vec<_>>().join(" ")],
        reason: reason(state.shallow, state.filter.as_deref()),
        ..FetchReport::default()
    }
}

/// Returns the clone's state, and the directory of its own files.
fn state_of(directory: &Path) -> Result<(CloneState, PathBuf), RemoteError> {
    let git = Git::at(directory);
    let git_directory = crate::repository::asked(directory, &["rev-parse", "--absolute-git-dir"])?;
    let value = |key: &str| git.answer(&["config", "--get", key]);
    let Some(url) = value("remote.origin.url")? else {
        return Err(RemoteError::NoRemote);
    };
    let promisor = value("remote.origin.promisor")?.is_some_and(|value| value == "true");
    let filter = value("remote.origin.partialclonefilter")?.filter(|_| promisor);
    let state = CloneState {
        purpose: value("calve.purpose")?.and_then(|word| word.parse().ok()),
        shallow: git.line(&["rev-parse", "--is-shallow-repository"])? == "true",
        filter,
        follows: value("remote.origin.fetch")?.is_some(),
        url: RepositoryUrl::parse(url.as_ref())?,
    };
    Ok((state, git_directory))
}

/// Returns why the fetch is the cheapest one. It never has a depth, which makes the server work out and send objects that are already here, and cuts
/// the history off.
fn reason(shallow: bool, filter: Option<&str>) -> &'static str {
    match (shallow, filter) {
        (true, _) => "a shallow clone is fetched into without a depth: only what is new comes",
        (false, Some("tree:0")) => "a treeless clone asks for trees with every fetch",
        (false, Some(_)) => "a partial clone is fetched into in full; contents come when they are checked out",
        (false, None) => "a full clone is fetched into in full: nothing is cheaper",
    }
}

fn step(state: &CloneState, options: &FetchOptions) -> Result<Step, RemoteError> {
    if let Some(bad) = options.references.iter().find(|name| name.is_empty() || name.starts_with('-')) {
        return Err(RemoteError::Senseless { why: format!("{bad:?} cannot be the name of a branch or commit") });
    }
    if options.references.is_empty() && !state.follows {
        let why = "this repository follows no branch of `origin` (`remote.origin.fetch` is not set): name the branch or commit to fetch";
        return Err(RemoteError::Senseless { why: why.into() });
    }
    Ok(options.references.iter().fold(Step::inside(["fetch", "--progress", "origin"]), Step::with))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    fn fetched(
        shallow: bool,
        filter: Option<&str>,
        follows: bool,
        reference: Option<&str>,
    ) -> Result<String, RemoteError> {
        let url = RepositoryUrl::parse(OsStr::new("https://example.org/a")).unwrap();
        let state = CloneState { purpose: None, shallow, filter: filter.map(str::to_owned), follows, url };
        let options = FetchOptions {
            directory: ".".into(),
            references: reference.map(str::to_owned).into_iter().collect(),
            prompts: Prompts::Never,
            cancel: CancelToken::default(),
        };
        Ok(receipt(&state, &step(&state, &options)?).commands.concat())
    }

    #[test]
    fn a_depth_is_never_added() {
        for (shallow, filter) in [(false, None), (false, Some("blob:none")), (false, Some("tree:0")), (true, None)] {
            assert_eq!(fetched(shallow, filter, true, None).unwrap(), "git fetch origin");
            assert_eq!(fetched(shallow, filter, false, Some("x")).unwrap(), "git fetch origin x");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert!(fetched(true, None, false, None).unwrap_err().to_string().contains("name the branch"));
        fetched(false, None, true, Some("--upload-pack=x")).unwrap_err();
        fetched(false, None, true, Some("")).unwrap_err();
    }
}
