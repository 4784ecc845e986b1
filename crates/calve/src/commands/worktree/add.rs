//! `calve worktree add`.

pub(crate) mod lines;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use calve_core::{CancelToken, InlinedBytes, Progress, RemovalWait, RemoveOptions, ShownPath};
use calve_db::WrittenDataRule;
use calve_git::Config;
use calve_git::environment::{
    EnvFile, Keeper, OtherValues, Port, follow_env_file, forget_data_source, other_values, write_env_file,
};
use calve_git::hooks::{Hook, HookEnvironment, repository_of};
use calve_git::worktree::{
    self, AddIntent, AddOptions, AddPlan, AddReport, IgnoredEntries, LeftEntry, Trust, UncommittedChanges,
};

use crate::cli::worktree::{AddArguments, DataFrom};
use crate::commands::ahead::EarlyClones;
use crate::commands::service_template::Consent;
use crate::commands::services::{LeavingServices, Services};
use crate::commands::worktree::agent::{self, AgentAnswer};
use crate::commands::worktree::dependencies;
use crate::commands::{db, env, protected, reap, spares};
use crate::failure::Failure;
use crate::output;
use crate::progress_bar::Watch;
use crate::wording::{self, unsaved};
use crate::{consent, home, sys};
use calve_receipt::{
    CloneReceipt, EnvFileReceipt, HookResult, NotClonedFiles, SkippedEntry, TrackedFiles, TrackedPlan,
    WorktreeAddReceipt, WorktreePlanReceipt, path, paths,
};

pub(crate) fn run(arguments: &AddArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let started = Instant::now();
    let options = options(arguments, cancel)?;
    if arguments.dry_run {
        let planned = worktree::plan(&options)?;
        if !output::is_quiet() {
            lines::say_plan(&planned);
        }
        return if arguments.json { output::json(&plan_receipt(&planned)) } else { Ok(()) };
    }
    let mut turn = None;
    if let Some(maker) = &arguments.for_agent {
        match agent::answer(&options.start, &options.branch, options.base.as_deref(), maker, cancel)? {
            AgentAnswer::Ready(path) => return output::path(&path),
            AgentAnswer::Make(its) => turn = Some(its),
        }
    }
    let watch = Watch::start("cloned", &options.clone.progress);
    let (mut hook, mut source) = (None, None);
    let mut ahead = EarlyClones::default();
    let added = worktree::add_after(&options, |upcoming| {
        source = arguments.data_from.source(&upcoming.donor)?;
        let requests = arguments.data_from.check(&upcoming.services, source.as_ref())?;
        hook = hook_to_run(upcoming, arguments)?;
        upcoming.data_source = source.as_ref().map(|keeper| keeper.id.clone());
        if !requests.is_empty() {
            ahead = EarlyClones::begin(&db::unswept_home()?, requests, cancel);
        }
        Ok::<_, Failure>(())
    });
    drop(watch);
    let mut added = added?;
    if added.trash_waits
        && let Some(parent) = added.path.parent()
    {
        reap::start(parent);
    }
    let environment = environment(&added, arguments, source.as_ref(), ahead, cancel);
    // The next spare takes both processors and the disk from whoever waits for this worktree.
    let proposed = spares::keep_requested(&added);
    if added.spares_wanted || proposed.is_none() && added.spares_request.is_some() {
        spares::start_refill();
    }
    added.elapsed = started.elapsed();
    if !output::is_quiet() {
        lines::say(&added, arguments.detach);
        proposed.iter().for_each(|proposed| output::say(proposed));
    }
    if let Some(hook) = &added.post_checkout {
        output::say(String::from_utf8_lossy(&hook.output).trim_end());
        if hook.code != Some(0) {
            output::say("warning: git's hook post-checkout failed; the worktree is complete all the same");
        }
    }
    let taken_back = |failure| if arguments.for_agent.is_some() { taken_back(&added, failure) } else { failure };
    let mut environment = environment.map_err(taken_back)?;
    let failed = environment.services.failed();
    if !output::is_quiet() {
        lines::say_environment(&environment, &added)?;
    }
    failed.map_or(Ok(()), Err).map_err(taken_back)?;
    if let Some((text, main)) = hook {
        let mut surroundings = HookEnvironment::of(&added.path);
        surroundings.main = main;
        surroundings.source = Some(added.donor.clone());
        surroundings.branch = added.branch.clone().map(Into::into);
        surroundings.commit = Some(added.head.clone().into());
        surroundings.variables = env::variables(&environment.ports, &environment.services)?;
        let done = consent::run(Hook::PostAdd, &text, &surroundings, cancel);
        done.map_err(taken_back)?;
    }
    if let Some(maker) = &arguments.for_agent {
        worktree::finish_for_agent(&added.path, maker)?;
    }
    drop(turn);
    if arguments.json { output::json(&add_receipt(&added, &environment)?) } else { output::path(&added.path) }
}

