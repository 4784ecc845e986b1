//! The plot of a clone from a URL: choose, stage, begin, verify, check out, publish, report.

pub(crate) mod purpose;
pub(crate) mod recipe;
pub(crate) mod verify;

use std::path::Path;
use std::time::Instant;

use calve_core::internal::json::{As, Seconds};
use calve_core::internal::{BuildPaths, ShownPath, build_tree, check_buildable};
use serde::Serialize;

use crate::git::Git;
use crate::remedy::Remedy;
use crate::remote::clone::purpose::{Property, Purpose};
use crate::remote::clone::recipe::{GitCloneOptions, PlannedClone, Step, choose};
use crate::remote::clone::verify::{MissingObjects, Verdict, count_missing, verify};
use crate::remote::error::RemoteError;
use crate::remote::git_version::git_version;
use crate::remote::notice::{Notice, NoticeCode};
use crate::remote::session::{Listener, SILENCE, Session};
use crate::remote::traffic::{Traces, Traffic, packed_bytes};
use crate::remote::url::{RepositoryUrl, Transport};
use crate::transfer_failure::TransferFailure;
use crate::trust::note_trust;

/// The time of a clone and of its parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename = "GitSeconds")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhaseSeconds {
    /// The whole.
    #[serde(with = "As::<Seconds>")]
    pub total: f64,
    /// The history.
    #[serde(with = "As::<Seconds>")]
    pub clone: f64,
    /// The checkout, with what it fetched.
    #[serde(with = "As::<Seconds>")]
    pub checkout: f64,
}

/// The report of `calve git clone`.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "schema", rename = "calve.git-clone/1")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GitCloneReport {
    #[serde(flatten)]
    pub plan: PlannedClone,
    /// The commit that is checked out. Null in an empty repository.
    pub head: Option<String>,
    #[serde(flatten)]
    pub traffic: Traffic,
    /// How long it took.
    pub seconds: PhaseSeconds,
    #[serde(flatten)]
    pub missing: MissingObjects,
    /// Whether the server did what it was asked.
    pub honoured: ServerCompliance,
    /// Other facts that the user should know.
    pub warnings: Vec<Notice>,
}

/// Whether the server did what it was asked. Null if it was not asked, or nothing shows it.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerCompliance {
    /// `--filter`.
    pub filter: Option<bool>,
    /// `--depth`.
    pub depth: Option<bool>,
}

/// Plans [`clone_repository`], and fails like it if that can be foreseen. Asks the installed git, but no server.
pub fn plan_clone(options: &GitCloneOptions) -> Result<PlannedClone, RemoteError> {
    let git = git_version(&Git::at("/"))?;
    let GitCloneOptions { purpose, url, sparse, .. } = options;
    let is_shallow = is_shallow_directory(url);
    let plan = choose(options, is_shallow, git)?;
    let is_lacking = |property: &&Property| match property {
        Property::Filter => plan.recipe.filter.is_none(),
        Property::Depth => plan.recipe.depth.is_none(),
    };
    if let Some(&property) = options.require.iter().find(is_lacking) {
        let wanted = plan.recipe.depth.is_none() && (*purpose != Purpose::Dev || !sparse.is_empty());
        return Err(match is_shallow && wanted && property == Property::Filter {
            true => {
                let why = format!("`{url}` is shallow, and git can make no partial clone of a shallow repository");
                RemoteError::refused(property, &why, Remedy::Transfer(TransferFailure::SourceShallow))
            }
            false => {
                let why = format!("the purpose `{purpose}` requests none here");
                RemoteError::refused(property, &why, Remedy::ChoosePurposeOrDropRequirement)
            }
        });
    }
    check_buildable(&options.dst)?;
    Ok(plan)
}

/// Returns whether the source is a directory with a shallow repository. Other sources show it only once cloned.
fn is_shallow_directory(url: &RepositoryUrl) -> bool {
    let Some(directory) = url.directory() else { return false };
    let mut with_ending = directory.clone().into_os_string();
    with_ending.push(".git");
    // git looks in both places.
    let found = [directory, with_ending.into()].into_iter().find(|path| path.is_dir());
    found.is_some_and(|path| {
        let answer = Git::at(path).answer(&["rev-parse", "--is-shallow-repository"]);
        // git may be denied access; the clone then says so.
        answer.is_ok_and(|answer| answer.as_deref() == Some("true"))
    })
}

