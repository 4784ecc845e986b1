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

/// The options of a fetch.
#[derive(Debug, Clone)]
pub struct FetchOptions {
    /// A directory in the clone.
    pub directory: PathBuf,
    /// Branches, tags or commits; what the clone follows when there are none.
    pub references: Vec<String>,
    /// `git fetch --depth`, which full clones refuse.
    pub depth: Option<u32>,
    /// Do what costs more than it saves all the same.
    pub force: bool,
    /// Whether git may ask for a password.
    pub prompts: Prompts,
    pub cancel: CancelToken,
}

/// The properties of a clone that matter for fetching.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CloneState {
    pub(crate) purpose: Option<Purpose>,
    pub(crate) shallow: bool,
    /// "blob:none".
    pub(crate) filter: Option<String>,
    /// Whether it follows any branch.
    pub(crate) follows: bool,
    pub(crate) url: RepositoryUrl,
}

/// The report of a fetch.
#[derive(Debug, Clone)]
pub struct FetchReport {
    /// The purpose of the clone, if that is recorded.
    pub purpose: Option<Purpose>,
    /// Whether the clone has its history cut off.
    pub shallow: bool,
    /// The objects that it leaves on the server.
    pub filter: Option<String>,
    pub commands: Vec<String>,
    pub reason: &'static str,
    pub traffic: Traffic,
    /// How long it took.
    pub seconds: f64,
    /// The references that git has updated, in its words.
    pub updated: Vec<String>,
    /// Facts that the user should know.
    pub notices: Vec<Notice>,
}

/// Plans [`fetch`]. Asks no server.
///
/// # Errors
/// As [`fetch`], for what can be known before.
pub fn plan_fetch(options: &FetchOptions) -> Result<FetchReport, RemoteError> {
    let (state, _) = state_of(&options.directory)?;
    Features::ask(&Git::at(&options.directory))?;
    let (steps, reason) = choose(&state, options)?;
    Ok(receipt(&state, &steps, reason))
}

/// Fetches from the clone's origin. The working tree is not touched.
///
/// # Errors
/// [`RemoteError::Costly`] for `--depth` in a clone with its whole history, unless forced.
pub fn fetch(options: &FetchOptions, listener: Listener<'_>) -> Result<FetchReport, RemoteError> {
    let started = Instant::now();
    let (state, git_directory) = state_of(&options.directory)?;
    Features::ask(&Git::at(&options.directory))?;
    let (steps, reason) = choose(&state, options)?;
    let mut receipt = receipt(&state, &steps, reason);
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
    for step in &steps {
        let said = session.run(step, &options.directory)?;
        let updates = said.lines().filter(|line| line.contains(" -> "));
        receipt.updated.extend(updates.map(|line| line.trim().to_owned()));
        let warnings = said.lines().filter_map(|line| line.trim().strip_prefix("warning: "));
        receipt.notices.extend(warnings.map(|line| Notice::new(NoticeCode::Git, line)));
    }
    receipt.traffic = Traffic { requests: traces.requests(), bytes_received: traces.received() };
    receipt.seconds = started.elapsed().as_secs_f64();
    Ok(receipt)
}

