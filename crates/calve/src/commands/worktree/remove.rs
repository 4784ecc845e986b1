//! `calve worktree remove`.

use std::path::Path;

use calve_core::{CancelToken, RemovalWait, ShownPath};
use calve_db::WrittenDataRule;
use calve_git::Config;
use calve_git::hooks::{Hook, HookEnvironment, repository_of};
use calve_git::worktree::{
    self, BranchFate, GoingBranch, Meanwhile, RemovalPlan, RemovalSteps, RemoveWorktreeOptions, UnsavedItem, Worktree,
    WorktreeRemoveReport,
};

use super::processes;
use crate::cli::worktree::RemoveWorktreeArguments;
use crate::commands::services::{LeavingServices, Services};
use crate::commands::{env, protected, reap};
use crate::consent;
use crate::failure::{Failure, INTERRUPTED};
use crate::output;
use crate::wording::unsaved;
use calve_receipt::human::{counted, duration};
use calve_receipt::{WorktreeRemoval, WorktreeRemovePlanReceipt, WorktreeRemoveReceipt, WorktreeRemoveReceipts, path};

/// Runs the project's hook in a worktree that is still whole. Returns whether there was one: it takes time, and so does asking about it.
fn hook(worktree: &Worktree, arguments: &RemoveWorktreeArguments, cancel: &CancelToken) -> Result<bool, Failure> {
    if arguments.no_hooks || worktree.is_gone {
        return Ok(false);
    }
    if !arguments.trust && worktree.provenance.is_untrusted() {
        output::note(
            "no hook was run: this worktree is from a pull request that is not trusted (`--trust` runs its hook)",
        );
        return Ok(false);
    }
    let Some(text) = Config::of_worktree(&worktree.path)?.hooks.pre_remove else { return Ok(false) };
    if !arguments.yes {
        consent::require(&repository_of(&worktree.path)?, Hook::PreRemove, &text)?;
    }
    let mut surroundings = HookEnvironment::of(&worktree.path);
    let others = calve_git::escape::worktrees_of(&worktree.path)?.others;
    surroundings.main = others.into_iter().next();
    surroundings.branch = worktree.branch.clone().map(Into::into);
    surroundings.commit = worktree.head.clone().map(Into::into);
    // Faults of theirs must not keep a worktree.
    surroundings.variables = variables(&worktree.path).unwrap_or_default();
    consent::run(Hook::PreRemove, &text, &surroundings, cancel).map(|()| true)
}

fn variables(root: &Path) -> Result<Vec<(String, String)>, Failure> {
    let config = Config::of_worktree(root)?;
    let ports = env::leased(root, &config)?;
    env::variables(&ports, &Services::of(root, config.services)?)
}

pub(crate) fn run(arguments: &RemoveWorktreeArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let mut options = options(arguments, cancel)?;
    // Removing one of them goes elsewhere.
    let here = std::env::current_dir().ok();
    let mut what = arguments.what.clone();
    if let (Some(here), Some(first)) = (&here, what.first())
        && here.join(first).is_dir()
        && repository_of(here).is_err()
    {
        // Outside of a repository, a path says which one is meant.
        options.start = here.join(first);
        what.iter_mut().for_each(|path| *path = here.join(&*path));
    }
    let [_, _, ..] = what[..] else {
        options.what = what.pop();
        let document = one(&options, arguments, here.as_deref(), !arguments.yes)?;
        return if arguments.json { output::json(&document) } else { Ok(()) };
    };
    // All are looked up first: the directory that their paths are relative to may be removed with one of them.
    let (start, found) = worktree::find_all(&options.start, &what)?;
    (options.start, options.is_found) = (start, true);
    let mut documents = Vec::new();
    let mut worst = 0;
    for path in found {
        let done = path.map_err(Failure::from).and_then(|path| {
            options.what = Some(path);
            one(&options, arguments, here.as_deref(), !arguments.yes)
        });
        match done {
            Ok(document) => documents.push(document),
            // As `calve rm` does: the others are still removed.
            Err(failure) if failure.code() != INTERRUPTED => {
                output::failure(&failure);
                worst = worst.max(failure.code());
            }
            Err(failure) => return Err(failure),
        }
    }
    if arguments.json {
        output::json(&WorktreeRemoveReceipts { removed: documents })?;
    }
    if worst > 0 { Err(Failure::Reported(worst)) } else { Ok(()) }
}