/// Clones by the recipe for the purpose, and verifies that the server honoured it. `listener` hears git's progress. The
/// destination is absent or complete at any time, and no error leaves anything behind.
pub fn clone_repository(options: &GitCloneOptions, listener: Listener<'_>) -> Result<GitCloneReport, RemoteError> {
    let started = Instant::now();
    let plan = plan_clone(options)?;
    refuse_a_partial_source(&plan)?;
    let mut receipt = build_tree(&options.dst, &options.cancel, |build| in_build(options, plan, build, listener))?;
    receipt.seconds.total = started.elapsed().as_secs_f64();
    Ok(receipt)
}

fn in_build(
    options: &GitCloneOptions,
    mut plan: PlannedClone,
    build: &BuildPaths,
    listener: Listener<'_>,
) -> Result<GitCloneReport, RemoteError> {
    let BuildPaths { directory, tree } = build;
    let traces = Traces::new(directory, plan.url.kind)?;
    let session = Session {
        url: &options.url,
        makes: Some(options.purpose),
        prompts: options.prompts,
        cancel: &options.cancel,
        listener,
        traces: &traces,
    };
    let run = |step: &Step| {
        let place = if step.inside { tree } else { directory };
        session.run(step, place).map_err(|error| in_words_of_the_user(error, tree, &options.dst))
    };
    let begun = Instant::now();
    for step in plan.begin(tree) {
        run(&step)?;
    }
    let mut warnings = early_notices(options, &plan);
    let mut judged = |property| judge(options, property, verify(property, &plan.recipe, tree)?, &mut warnings);
    let (depth, filter) = (judged(Property::Depth)?, judged(Property::Filter)?);
    let honoured = ServerCompliance { filter, depth };
    if plan.recipe.depth.is_none() && Git::at(tree).line(&["rev-parse", "--is-shallow-repository"])? == "true" {
        let text = "the repository is shallow itself: its history is cut off, and so is the clone's";
        warnings.push(Notice::new(NoticeCode::SourceShallow, text));
    }
    let cloned = begun.elapsed();
    let begun = Instant::now();
    let head = check_out(&mut plan, tree, &run, &mut warnings)?;
    let checked_out = begun.elapsed();
    let missing = match plan.recipe.filter {
        Some(_) => count_missing(tree, head.as_deref())?,
        None => MissingObjects { objects: 0, counted: true },
    };
    let bytes_received = if plan.is_local() { 0 } else { packed_bytes(tree) };
    let bytes_received = (!traces.is_dumb()).then_some(bytes_received);
    let traffic = Traffic { requests: traces.requests(), bytes_received };
    let seconds = PhaseSeconds { total: 0.0, clone: cloned.as_secs_f64(), checkout: checked_out.as_secs_f64() };
    Ok(GitCloneReport { plan, head, traffic, seconds, missing, honoured, warnings })
}

/// Refuses a partial clone as a local source: git links existing objects, and says nothing about missing ones.
fn refuse_a_partial_source(plan: &PlannedClone) -> Result<(), RemoteError> {
    let (url, asked) = (&plan.url, ["config", "--get-regexp", r"^remote\..*\.promisor$", "true"]);
    if !plan.is_local() || !Git::at(url.as_os_str()).succeeds(&asked)? {
        return Ok(());
    }
    let lacking = "its settings say, so a clone of it may lack objects: clone from where it came from";
    Err(RemoteError::senseless(format!("`{url}` is a partial clone, {lacking}")))
}

/// Checks out and returns the commit; `None` if HEAD names none.
fn check_out(
    plan: &mut PlannedClone,
    tree: &Path,
    run: &impl Fn(&Step) -> Result<String, RemoteError>,
    notices: &mut Vec<Notice>,
) -> Result<Option<String>, RemoteError> {
    let git = Git::at(tree);
    let steps = plan.check_out();
    let PlannedClone { dst, recipe, .. } = plan;
    if let Some(id) = &recipe.revision {
        // Without `--missing`, a partial clone would ask the server for it. For an unknown commit, git 2.55 prints `?ID`.
        let found = git.answer(&["rev-list", "--missing=print", "--max-count=1", id])?;
        if found.is_none_or(|found| found.starts_with('?')) {
            let fetch = Step::inside(["fetch", "origin", id]);
            run(&fetch)?;
            // The commands of the checkout come last.
            recipe.commands.insert(recipe.commands.len() - steps.len(), fetch.spoken(dst));
        }
    } else if !git.succeeds(&["rev-parse", "--quiet", "--verify", "HEAD"])? {
        let (code, what) = match is_empty(&git, run)? {
            true => (NoticeCode::Empty, "the repository is empty"),
            false => (NoticeCode::NoHead, "the repository's HEAD names no branch that is there"),
        };
        notices.push(Notice::new(code, format!("{what}: nothing is checked out")));
        return Ok(None);
    }
    for step in &steps {
        run(step)?;
    }
    for path in &recipe.sparse {
        // Lists the path itself, and asks no server about it.
        let name = path.trim_matches('/');
        let listed = git.run(&["ls-tree", "-d", "HEAD", "--", name])?;
        if listed.is_empty() {
            let is_file = !git.run(&["ls-tree", "HEAD", "--", name])?.is_empty();
            let effect = if is_file { "it is here with the files beside it" } else { "nothing of it is here" };
            let path = ShownPath(Path::new(path));
            let text = format!("`{path}` is not a directory of the commit that is checked out, so {effect}");
            notices.push(Notice::new(NoticeCode::SparseMissing, text));
        }
    }
    let head = git.line(&["rev-parse", "--verify", "HEAD"])?.to_string_lossy().into_owned();
    if recipe.revision.is_some() {
        // A detached HEAD shows no source, but the user named this commit.
        note_trust(&tree.join(".git"), &head)?;
    }
    Ok(Some(head))
}