/// The things that a worktree got besides files of the donor.
struct Environment {
    ports: Vec<Port>,
    services: Services,
    files: Vec<(PathBuf, EnvFile)>,
    other_values: Vec<OtherValues>,
}

/// Leases the worktree's ports, clones the data of its services, and writes the files that are to have its variables.
fn environment(
    added: &AddReport,
    arguments: &AddArguments,
    source: Option<&Keeper>,
    ahead: EarlyClones,
    cancel: &CancelToken,
) -> Result<Environment, Failure> {
    let config = match Config::of_worktree(&added.path) {
        // The branch has a file of its own, maybe for another version of calve.
        Err(error @ calve_git::Error::Config { .. }) => {
            output::say(&format!("warning: no ports were leased and no data was cloned: {error}"));
            Config::default()
        }
        other => other?,
    };
    let ports = env::leased_anew(&added.path, &config)?;
    let mut services = Services::of(&added.path, config.services)?;
    if !matches!(arguments.data_from, DataFrom::Nowhere) {
        let consent = match (arguments.no_hooks, arguments.yes) {
            (true, _) => Consent::Nothing,
            (_, true) => Consent::Everything,
            _ => Consent::Approved,
        };
        // The data in somebody's database are not for a pull request that he does not trust.
        let donor = source.filter(|_| !added.provenance.is_untrusted());
        services.make(&added.path, donor, arguments.data_from.rule(), ahead, consent, cancel)?;
    }
    forget_data_source(&added.path)?;
    let variables = env::variables(&ports, &services)?;
    let files = env_files(added, arguments.env_file.as_deref(), config.env_file, &variables)?;
    let other_values = other_values(&added.path, &added.carried, &variables);
    Ok(Environment { ports, services, files, other_values })
}

/// Returns the text of the project's hook and the main worktree, or `None` without a hook to run. Fails if the user does not approve the
/// hook.
fn hook_to_run(upcoming: &AddIntent, arguments: &AddArguments) -> Result<Option<(String, Option<PathBuf>)>, Failure> {
    let Some(text) = upcoming.hooks.post_add.clone().filter(|_| !arguments.no_hooks) else { return Ok(None) };
    if !arguments.yes {
        consent::require(&repository_of(&upcoming.donor)?, Hook::PostAdd, &text)?;
    }
    Ok(Some((text, upcoming.main.clone())))
}

/// Removes the worktree of an agent that could not be finished, unless something in it would be lost.
fn taken_back(added: &AddReport, failure: Failure) -> Failure {
    let mut options = RemoveOptions::default();
    options.wait = RemovalWait::No;
    options.protect = protected();
    // The signal that has ended the hook is not for this.
    options.cancel = sys::interrupt::listen_again().unwrap_or_default();
    // Rows that a hook that failed has written to new data are no reason to keep it.
    let leaving = LeavingServices::at(&added.path).ok().flatten();
    let hint = match worktree::take_back(added, &options) {
        Ok(removed) => {
            if let Some(mut leaving) = leaving
                && let Err(failure) = leaving.end(WrittenDataRule::Accept).and_then(|()| leaving.remove())
            {
                output::failure(&failure);
            }
            if let Some(trashed) = &removed.trashed {
                reap::start(&trashed.parent);
            }
            if let Some(kept) = &removed.kept {
                output::say(&unsaved::kept_line(kept));
            }
            if let Some(error) = removed.unfinished {
                output::failure(&error.into());
            }
            "the worktree was taken away again; fix what was reported, and ask again".to_owned()
        }
        Err(why) => format!(
            "the worktree stays, and no agent gets it: {why}; check it, then run `calve worktree remove -f {}`",
            ShownPath(&added.path)
        ),
    };
    match failure {
        Failure::Stated { text, code, .. } => Failure::stated(code, text, hint),
        other => {
            output::say(&hint);
            other
        }
    }
}

fn options(arguments: &AddArguments, cancel: &CancelToken) -> Result<AddOptions, Failure> {
    let mut options = AddOptions::default();
    options.start = super::here()?;
    options.branch.clone_from(&arguments.branch);
    options.base.clone_from(&arguments.base);
    options.from.clone_from(&arguments.from);
    options.path.clone_from(&arguments.path);
    options.is_detached = arguments.detach;
    options.ignored = if arguments.no_ignored { IgnoredEntries::Leave } else { IgnoredEntries::Carry };
    options.changes = if arguments.dirty { UncommittedChanges::Carry } else { UncommittedChanges::Leave };
    options.trust = if arguments.trust { Trust::Yes } else { Trust::No };
    options.clone.inlined = if arguments.json { InlinedBytes::Counted } else { InlinedBytes::WithShared };
    options.clone.spares = home::spares();
    options.clone.progress = Arc::new(Progress::default());
    options.clone.cancel = cancel.clone();
    Ok(options)
}