/// Lists the data of a worktree's services that would be lost.
pub(super) fn unsaved_data(worktree: &Worktree) -> Result<Vec<UnsavedItem>, Failure> {
    LeavingServices::of(worktree)?.map_or(Ok(Vec::new()), |leaving| leaving.unsaved())
}

/// Removes a worktree as `calve worktree remove PATH` does, with `--lose-data` if `lose_data` says so.
pub(super) fn merged(start: &Path, path: &Path, lose_data: bool, cancel: &CancelToken) -> Result<(), Failure> {
    let what = vec![path.to_path_buf()];
    let arguments = RemoveWorktreeArguments { what, lose_data, ..RemoveWorktreeArguments::default() };
    let mut options = options(&arguments, cancel)?;
    options.start = start.to_path_buf();
    options.what = arguments.what.first().cloned();
    // About all that are merged, the user was asked once.
    one(&options, &arguments, None, false).map(|_| ())
}

fn options(arguments: &RemoveWorktreeArguments, cancel: &CancelToken) -> Result<RemoveWorktreeOptions, Failure> {
    let mut options = RemoveWorktreeOptions::default();
    options.start = super::here()?;
    options.is_forced = arguments.force;
    options.loses_data = arguments.lose_data;
    options.branch = match (arguments.delete_branch, arguments.delete_merged) {
        (true, _) => BranchFate::Deleted,
        (_, true) => BranchFate::DeletedIfMerged,
        _ => BranchFate::Stays,
    };
    options.remove.wait = RemovalWait::No;
    options.remove.protect = protected();
    options.remove.cancel = cancel.clone();
    Ok(options)
}

/// The hook and the services of a worktree that is going to be removed.
struct Program<'a> {
    arguments: &'a RemoveWorktreeArguments,
    cancel: &'a CancelToken,
    may_ask: bool,
    leaving: Option<LeavingServices>,
}

impl RemovalSteps<Failure> for Program<'_> {
    fn unsaved(&mut self, worktree: &Worktree) -> Result<Vec<UnsavedItem>, Failure> {
        // Once the servers have ended, nobody writes any more.
        match &self.leaving {
            Some(_) => Ok(Vec::new()),
            None => unsaved_data(worktree),
        }
    }

    fn before(&mut self, worktree: &Worktree) -> Result<Meanwhile, Failure> {
        let written = WrittenDataRule::of(self.arguments.force || self.arguments.lose_data);
        let leaving = LeavingServices::of(worktree)?;
        let has_hook = hook(worktree, self.arguments, self.cancel)?;
        self.leaving = leaving;
        self.leaving.iter_mut().try_for_each(|leaving| leaving.end(written))?;
        let has_asked =
            !worktree.is_gone && processes::offer_to_end(worktree, self.may_ask, self.cancel) == Meanwhile::Changes;
        // The shell's directory may go; the directory of this process would keep the engine from removing it.
        let _ = worktree.path.parent().map(std::env::set_current_dir);
        Ok(if has_hook || has_asked || self.leaving.is_some() { Meanwhile::Changes } else { Meanwhile::Nothing })
    }
}

/// Removes one worktree, and returns its receipt. Prints where to go from `here` if that was in it. On a terminal, `may_ask` about its
/// processes.
fn one(
    options: &RemoveWorktreeOptions,
    arguments: &RemoveWorktreeArguments,
    here: Option<&Path>,
    may_ask: bool,
) -> Result<WorktreeRemoval, Failure> {
    let mut program = Program { arguments, cancel: &options.remove.cancel, may_ask, leaving: None };
    if arguments.dry_run {
        let plan = worktree::plan_removal(options, &mut program)?;
        if !output::is_quiet() {
            say_plan(&plan, options.branch);
            processes::say(&plan.worktree);
        }
        return Ok(WorktreeRemoval::Planned(WorktreeRemovePlanReceipt {
            path: path(&plan.worktree.path),
            gone: plan.worktree.is_gone,
            branch: plan.worktree.branch,
            branch_commit: plan.branch.as_ref().map(|branch| branch.commit.clone()),
            branch_own_commits: plan.branch.as_ref().map(|branch| branch.own_commits),
            unsaved: unsaved::receipts(&plan.unsaved),
        }));
    }
    let removed = worktree::remove(options, &mut program);
    let (mut removed, services) = match (removed, program.leaving) {
        (Ok(removed), Some(leaving)) => (removed, leaving.remove()),
        (Err(failure), Some(mut leaving)) => {
            leaving.spare();
            return Err(failure);
        }
        (removed, None) => (removed?, Ok(())),
    };
    if let Some(trashed) = &removed.trashed {
        reap::start(&trashed.parent);
    }
    let unfinished = removed.unfinished.take().map(Failure::from).or(services.err());
    if !output::is_quiet() || unfinished.is_some() {
        say(&removed, options.branch);
    }
    if let Some(failure) = unfinished {
        return Err(half_done(&removed, failure));
    }
    if !arguments.json && here.is_some_and(|here| here.starts_with(&removed.path)) {
        output::path(&removed.home)?;
    }
    let deleted = removed.deleted_branch.as_ref();
    Ok(WorktreeRemoval::Removed(WorktreeRemoveReceipt {
        path: path(&removed.path),
        branch_deleted: deleted.is_some(),
        branch_commit: deleted.map(|branch| branch.commit.clone()),
        branch_own_commits: deleted.map(|branch| branch.own_commits),
        branch: removed.branch,
        was_gone: removed.was_gone,
        kept: removed.kept.as_ref().map(unsaved::kept_receipt),
        lost: unsaved::receipts(&removed.lost),
        trashed: removed.trashed.is_some(),
        elapsed_ms: removed.elapsed.into(),
    }))
}

