use std::path::Path;

use calve_core::internal::ShownPath;
use calve_git::Remedy;
use calve_git::remote::TransferFailure;
use calve_git::worktree::AddWarning;

use super::reworded;

/// Returns the user's hint, as one sentence without a full stop.
pub(crate) fn hint(remedy: &Remedy) -> String {
    match remedy.clone() {
        Remedy::MountPlace { mount_point, record } => {
            let mount = super::core::hint(&calve_core::error::Remedy::MountPlace { mount_point, record });
            format!("if the worktree was moved, run `git worktree repair NEW-PATH`; otherwise {mount}")
        }
        Remedy::CorrectConfig => "`calve worktree add --help` lists the tables and keys that the file may have".into(),
        Remedy::NameSource => reworded(remedy, "name one", "name one with `--from`"),
        Remedy::EnterWorktree | Remedy::NameListedWorktree | Remedy::NameLinkedWorktree => {
            format!("{remedy}; `calve worktree list` shows them")
        }
        Remedy::Prune | Remedy::UnlockAndPrune | Remedy::PruneOrRepair => {
            reworded(remedy, "pruning", "`calve worktree prune`")
        }
        Remedy::FinishWorktree => {
            "`calve up` in it makes its ports and data, unless `calve worktree add` is still at work".into()
        }
        Remedy::ChooseAnotherPath => reworded(remedy, "place", "place with `--path`"),
        Remedy::RecoverOrForget => {
            reworded(remedy, "`git worktree prune`", "`calve worktree remove -f` or `git worktree prune`")
        }
        Remedy::PruneOrLoseData => {
            "`calve worktree prune` forgets it, and keeps the data for `calve worktree add --data-from NAME`; `--lose-data` discards it".into()
        }
        Remedy::GiveAge => "`--older-than AGE`, such as 0h, removes it too".into(),
        Remedy::RemoveInnerOrForce => "`calve worktree remove` that one first, or pass `-f` to lose both".into(),
        Remedy::FetchBranch { .. } => format!("{remedy}; `--base HEAD` makes a new branch instead"),
        Remedy::FetchOrBase => format!("{remedy}; `--base HEAD` makes a new branch of that name"),
        Remedy::ChooseAnotherName => format!("{remedy} (`--base` says where it begins), or pass `--detach`"),
        Remedy::ChooseAnotherBranch | Remedy::FinishElsewhere(_) => {
            format!("{remedy}; `--detach` checks out the commit without the branch")
        }
        Remedy::FinishMergeOrLeaveChanges | Remedy::CommitOrLeaveChanges => format!("{remedy}, or leave `--dirty` out"),
        Remedy::UnlockOrForce => format!("{remedy}, or pass `-f`"),
        Remedy::CommitOrForce | Remedy::BranchOrForce(_) => format!("{remedy}, or pass `-f` to lose them"),
        Remedy::KeepHiddenOrForce(_) | Remedy::FinishOrForce(_) => format!("{remedy}; `-f` discards it"),
        Remedy::CommitNestedOrForce | Remedy::PushNestedOrForce | Remedy::BranchNestedOrForce => {
            format!("{remedy}; `-f` discards them")
        }
        Remedy::MoveNestedOrForce | Remedy::RepairNestedOrForce => format!("{remedy}; `-f` removes it"),
        Remedy::SaveEachOrForce => format!("{remedy}; `-f` discards all of it"),
        Remedy::MoveIgnoredOrForce => format!("{remedy}; `-f` discards all of them"),
        Remedy::RemoveOtherOrForce => format!("{remedy}; `-f` leaves it without a repository"),
        Remedy::KeepDataOrForce => format!("{remedy}: add `--lose-data` to this command"),
        Remedy::Transfer(TransferFailure::SourceShallow) => {
            format!("{remedy}; new clones with `--for dev` or `--for ci` do without it")
        }
        Remedy::Transfer(TransferFailure::DiskFull { is_for_ci: true }) => {
            format!("{remedy}; `--sparse` with fewer directories needs less")
        }
        Remedy::Transfer(TransferFailure::DiskFull { .. }) => format!("{remedy}; `--for ci` and `--sparse` need less"),
        Remedy::FreePorts => format!("{remedy}; then `calve env` in the worktree"),
        other => other.to_string(),
    }
}

pub(crate) fn warning(warning: &AddWarning) -> String {
    match warning {
        AddWarning::EmptySubmodules => {
            "submodules are empty, as after `git worktree add`: run `git submodule update --init`".to_owned()
        }
        AddWarning::Unfiltered { filter, command, files } => super::fitting::fitting(format!(
            "{} stored, because the filter `{}` would run code of the pull request (`{}`); `--trust` runs it",
            if *files == 1 { "1 file is as".to_owned() } else { format!("{files} files are as") },
            ShownPath(filter),
            ShownPath(command)
        )),
        AddWarning::Git(said) => {
            let lines: Vec<String> = said.lines().map(|line| ShownPath(Path::new(line.trim())).to_string()).collect();
            format!("git says of the files that it wrote: {}", lines.join("; "))
        }
        AddWarning::Engine(warning) => warning.message.clone(),
    }
}
