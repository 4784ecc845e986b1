//! `calve worktree add`.

use calve_receipt::human;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use calve_core::{CancelToken, InlinedBytes, Progress, RemovalWait, RemoveOptions, ShownPath, SkipReason, Strategy};
use calve_db::WrittenDataRule;
use calve_git::Config;
use calve_git::environment::{EnvFile, Keeper, Port, follow_env_file, forget_data_source, write_env_file};
use calve_git::escape::{Action, AuditReport};
use calve_git::hooks::{Hook, HookEnvironment, repository_of};
use calve_git::worktree::{
    self, AddIntent, AddOptions, AddPlan, AddReport, Dependency, IgnoredEntries, LeftBehindReason, LeftEntry,
    NotClonedReason, Trust, UncommittedChanges,
};

use crate::cli::worktree::{AddArguments, DataFrom};
use crate::commands::ahead::EarlyClones;
use crate::commands::services::{LeavingServices, Services};
use crate::commands::worktree::agent::{self, AgentAnswer};
use crate::commands::{db, env, protected, reap, spares};
use crate::failure::Failure;
use crate::output;
use crate::progress_bar::Watch;
use crate::wording::{self, unsaved};
use crate::{clone_receipt, consent, home, sys};
use calve_receipt::human::{count, duration};
use calve_receipt::{
    CloneReceipt, EnvFileReceipt, HookResult, NotClonedFiles, SkippedEntry, TrackedFiles, TrackedPlan,
    WorktreeAddReceipt, WorktreeDependency, WorktreePlanReceipt, path, paths,
};