fn say_plan(plan: &RemovalPlan, fate: BranchFate) {
    let path = ShownPath(&plan.worktree.path);
    let branch = match (&plan.branch, fate) {
        (Some(branch), BranchFate::DeletedIfMerged) => {
            format!(", and the branch `{}` if it is merged", ShownPath(&branch.name))
        }
        (Some(branch), _) => format!(", and the branch {}", named(branch)),
        (None, _) => String::new(),
    };
    output::say(&match plan.worktree.is_gone {
        true => format!("would forget `{path}`, which is gone{branch}"),
        false => format!("would remove `{path}`{branch}"),
    });
    for item in &plan.unsaved {
        output::say(&unsaved::planned_line(item));
    }
}

fn say(removed: &WorktreeRemoveReport, fate: BranchFate) {
    let path = ShownPath(&removed.path);
    let deleted = removed.deleted_branch.as_ref();
    let deleted = deleted.map(|branch| format!(", and the branch {}", named(branch))).unwrap_or_default();
    let stays = match (&removed.staying_branch, fate) {
        (None, _) => String::new(),
        (Some(branch), BranchFate::Deleted) => {
            format!("; the branch `{}` has changed meanwhile or is in use, and stays", ShownPath(&branch.name))
        }
        (Some(branch), _) => {
            let why = match branch.own_commits {
                0 => "it is not merged, or in use".to_owned(),
                own => format!("it or its log has {} that no other branch has", counted(own, "commit")),
            };
            format!("; the branch `{}` stays: {why}", ShownPath(&branch.name))
        }
    };
    output::say(&match removed.was_gone {
        true => format!("forgot `{path}`, which was gone already{deleted}{stays}"),
        false => format!("removed `{path}`{deleted} in {}{stays}", duration(removed.elapsed)),
    });
    for item in &removed.lost {
        output::say(&format!("lost {item}"));
    }
    if let Some(kept) = &removed.kept {
        output::say(&unsaved::kept_line(kept));
    }
}

/// Returns the error for a failure after the directory was removed. It also says where the ignored files are, in case only it is read.
fn half_done(removed: &WorktreeRemoveReport, failure: Failure) -> Failure {
    let Some(why) = failure.receipt() else { return failure };
    let kept = removed.kept.as_ref();
    let kept = kept.map(|kept| format!(" (its ignored files are in `{}`)", ShownPath(&kept.directory)));
    let path = ShownPath(&removed.path);
    let text = format!("`{path}` is gone{}, but not all that belongs to it: {}", kept.unwrap_or_default(), why.message);
    Failure::stated(failure.code(), text, why.hint.unwrap_or_else(|| "`calve worktree prune` forgets the rest".into()))
}

/// Names a branch that goes, as in "`x` (was 63e454a, 1 commit that no other branch has)".
fn named(branch: &GoingBranch) -> String {
    let own = match branch.own_commits {
        0 => String::new(),
        own => format!(", {} that no other branch has", counted(own, "commit")),
    };
    format!("`{}` (was {}{own})", ShownPath(&branch.name), &branch.commit[..branch.commit.len().min(7)])
}