/// Returns whether the source has no branch and no tag. A single-branch clone may lack those that exist.
fn is_empty(git: &Git, run: &impl Fn(&Step) -> Result<String, RemoteError>) -> Result<bool, RemoteError> {
    if !git.run(&["for-each-ref", "--count=1", "refs/remotes"])?.is_empty() {
        return Ok(false);
    }
    match run(&Step::inside(["ls-remote", "--exit-code", "--heads", "--tags", "origin"])) {
        Ok(_) => Ok(false),
        Err(RemoteError::Git { said, .. }) if said == SILENCE => Ok(true),
        Err(error) => Err(error),
    }
}

/// Returns facts that the program expects, and that may surprise the user.
fn early_notices(options: &GitCloneOptions, plan: &PlannedClone) -> Vec<Notice> {
    let mut notices = Vec::new();
    let mut tell = |code, text: &str| notices.push(Notice::new(code, text));
    if options.url.kind == Transport::Local && plan.url.kind == Transport::File {
        let url = &plan.url;
        let text = format!(
            "the path is cloned by the URL {url}, because for paths git ignores filters, depths and where the history ends"
        );
        tell(NoticeCode::PathAsUrl, &text);
    } else if options.url.kind == Transport::Local {
        tell(NoticeCode::Local, "a path: git links or copies the repository's files, and no server is asked");
    }
    if options.url.credentials.is_some() {
        tell(NoticeCode::CredentialsNotStored, "the credentials in the URL were used and not stored");
    }
    if options.url.has_query() {
        let text = "the URL's query is stored in `remote.origin.url`, because git needs it for each fetch";
        tell(NoticeCode::QueryStored, text);
    }
    if options.url.credentials.is_some() && options.url.origin.starts_with("http://") {
        let text = "the credentials travelled unencrypted: http:// is not https://";
        tell(NoticeCode::CredentialsUnencrypted, text);
    }
    notices
}

/// Returns whether the server honoured a property. Fails if it ignored a required one, and otherwise warns: a full
/// clone in place of a partial one works, and costs the promised saving.
fn judge(
    options: &GitCloneOptions,
    property: Property,
    verdict: Verdict,
    notices: &mut Vec<Notice>,
) -> Result<Option<bool>, RemoteError> {
    let why = match verdict {
        Verdict::Honoured => return Ok(Some(true)),
        Verdict::Unknown => return Ok(None),
        Verdict::Ignored(why) => why,
    };
    let (code, remedy) = match property {
        Property::Filter => (NoticeCode::FilterIgnored, Remedy::AllowFiltersOrDropRequirement),
        Property::Depth => (NoticeCode::DepthIgnored, Remedy::ChooseTransportOrDropRequirement),
    };
    if options.require.contains(&property) {
        return Err(RemoteError::refused(property, &format!("the server ignored it: {why}"), remedy));
    }
    let name = property.to_string().to_uppercase();
    let text = format!("THE SERVER IGNORED THE {name}: {why}; this clone is full, at full cost");
    notices.push(Notice::new(code, text));
    Ok(Some(false))
}

/// Replaces the staging path in git's output by `dst`: the user did not name it, and it is gone.
fn in_words_of_the_user(mut error: RemoteError, tree: &Path, dst: &Path) -> RemoteError {
    if let RemoteError::Git { said, .. } = &mut error {
        *said = said.replace(&ShownPath(tree).to_string(), &ShownPath(dst).to_string());
    }
    error
}