/// Writes the variables where they are wanted, and where the donor has its own.
fn env_files(
    added: &AddReport,
    wanted: Option<&Path>,
    configured: Option<PathBuf>,
    variables: &[(String, String)],
) -> Result<Vec<(PathBuf, EnvFile)>, Failure> {
    if variables.is_empty() {
        if wanted.is_some() {
            output::say("warning: `--env-file` wrote nothing, because the worktree has no ports and no services");
        }
        return Ok(Vec::new());
    }
    let wanted_one = wanted.map(|path| Ok((path.to_path_buf(), write_env_file(&added.path, path, variables)?)));
    let followed =
        env::followed(&added.env_files, configured).into_iter().filter(|path| Some(path.as_path()) != wanted);
    let followed = followed.map(|path| {
        let outcome = follow_env_file(&added.path, &added.donor, &path, variables)?;
        Ok((path, outcome))
    });
    wanted_one.into_iter().chain(followed).collect()
}

fn env_file(file: &Path, outcome: EnvFile) -> EnvFileReceipt {
    let (code, ignored) = match outcome {
        EnvFile::Written => ("written", Some(true)),
        EnvFile::WrittenUnignored => ("written", Some(false)),
        EnvFile::Tracked => ("tracked", None),
        EnvFile::Foreign => ("foreign", None),
        EnvFile::NotIgnored => ("not_ignored", None),
        EnvFile::NoDirectory => ("no_directory", None),
    };
    EnvFileReceipt { path: path(file), outcome: code, ignored }
}

fn left(left: &[LeftEntry]) -> Vec<SkippedEntry> {
    left.iter().map(|left| SkippedEntry { path: path(&left.path), reason: left.reason.text().into() }).collect()
}

fn written(added: &AddReport) -> u64 {
    added.tracked_written.values().sum()
}

fn add_receipt(added: &AddReport, environment: &Environment) -> Result<WorktreeAddReceipt, Failure> {
    let not_cloned = added.tracked_written.iter();
    let not_cloned = not_cloned.map(|(why, files)| NotClonedFiles { reason: why.code(), files: *files });
    Ok(WorktreeAddReceipt {
        path: path(&added.path),
        branch: added.branch.clone(),
        new_branch: added.is_new_branch,
        new_branch_from: added.start.as_ref().map(|start| start.name.clone()),
        upstream: added.upstream.clone(),
        head: added.head.clone(),
        from: path(&added.donor),
        pull_request: added.pull_request,
        untrusted: added.provenance.is_untrusted(),
        tracked: TrackedFiles {
            cloned: added.tracked_cloned,
            written_by_git: written(added),
            not_cloned: not_cloned.collect(),
        },
        carried: paths(&added.carried),
        left: left(&added.left),
        dependencies: dependencies::receipts(&added.dependencies),
        spares: added.spares.iter().map(CloneReceipt::from).collect(),
        ports: env::receipts(&environment.ports),
        services: environment.services.receipts()?,
        env_files: environment.files.iter().map(|(file, outcome)| env_file(file, *outcome)).collect(),
        other_values: env::other_values_receipts(&environment.other_values),
        uncommitted: added.uncommitted,
        escapes: super::check::findings(&added.audit),
        post_checkout: added.post_checkout.as_ref().map(|hook| HookResult { exit_code: hook.code }),
        warnings: added.warnings.iter().map(wording::git::warning).collect(),
        clone: CloneReceipt::from(&added.clone),
        elapsed_ms: added.elapsed.into(),
    })
}

fn plan_receipt(planned: &AddPlan) -> WorktreePlanReceipt {
    WorktreePlanReceipt {
        path: path(&planned.path),
        branch: planned.branch.clone(),
        new_branch: planned.is_new_branch,
        new_branch_from: planned.start.as_ref().map(|start| start.name.clone()),
        head: planned.head.clone(),
        from: path(&planned.donor),
        untrusted: planned.provenance.is_untrusted(),
        tracked: TrackedPlan { same: planned.tracked_same, other: planned.tracked_other },
        carried: paths(&planned.carried),
        secrets: paths(&planned.secrets),
        left: left(&planned.left),
        dependencies: dependencies::receipts(&planned.dependencies),
    }
}
