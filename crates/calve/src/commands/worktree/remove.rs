use std::path::Path;
use std::time::Duration;

use calve_core::CancelToken;
use calve_core::internal::ShownPath;
use calve_core::internal::json::FromReport as _;
use calve_env::{RemoveOptions, RemovedEnvironment};
use calve_git::hooks::repository_of;
use calve_git::worktree::{
    self, BranchFate, GoingBranch, KeptFiles, Meanwhile, RemovalPlan, RemoveWorktreeOptions, Worktree, WorktreeProcess,
    WorktreeRemoveReport, processes,
};

use crate::cli::worktree::RemoveWorktreeArguments;
use crate::commands::worktree::env;
use crate::failure::Failure;
use crate::host::Program;
use crate::real_path::here;
use crate::wording::unsaved;
use crate::{consent, home, operands, output};
use calve_receipt::human::{counted, duration};
use calve_receipt::{WorktreeRemoval, WorktreeRemovePlanReceipt, WorktreeRemoveReceipts, path};

pub(crate) fn run(arguments: &RemoveWorktreeArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let mut options = options(arguments, cancel)?;
    // Keep it, because removing a worktree changes the directory.
    let here = std::env::current_dir().ok();
    let mut what = arguments.what.clone();
    if let (Some(here), Some(first)) = (&here, what.first())
        && here.join(first).is_dir()
        && repository_of(here).is_err()
    {
        // Outside of a repository, the first path determines the repository.
        options.worktree.start = here.join(first);
        what.iter_mut().for_each(|path| *path = here.join(&*path));
    }
    let [_, _, ..] = what[..] else {
        options.worktree.what = what.pop();
        return output::json_if(arguments.json, &remove_one(&options, arguments, here.as_deref(), !arguments.yes)?);
    };
    // Find all of them first: the directory of relative paths may be removed with one of them.
    let (start, found) = worktree::find_all(&options.worktree.start, &what)?;
    (options.worktree.start, options.worktree.is_found) = (start, true);
    let mut documents = Vec::new();
    let ended = operands::each(found, |path| {
        options.worktree.what = Some(path?);
        documents.push(remove_one(&options, arguments, here.as_deref(), !arguments.yes)?);
        options.worktree.gone_before.extend(options.worktree.what.take().filter(|_| arguments.dry_run));
        Ok(())
    })?;
    output::json_if(arguments.json, &WorktreeRemoveReceipts { removed: documents })?;
    ended
}

/// Removes a worktree like `calve worktree remove PATH`, with `--lose-data` if `lose_data`.
pub(super) fn merged(start: &Path, path: &Path, lose_data: bool, cancel: &CancelToken) -> Result<(), Failure> {
    let arguments = RemoveWorktreeArguments { lose_data, ..RemoveWorktreeArguments::default() };
    let mut options = options(&arguments, cancel)?;
    options.worktree.start = start.to_path_buf();
    options.worktree.what = Some(path.to_path_buf());
    // The user has already agreed to all merged worktrees.
    remove_one(&options, &arguments, None, false).map(|_| ())
}

fn options(arguments: &RemoveWorktreeArguments, cancel: &CancelToken) -> Result<RemoveOptions, Failure> {
    let mut worktree = RemoveWorktreeOptions::default();
    worktree.start = here()?;
    worktree.is_forced = arguments.force;
    worktree.loses_data = arguments.lose_data;
    worktree.branch = match (arguments.delete_branch, arguments.delete_merged) {
        (true, _) => BranchFate::Deleted,
        (_, true) => BranchFate::DeletedIfMerged,
        _ => BranchFate::Stays,
    };
    worktree.remove.protect = home::protected();
    worktree.remove.cancel = cancel.clone();
    let consent = consent::to_hooks(arguments.no_hooks, arguments.yes);
    Ok(RemoveOptions { worktree, consent, trusts_hook: arguments.trust })
}

/// Removes one worktree. If `here` was in it, prints the place to go to. On a terminal, `may_ask` about its processes.
fn remove_one(
    options: &RemoveOptions,
    arguments: &RemoveWorktreeArguments,
    here: Option<&Path>,
    may_ask: bool,
) -> Result<WorktreeRemoval, Failure> {
    let (cancel, branch) = (&options.worktree.remove.cancel, options.worktree.branch);
    if arguments.dry_run {
        let plan = calve_env::plan_removal(&Program, options)?;
        say_plan(&plan, branch);
        say_processes(&plan.worktree, output::note);
        return Ok(WorktreeRemoval::Planned(WorktreeRemovePlanReceipt {
            path: path(&plan.worktree.path),
            gone: plan.worktree.is_gone,
            branch: plan.worktree.branch,
            going_branch: plan.branch,
            unsaved: Vec::from_report(&plan.unsaved),
        }));
    }
    let mut before = |worktree: &Worktree| {
        let ended = if worktree.is_gone { Meanwhile::Nothing } else { offer_to_end(worktree, may_ask, cancel) };
        // The user's shell may stay in it, but this process's directory would keep the engine from removing it.
        let _ = worktree.path.parent().map(std::env::set_current_dir);
        ended
    };
    let RemovedEnvironment { worktree: removed, unfinished } = calve_env::remove(&Program, options, &mut before)?;
    say(&removed, branch);
    let mut unfinished = unfinished.into_iter();
    if let Some(error) = unfinished.next() {
        unfinished.for_each(|error| _ = output::failure(&error.into()));
        return Err(half_done(&removed, error.into()));
    }
    if !arguments.json && here.is_some_and(|here| here.starts_with(&removed.path)) {
        output::path(&removed.home)?;
    }
    Ok(WorktreeRemoval::Removed(Box::new(removed)))
}

