//! Remedies for errors, in the words of the `calve` program, of which this library is a part.

use std::path::PathBuf;

use calve_core::internal::word;
use calve_git::hooks::Hook;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Remedy {
    #[error("set HOME, or CALVE_HOME to an absolute path")]
    SetHome,
    #[error("name services in .calve.toml, then run `calve up`")]
    NameServices,
    #[error("`calve up` clones it, or says why it cannot")]
    CloneData,
    #[error("name one of them: {}", .0.join(", "))]
    NameOneOf(Vec<String>),
    #[error("read its log: calve logs {0}")]
    ReadLog(String),
    #[error(
        "install that version again to keep the data; or rebuild the template `{template}`, and discard the data: calve reset {service}"
    )]
    RestoreVersion { service: String, template: String },
    #[error("to go on with its data, name its template or engine again; `calve reset {0}` discards the data")]
    GiveUpForEngine(String),
    #[error("`calve up` in that worktree clones the data of its services")]
    StartServicesThere,
    #[error("run `calve up` there, or leave `--data-from` out")]
    StartServicesThereOrNameNoSource,
    #[error("name a file in a directory that it gets: one that git tracks, or that is carried along")]
    NamePresentDirectory,
    #[error("`calve worktree list` shows what there is")]
    ListWorktrees,
    #[error("in .calve.toml, remove from `inputs` the files that `create` writes")]
    CorrectWrittenInputs,
    #[error("correct `inputs` in .calve.toml")]
    CorrectInputs,
    #[error(
        "read it and trust it with `calve hook approve --trust`, or wait until it is merged; if it changes no `inputs`, `calve up` in a worktree of your own makes it too"
    )]
    StartServicesInOwnWorktree,
    #[error("`calve up` runs it")]
    StartServices,
    #[error("`calve hook approve` shows it and approves it, and `calve up` then runs it")]
    ApproveAndStartServices,
    #[error("fix what the command reported; `calve up` runs it again")]
    CorrectCommand,
    #[error("fix what the command reported; `calve reset {0}` runs it again")]
    CorrectCommandOfReset(String),
    #[error("remove it, and `calve up` rebuilds it: calve db template remove {0}")]
    RemoveTemplate(String),
    #[error("let it use `{0}`")]
    UseVariable(String),
    #[error("`calve hook approve` shows it and approves it")]
    ApproveCommand,
    #[error("`calve hook approve` shows it and approves it; `--yes` runs it once, `--no-hooks` goes without")]
    ApproveHook,
    #[error("check who may write there: approvals are kept under $CALVE_HOME")]
    CheckApprovals,
    #[error("the worktree is there; fix what the hook reported, and run its commands in it yourself")]
    RunCommandsOfHook,
    #[error("once `calve up` has cloned it, run the commands of `hooks.post-add` in the worktree yourself")]
    RunCommandsAfterUp,
    #[error("the worktree is still there; fix what the hook reported, or use `--no-hooks`")]
    CorrectHook,
    #[error(
        "remove that command from the hook in .calve.toml; if the worktree was moved, run `git worktree repair NEW-PATH`, otherwise `calve worktree prune` forgets it"
    )]
    LeaveWorktree,
    #[error("ask for another name: an agent gets a worktree of its own")]
    AskForAnotherName,
    #[error(
        "ask for another name; if an earlier attempt left `{it}`, check it, then run `calve worktree remove {it}`",
        it = word(.0)
    )]
    AskForAnotherNameOrRemove(PathBuf),
    #[error("ask for another name, with that one as the base")]
    AskForAnotherNameThere,
}

impl Remedy {
    pub(crate) fn approve(hook: Hook) -> Self {
        if hook == Hook::Create { Self::ApproveCommand } else { Self::ApproveHook }
    }
}
