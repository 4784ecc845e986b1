mod lines;

use std::path::Path;
use std::time::Instant;

use calve_core::CancelToken;
use calve_core::internal::{InlinedBytes, ShownPath};
use calve_env::{AddFailure, AddOptions, AddOutcome, AddRest, AddedEnvironment, RemovedEnvironment, Services};
use calve_git::Provenance;
use calve_git::worktree::{self, AddReport, IgnoredEntries, UncommittedChanges};

use crate::cli::worktree::AddArguments;
use crate::commands::trees::spares;
use crate::commands::worktree::facts::Facts;
use crate::failure::{FAILED, Failure, REFUSED, ToFailure as _};
use crate::host::Program;
use crate::progress_bar::Watch;
use crate::wording::{self, word};
use crate::{consent, home, output, real_path, reaper};
use calve_receipt::{FactSubject, TrackedPlan, WorktreeAddReceipt, WorktreePlanReceipt, paths};

pub(crate) fn run(arguments: &AddArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let mut facts = Facts::default();
    let options = options(arguments, cancel)?;
    if arguments.dry_run {
        return plan(&options, arguments);
    }
    let started = Instant::now();
    let begin = || Watch::start("cloned", &options.worktree.clone.progress);
    let is_complete = |added: &mut AddedEnvironment<'_>| say_complete(added, arguments, started, &mut facts);
    match calve_env::add(&Program, &options, begin, is_complete, cancel) {
        Ok(AddOutcome::Ready(path)) => output::path(&path),
        Ok(AddOutcome::Added(added)) if arguments.json => output::json(&add_receipt(&added, facts)?),
        Ok(AddOutcome::Added(added)) => output::path(&added.report.worktree.path),
        Err(failed) => Err(say_failed(failed, arguments.json)),
    }
}

/// Reports earlier errors and the remains after a failure, and returns the failure.
pub(crate) fn say_failed(AddFailure { error, earlier, rest }: AddFailure, is_json: bool) -> Failure {
    earlier.into_iter().for_each(|error| _ = output::failure(&error.into()));
    match rest {
        AddRest::Nothing => error.to_failure(),
        AddRest::TakenBack(path, removed) => say_taken_back(*error, &path, *removed),
        AddRest::Worktree { path, lacks_hook } => {
            if lacks_hook {
                output::warn(&format!(
                    "the post-add hook did not run: run its commands, `hooks.post-add` in .calve.toml, in `{}` yourself",
                    ShownPath(&path)
                ));
            }
            let mut failure = error.to_failure();
            // The exit code reports the failure in any case.
            if path.exists() {
                failure
                    .receipt
                    .iter_mut()
                    .for_each(|receipt| _ = receipt.path.get_or_insert_with(|| calve_receipt::path(&path)));
                let _ = if is_json { Ok(()) } else { output::path(&path) };
            }
            failure
        }
    }
}

fn say_complete(added: &mut AddedEnvironment<'_>, arguments: &AddArguments, started: Instant, facts: &mut Facts) {
    let AddedEnvironment { report: added, own } = added;
    facts.own_parts(&added.worktree.path, &added.worktree.donor, own);
    if arguments.env_file.is_some() && own.variables.as_ref().is_some_and(Vec::is_empty) {
        let text = "warning: `--env-file` wrote nothing, because the worktree has no ports and no services";
        facts.add(FactSubject::EnvFiles, text);
    }
    // Start the next spare only now: it competes for processors and disk with the user's new worktree.
    let proposed = spares::keep_requested(added);
    let details = &mut added.details;
    if details.clone.spares_wanted || proposed.is_none() && details.spares_request.is_some() {
        reaper::start_background(reaper::REFILL);
    }
    details.elapsed = started.elapsed();
    lines::describe(added, arguments.detach, facts);
    facts.add_all(FactSubject::Cloning, proposed);
    facts.say();
    if let Some(hook) = &added.details.post_checkout {
        output::pass_on(&[hook.output.trim_ascii_end(), b"\n"].concat());
    }
}