fn say_plan(plan: &RemovalPlan, fate: BranchFate) {
    let path = ShownPath(&plan.worktree.path);
    let branch = match (&plan.branch, fate) {
        (Some(branch), BranchFate::DeletedIfMerged) => {
            format!(", and the branch `{}` if it is merged", ShownPath(&branch.name))
        }
        (Some(branch), _) => format!(", and the branch {}", named(branch)),
        (None, fate) => of_no_branch(fate).to_owned(),
    };
    output::note(&match plan.worktree.is_gone {
        true => format!("would forget `{path}`, which is gone{branch}"),
        false => format!("would remove `{path}`{branch}"),
    });
    for item in &plan.unsaved {
        output::note(&unsaved::planned_line(item));
    }
}

/// Returns the words for a worktree without a branch of which the branch was to go, such as in a rebase.
fn of_no_branch(fate: BranchFate) -> &'static str {
    if fate == BranchFate::Stays { "" } else { "; no branch to delete: it had none checked out" }
}

fn say(removed: &WorktreeRemoveReport, fate: BranchFate) {
    let path = ShownPath(&removed.path);
    let deleted = removed.deleted_branch.as_ref();
    let deleted = deleted.map(|branch| format!(", and the branch {}", named(branch))).unwrap_or_default();
    let stays = match (&removed.staying_branch, fate) {
        (None, _) if removed.deleted_branch.is_some() => String::new(),
        (None, fate) => of_no_branch(fate).to_owned(),
        (Some(branch), BranchFate::Deleted) => {
            format!("; the branch `{}` was kept: it changed or is in use", ShownPath(&branch.name))
        }
        (Some(branch), _) => {
            let why = match branch.own_commits {
                0 => "it is not merged, or in use".to_owned(),
                own => format!("it or its log has {} that no other branch has", counted(own, "commit")),
            };
            format!("; the branch `{}` stays: {why}", ShownPath(&branch.name))
        }
    };
    output::note(&match removed.was_gone {
        true => format!("forgot `{path}`, which was already gone{deleted}{stays}"),
        false => format!("removed `{path}`{deleted} in {}{stays}", duration(removed.elapsed)),
    });
    for item in &removed.lost {
        output::warn(&format!("lost {item}"));
    }
    if let Some(kept) = &removed.kept {
        say_kept(kept);
    }
}

/// Reports where its ignored files are kept, as a warning if something was lost on the way.
pub(super) fn say_kept(kept: &KeptFiles) {
    let line = unsaved::kept_line(kept);
    if kept.losses.is_empty() { output::note(&line) } else { output::warn(&line) }
}

/// Builds the error after the directory was removed, with the place of the ignored files, in case only it is read.
fn half_done(removed: &WorktreeRemoveReport, failure: Failure) -> Failure {
    let Some(why) = failure.receipt else { return failure };
    let kept = removed.kept.as_ref();
    let kept = kept.map(|kept| format!(" (its ignored files are in `{}`)", ShownPath(&kept.directory)));
    let path = ShownPath(&removed.path);
    let text = format!("`{path}` is gone{}, but not all that belongs to it: {}", kept.unwrap_or_default(), why.message);
    Failure::stated(failure.code, text, why.hint.unwrap_or_else(|| "`calve worktree prune` forgets the rest".into()))
}

/// Names a branch to be deleted, as in "`x` (was 63e454a, 1 commit that no other branch has)".
fn named(branch: &GoingBranch) -> String {
    let own = match branch.own_commits {
        0 => String::new(),
        own => format!(", {} that no other branch has", counted(own, "commit")),
    };
    format!("`{}` (was {}{own})", ShownPath(&branch.name), &branch.commit[..branch.commit.len().min(7)])
}

const WAIT: Duration = Duration::from_secs(5);

/// Lists the processes in a worktree, as in "process 25357 (node) is running in it, and listens on 3001".
fn say_processes(worktree: &Worktree, print: fn(&str)) -> Vec<WorktreeProcess> {
    let ports: Vec<u16> = env::of_worktree(worktree).iter().map(|port| port.number).collect();
    let found = processes(&worktree.path, &ports);
    for process in &found {
        let ports: Vec<String> = process.ports.iter().map(u16::to_string).collect();
        let does = match (process.is_inside, ports.join(", ")) {
            (_, ports) if ports.is_empty() => "is running in it".to_owned(),
            (true, ports) => format!("is running in it, and listens on {ports}"),
            (false, ports) => format!("listens on {ports}"),
        };
        print(&format!("`{}`: process {} {does}", ShownPath(&worktree.path), process_name(process)));
    }
    found
}

/// Lists the processes in a worktree. On a terminal, ends them if the user agrees and `may_ask`.
fn offer_to_end(worktree: &Worktree, may_ask: bool, cancel: &CancelToken) -> Meanwhile {
    let asks = may_ask && consent::can_ask();
    let found = say_processes(worktree, output::prompt_if(asks));
    if found.is_empty() || !asks {
        return Meanwhile::Nothing;
    }
    let them = if found.len() == 1 { "it" } else { "them" };
    if consent::yes(&format!("End {them}? The worktree is removed either way.")) {
        for process in WorktreeProcess::end(found, WAIT, cancel) {
            output::warn(&format!("process {} has not ended", process_name(&process)));
        }
    }
    Meanwhile::Changes
}

fn process_name(process: &WorktreeProcess) -> String {
    format!("{} ({})", process.pid, ShownPath(&process.name))
}