pub(crate) fn run(arguments: &AddArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let started = Instant::now();
    let options = options(arguments, cancel)?;
    if arguments.dry_run {
        let planned = worktree::plan(&options)?;
        if !output::is_quiet() {
            say_plan(&planned);
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
        say(&added, arguments.detach);
        let clones = std::iter::once(&added.clone).chain(&added.spares);
        clones.filter_map(|clone| clone_receipt::changed(&clone.changed)).for_each(|line| output::say(&line));
        proposed.iter().for_each(|proposed| output::say(proposed));
    }
    if let Some(hook) = &added.post_checkout {
        output::say(String::from_utf8_lossy(&hook.output).trim_end());
        if hook.code != Some(0) {
            output::say("warning: git's hook post-checkout failed; the worktree is complete all the same");
        }
    }
    let environment = environment
        .map_err(|failure| if arguments.for_agent.is_some() { taken_back(&added, failure) } else { failure })?;
    if !output::is_quiet() {
        say_environment(&environment)?;
    }
    if let Some((text, main)) = hook {
        let mut surroundings = HookEnvironment::of(&added.path);
        surroundings.main = main;
        surroundings.source = Some(added.donor.clone());
        surroundings.branch = added.branch.clone().map(Into::into);
        surroundings.commit = Some(added.head.clone().into());
        surroundings.variables = env::variables(&environment.ports, &environment.services)?;
        let done = consent::run(Hook::PostAdd, &text, &surroundings, cancel);
        done.map_err(|failure| if arguments.for_agent.is_some() { taken_back(&added, failure) } else { failure })?;
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
    let ports = env::leased(&added.path, &config)?;
    let mut services = Services::of(&added.path, config.services)?;
    if !matches!(arguments.data_from, DataFrom::Nowhere) {
        // The data in somebody's database are not for a pull request that he does not trust.
        services.make(&added.path, source.filter(|_| !added.provenance.is_untrusted()), ahead, cancel)?;
    }
    forget_data_source(&added.path)?;
    let files = env_files(added, arguments.env_file.as_deref(), &env::variables(&ports, &services)?)?;
    Ok(Environment { ports, services, files })
}

fn say_environment(environment: &Environment) -> Result<(), Failure> {
    say_ports(&environment.ports);
    say_services(&environment.services)?;
    environment.files.iter().for_each(|(file, outcome)| env::say_file(file, *outcome));
    Ok(())
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

fn written(added: &AddReport) -> u64 {
    added.tracked_written.values().sum()
}

/// Says why git wrote all tracked files.
fn none_cloned(why: NotClonedReason) -> &'static str {
    match why {
        NotClonedReason::OtherVersion => "the commit has other versions of them",
        NotClonedReason::Uncommitted => "they are changed there and not committed",
        NotClonedReason::Converted => {
            "git converts them on checkout (`core.autocrlf`, or `eol`, `filter` or `ident` in .gitattributes)"
        }
        NotClonedReason::SplitIndex => {
            "git's index is split there; `git config core.splitIndex false && git update-index --no-split-index` makes it whole"
        }
        NotClonedReason::StaleIndex => "git's index is not up to date there; `git status` refreshes it",
        _ => "git is told not to look at them there, or they are submodules",
    }
}

/// Says what is checked out.
fn on(branch: Option<&str>, is_new: bool, head: &str) -> String {
    match branch {
        Some(branch) if is_new => format!("on the new branch `{}`", ShownPath(branch)),
        Some(branch) => format!("on `{}`", ShownPath(branch)),
        None => format!("detached at {}", &head[..head.len().min(12)]),
    }
}

pub(crate) const UNTRUSTED: &str = "this worktree is from a pull request and not trusted: it gets no secrets, and its hooks do not run; \
    `calve hook approve --trust PATH` trusts it later";

fn say(added: &AddReport, is_detached: bool) {
    let branch = on(added.branch.as_deref(), added.is_new_branch, &added.head);
    let entries = added.clone.entries.map(|entries| format!(", {}", human::entries(entries.total())));
    output::say(&format!(
        "added `{}` {branch} by {}{}: {} cloned, {} written by git, in {}",
        ShownPath(&added.path),
        added.clone.strategy,
        entries.unwrap_or_default(),
        human::counted(added.tracked_cloned, "tracked file"),
        count(written(added)),
        duration(added.elapsed),
    ));
    for clone in &added.spares {
        if let Some(spare) = &clone.spare {
            output::say(&format!(
                "`{}` was a spare; {} of it brought up to date",
                ShownPath(&clone.dst),
                human::entries(spare.entries_updated)
            ));
        }
    }
    if added.tracked_cloned == 0
        && let Some((why, _)) = added.tracked_written.iter().max_by_key(|(_, files)| **files)
    {
        output::say(&format!("no tracked file was cloned: {}", none_cloned(*why)));
    }
    if added.branch.is_none() && !is_detached {
        output::say("the name is a tag or a commit, so no branch is checked out; `git switch -c NAME` makes one there");
    }
    if added.provenance.is_untrusted() {
        output::say(UNTRUSTED);
    }
    if added.uncommitted > 0 {
        let stay = if added.uncommitted == 1 { "stays" } else { "stay" };
        output::say(&format!(
            "{} {stay} in `{}`; `calve worktree add --dirty` takes them along",
            human::counted(added.uncommitted, "uncommitted change"),
            ShownPath(&added.donor)
        ));
    }
    say_left(&added.left);
    say_dependencies(&added.dependencies, &added.donor);
    say_audit(&added.audit);
    for warning in &added.warnings {
        output::say(&format!("warning: {}", wording::git::warning(warning)));
    }
    if could_be_a_snapshot(added) {
        let donor = ShownPath(&added.donor);
        output::say(&format!(
            "`calve worktree convert {donor}`, once and from outside of it, makes the next one a snapshot"
        ));
    }
}

/// Returns where worktrees are subvolumes, but that which was cloned is not one.
fn could_be_a_snapshot(added: &AddReport) -> bool {
    let is_subvolume = |path: &Path| calve_core::is_subvolume(path).ok();
    ![Strategy::Snapshot, Strategy::Spare].contains(&added.clone.strategy)
        && is_subvolume(&added.path) == Some(true)
        && is_subvolume(&added.donor) == Some(false)
}

/// Says which references pointed back: the numbers, and each that is still there.
fn say_audit(audit: &AuditReport) {
    let count = |action| audit.findings.iter().filter(|found| found.action == action).count();
    let (repaired, dropped) = (count(Action::Repaired), count(Action::Dropped));
    if repaired + dropped > 0 {
        output::say(&format!("of what pointed out of the new worktree, {repaired} repaired and {dropped} dropped"));
    }
    for found in audit.findings.iter().filter(|found| found.action == Action::Reported) {
        let (path, names) = (ShownPath(&found.path), ShownPath(&found.names));
        output::say(&format!("warning: `{path}` still names `{names}`: {}", wording::git::explanation(found)));
    }
}

/// Returns whether nobody misses such an entry, so that only `--json` has it.
fn is_expected(reason: LeftBehindReason) -> bool {
    matches!(
        reason,
        LeftBehindReason::Engine(SkipReason::Socket | SkipReason::CalvesOwn)
            | LeftBehindReason::NestedWorktree
            | LeftBehindReason::Runtime
    )
}

fn say_ports(ports: &[Port]) {
    let words: Vec<String> = ports.iter().map(|port| format!("{}={}", port.variable(), port.number)).collect();
    if !words.is_empty() {
        output::say(&format!("ports: {} (`calve env` prints them)", words.join(", ")));
    }
}

fn say_services(services: &Services) -> Result<(), Failure> {
    for service in services.receipts()? {
        if let (Some(variable), Some(url)) = (service.variable, service.url) {
            output::say(&format!("service: {variable}={url} (`calve up` starts it)"));
        }
    }
    Ok(())
}

/// Writes the variables where they are wanted, and where the donor has its own.
fn env_files(
    added: &AddReport,
    wanted: Option<&Path>,
    variables: &[(String, String)],
) -> Result<Vec<(PathBuf, EnvFile)>, Failure> {
    if variables.is_empty() {
        if wanted.is_some() {
            output::say("warning: `--env-file` wrote nothing, because the worktree has no ports and no services");
        }
        return Ok(Vec::new());
    }
    let wanted_one = wanted.map(|path| Ok((path.to_path_buf(), write_env_file(&added.path, path, variables)?)));
    let followed = added.env_files.iter().filter(|path| Some(path.as_path()) != wanted);
    let followed =
        followed.map(|path| Ok((path.clone(), follow_env_file(&added.path, &added.donor, path, variables)?)));
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

fn say_left(left: &[LeftEntry]) {
    let told: Vec<&LeftEntry> = left.iter().filter(|left| !is_expected(left.reason)).collect();
    let mut reasons: Vec<LeftBehindReason> = told.iter().map(|left| left.reason).collect();
    reasons.sort_unstable();
    reasons.dedup();
    for reason in reasons {
        let mut of: Vec<&&LeftEntry> = told.iter().filter(|left| left.reason == reason).collect();
        let first = of.remove(0);
        let more = if of.is_empty() { String::new() } else { format!(" and {} more", count(of.len() as u64)) };
        output::say(&format!("left out `{}`{more}: {}", ShownPath(&first.path), reason.text()));
    }
}

fn say_dependencies(dependencies: &[Dependency], donor: &Path) {
    for dependency in dependencies {
        if dependency.from != donor {
            output::say(&format!("`{}` comes from `{}`", ShownPath(&dependency.path), ShownPath(&dependency.from)));
        }
        if !dependency.is_current {
            output::say(&format!(
                "`{}` does not fit `{}`: an install is still needed",
                ShownPath(&dependency.path),
                ShownPath(&dependency.lockfile)
            ));
        }
    }
}

fn say_plan(planned: &AddPlan) {
    let branch = on(planned.branch.as_deref(), planned.is_new_branch, &planned.head);
    output::say(&format!(
        "would add `{}` {branch}, from `{}`: {} the same, {} not",
        ShownPath(&planned.path),
        ShownPath(&planned.donor),
        human::counted(planned.tracked_same, "tracked file"),
        count(planned.tracked_other),
    ));
    if planned.provenance.is_untrusted() {
        output::say("the worktree would not be trusted: it would get no secrets and run no hooks");
    }
    for path in &planned.carried {
        let secret = if planned.secrets.contains(path) { " (looks like a secret)" } else { "" };
        output::say(&format!("would carry `{}`{secret}", ShownPath(path)));
    }
    for left in &planned.left {
        output::say(&format!("would leave `{}`: {}", ShownPath(&left.path), left.reason.text()));
    }
    say_dependencies(&planned.dependencies, &planned.donor);
}

fn left(left: &[LeftEntry]) -> Vec<SkippedEntry> {
    left.iter().map(|left| SkippedEntry { path: path(&left.path), reason: left.reason.text().into() }).collect()
}

fn dependencies(dependencies: &[Dependency]) -> Vec<WorktreeDependency> {
    let one = |one: &Dependency| WorktreeDependency {
        path: path(&one.path),
        from: path(&one.from),
        lockfile: path(&one.lockfile),
        install_needed: !one.is_current,
    };
    dependencies.iter().map(one).collect()
}

fn add_receipt(added: &AddReport, environment: &Environment) -> Result<WorktreeAddReceipt, Failure> {
    let not_cloned = added.tracked_written.iter();
    let not_cloned = not_cloned.map(|(why, files)| NotClonedFiles { reason: why.code(), files: *files });
    Ok(WorktreeAddReceipt {
        path: path(&added.path),
        branch: added.branch.clone(),
        new_branch: added.is_new_branch,
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
        dependencies: dependencies(&added.dependencies),
        spares: added.spares.iter().map(CloneReceipt::from).collect(),
        ports: env::receipts(&environment.ports),
        services: environment.services.receipts()?,
        env_files: environment.files.iter().map(|(file, outcome)| env_file(file, *outcome)).collect(),
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
        head: planned.head.clone(),
        from: path(&planned.donor),
        untrusted: planned.provenance.is_untrusted(),
        tracked: TrackedPlan { same: planned.tracked_same, other: planned.tracked_other },
        carried: paths(&planned.carried),
        secrets: paths(&planned.secrets),
        left: left(&planned.left),
        dependencies: dependencies(&planned.dependencies),
    }
}