fn receipt(state: &CloneState, steps: &[Step], reason: &'static str) -> FetchReport {
    let spoken = |step: &Step| {
        let words = step.arguments.iter().map(|word| redact::word(&word.to_string_lossy()));
        std::iter::once("git".to_owned()).chain(words.filter(|word| word != "--progress")).collect::<Vec<_>>().join(" ")
    };
    FetchReport {
        purpose: state.purpose,
        shallow: state.shallow,
        filter: state.filter.clone(),
        commands: steps.iter().map(spoken).collect(),
        reason,
        traffic: Traffic::default(),
        seconds: 0.0,
        updated: Vec::new(),
        notices: Vec::new(),
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

/// Why `fetch --depth` is refused in a clone that has its whole history.
const DEPTH_IN_A_FULL_CLONE: &str = "`git fetch --depth` in a clone that has its history makes the server work out and send what is already here, and cuts the history off";

/// Returns why the fetch uses these options.
fn reason(shallow: bool, filter: Option<&str>, with_depth: bool) -> &'static str {
    match (shallow, filter, with_depth) {
        (true, _, true) => "`git fetch --depth` in a shallow clone has the server count again what is here",
        (true, _, false) => "a shallow clone is fetched into without a depth: only what is new comes",
        (false, _, true) => "forced",
        (false, Some("tree:0"), false) => "a treeless clone asks for trees with every fetch",
        (false, Some(_), false) => "a partial clone is fetched into in full; contents come when they are checked out",
        (false, None, false) => "a full clone is fetched into in full: nothing is cheaper",
    }
}

/// Chooses the commands, and returns them with the reason for them.
pub(crate) fn choose(state: &CloneState, options: &FetchOptions) -> Result<(Vec<Step>, &'static str), RemoteError> {
    if let Some(bad) = options.references.iter().find(|name| name.is_empty() || name.starts_with('-')) {
        return Err(RemoteError::Senseless { why: format!("{bad:?} cannot be the name of a branch or commit") });
    }
    if options.references.is_empty() && !state.follows {
        let why = "this clone was made of one commit and follows no branch: name the branch or commit to fetch";
        return Err(RemoteError::Senseless { why: why.into() });
    }
    if options.depth.is_some() && !state.shallow && !options.force {
        return Err(RemoteError::Costly { why: DEPTH_IN_A_FULL_CLONE.into() });
    }
    let mut step = Step::inside(["fetch", "--progress"]);
    if let Some(depth) = options.depth {
        step = step.with(format!("--depth={depth}"));
    }
    step = step.with("origin");
    for reference in &options.references {
        step = step.with(reference);
    }
    Ok((vec![step], reason(state.shallow, state.filter.as_deref(), options.depth.is_some())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    fn state(shallow: bool, filter: Option<&str>) -> CloneState {
        let url = RepositoryUrl::parse(OsStr::new("https://example.org/a")).unwrap();
        CloneState { purpose: None, shallow, filter: filter.map(str::to_owned), follows: true, url }
    }

    fn options(depth: Option<u32>, force: bool) -> FetchOptions {
        FetchOptions {
            directory: ".".into(),
            references: Vec::new(),
            depth,
            force,
            prompts: Prompts::Never,
            cancel: CancelToken::default(),
        }
    }

    #[test]
    fn a_depth_is_refused_where_it_costs_and_never_added() {
        let commands = |state: &CloneState, options: &FetchOptions| {
            let (steps, reason) = choose(state, options)?;
            Ok::<_, RemoteError>(receipt(state, &steps, reason).commands)
        };
        for filter in [None, Some("blob:none")] {
            let error = commands(&state(false, filter), &options(Some(1), false)).unwrap_err();
            assert!(matches!(error, RemoteError::Costly { .. }), "{error}");
            let forced = commands(&state(false, filter), &options(Some(1), true)).unwrap();
            assert_eq!(forced, ["git fetch --depth=1 origin"]);
            assert_eq!(commands(&state(false, filter), &options(None, false)).unwrap(), ["git fetch origin"]);
        }
        assert_eq!(commands(&state(true, None), &options(None, false)).unwrap(), ["git fetch origin"]);
        assert_eq!(commands(&state(true, None), &options(Some(2), false)).unwrap(), ["git fetch --depth=2 origin"]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let refused = |state: &CloneState, options: &FetchOptions| choose(state, options).unwrap_err().to_string();
        let alone = CloneState { follows: false, ..state(true, None) };
        assert!(refused(&alone, &options(None, false)).contains("name the branch"));
        let mut option = options(None, false);
        option.references = vec!["--upload-pack=x".into()];
        refused(&state(false, None), &option);
    }
}