fn plan(options: &AddOptions, arguments: &AddArguments) -> Result<(), Failure> {
    let mut planned = calve_env::plan(&Program, options)?;
    lines::say_plan(&planned);
    if let Some(error) = planned.own.errors.pop().filter(|_| !consent::can_ask()) {
        return Err(error.into());
    }
    if !arguments.json {
        return Ok(());
    }
    let AddedEnvironment { report: AddReport { worktree, tracked, untracked, details }, own } = &planned;
    let tracked = TrackedPlan { same: tracked.cloned, other: tracked.written_by_git };
    let (secrets, services) =
        (paths(&details.secrets), own.services.as_ref().map_or(Ok(Vec::new()), Services::receipts)?);
    output::json(&WorktreePlanReceipt { worktree, tracked, untracked, secrets, services })
}

/// Converts the failure to finish an agent's worktree, with the fate of the worktree as its hint.
fn say_taken_back(error: calve_env::Error, path: &Path, removed: calve_env::Result<RemovedEnvironment>) -> Failure {
    let hint = match removed {
        Ok(removed) => {
            removed.worktree.kept.iter().for_each(super::remove::say_kept);
            removed.unfinished.into_iter().for_each(|error| _ = output::failure(&error.into()));
            "the worktree was removed again; fix what was reported, and ask again".to_owned()
        }
        Err(_) if !path.exists() => "nothing of the worktree is left; fix what was reported, and ask again".to_owned(),
        Err(why) => format!(
            "the worktree stays, and no agent gets it: {why}; check it, then run `calve worktree remove -f {}`",
            word(path)
        ),
    };
    match error {
        calve_env::Error::Failed { text, .. } => Failure::stated(FAILED, text, hint),
        calve_env::Error::Refused { text, .. } => Failure::stated(REFUSED, text, hint),
        other => {
            output::warn(&hint);
            other.into()
        }
    }
}

fn options(arguments: &AddArguments, cancel: &CancelToken) -> Result<AddOptions, Failure> {
    let mut worktree = worktree::AddOptions::default();
    worktree.start = real_path::here()?;
    worktree.branch.clone_from(&arguments.branch);
    worktree.base.clone_from(&arguments.base);
    worktree.from.clone_from(&arguments.from);
    worktree.path.clone_from(&arguments.path);
    worktree.is_detached = arguments.detach;
    worktree.ignored = if arguments.no_ignored { IgnoredEntries::Leave } else { IgnoredEntries::Carry };
    worktree.changes = if arguments.dirty { UncommittedChanges::Carry } else { UncommittedChanges::Leave };
    worktree.provenance = arguments.trust.then_some(Provenance::TrustedByUser);
    worktree.clone.internal.inlined = if arguments.json { InlinedBytes::Counted } else { InlinedBytes::WithShared };
    worktree.clone.spares = home::spares();
    worktree.clone.cancel = cancel.clone();
    Ok(AddOptions {
        worktree,
        data_from: arguments.data_from.clone(),
        env_file: arguments.env_file.clone(),
        consent: consent::to_hooks(arguments.no_hooks, arguments.yes),
        agent: arguments.for_agent.clone(),
        protect: home::protected(),
    })
}

fn add_receipt<'a>(added: &'a AddedEnvironment<'_>, facts: Facts) -> Result<WorktreeAddReceipt<'a>, Failure> {
    let AddedEnvironment { report, own } = added;
    let AddReport { worktree, tracked, untracked, details } = report;
    Ok(WorktreeAddReceipt {
        worktree,
        upstream: worktree.target.upstream.as_deref(),
        pull_request: worktree.pull_request,
        tracked,
        untracked,
        spares: &details.spares,
        ports: own.ports.clone(),
        services: own.services.as_ref().map_or(Ok(Vec::new()), Services::receipts)?,
        env_files: own.env_files.clone(),
        other_values: own.other_values.clone(),
        uncommitted: details.uncommitted,
        escapes: &details.audit.findings,
        post_checkout: details.post_checkout.clone(),
        warnings: details.warnings.iter().map(wording::git::warning).collect(),
        facts: facts.0,
        clone: &details.clone,
        elapsed_ms: details.elapsed.into(),
    })
}
