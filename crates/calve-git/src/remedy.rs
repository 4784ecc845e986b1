//! Remedies for errors. The program has its own words for those that one of its commands or options offers.

use std::path::PathBuf;

use calve_core::internal::{ShownPath, word};
use strum::{Display, IntoStaticStr};

use crate::transfer_failure::TransferFailure;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Remedy {
    #[error("install git, and check that it is in PATH")]
    InstallGit,
    #[error("that is git's own message; run the same git command there to look into it")]
    RunGitCommand,
    #[error("git's own message has the reason; nothing was made")]
    ReadGitMessage,
    #[error(
        "`git config --unset core.bare` makes them worktrees again; to set it for the bare repository alone, run `git config --worktree core.bare true`"
    )]
    UnsetBare,
    #[error("correct that line of the file")]
    CorrectConfig,
    #[error("set `path` below `[worktree]` in `.calve.local.toml`, and keep git from tracking that file")]
    NamePlaceInLocalConfig,
    #[error("check the spelling of the path")]
    CorrectPath,
    #[error("the limit of open files is too low: raise it with `ulimit -n 1024`")]
    RaiseOpenFiles,
    #[error("check that the path exists, has room and may be written to, then try again")]
    CheckPath,
    #[error("mount the file system with file locking (flock), or move the repository to another one")]
    UseFileLocks,
    #[error("run it again")]
    RunAgain,

    #[error("run it inside a git repository that has a commit, or make one with `git init`")]
    EnterRepository,
    #[error("name the path of a worktree")]
    EnterWorktree,
    #[error("run it inside a worktree, or name one; in a bare repository make the first one with `git worktree add`")]
    NameSource,
    #[error("name one that git lists")]
    NameListedWorktree,
    #[error("name a linked worktree")]
    NameLinkedWorktree,
    #[error("if you moved the worktree here, run `git worktree repair`; otherwise make a new one")]
    RepairOrAdd,
    #[error("run `git worktree repair` in it")]
    RepairWorktree,
    #[error("run `git worktree repair` in the main worktree to reconnect the two")]
    RepairFromMain,
    #[error(
        "if the main worktree was moved, run `git worktree repair` in it; if it was deleted, or has forgotten this worktree, only the files here are left"
    )]
    RepairMovedMain,
    #[error("run `git worktree repair` in it, or with that path, so that git lists its new place")]
    RepairLinkedPath,
    #[error("pruning makes git forget it; if you moved the worktree, run `git worktree repair NEW-PATH` instead")]
    Prune,
    #[error(
        "if the worktree was moved, run `git worktree repair NEW-PATH`; otherwise mount that file system again; if it is gone for good, delete that record"
    )]
    MountPlace { mount_point: PathBuf, record: PathBuf },
    #[error("if it is gone for good, `git worktree unlock` it, and pruning makes git forget it")]
    UnlockAndPrune,
    #[error(
        "pruning makes git forget the entry and leaves the path alone; if you moved the worktree, run `git worktree repair NEW-PATH` instead"
    )]
    PruneOrRepair,
    #[error("`git worktree prune` makes git forget the one that is not there")]
    PruneDuplicate,
    #[error("check that you may read that path")]
    AllowReading,
    #[error("use `git worktree add`, then clone what git ignores")]
    AddWithGit,
    #[error("use `git worktree remove`, or `git worktree prune`")]
    RemoveWithGit,
    #[error(
        "if you trust its owner, run `git config --global --add safe.directory DIRECTORY`, the directory that has `.git` in it"
    )]
    TrustOwner,
    #[error("this git is too old for the repository; `git --version` shows which one runs")]
    UpdateGit,
    #[error("run `git status` there; git says what is wrong with it")]
    AskGitStatus,

    #[error("commit something first: a branch needs a commit")]
    CommitFirst,
    #[error("leave the base out, and name the commit instead of the branch")]
    NameCommitAsBranch,
    #[error("leave the base out to check it out as it is, or name another branch")]
    DropBaseOrRename,
    #[error("`git log --all` shows the commits there are; `git fetch` gets new ones")]
    FindCommit,
    #[error("name one of them as it is written here, or have git prefer a remote: `git config checkout.defaultRemote {}`", ShownPath(.0))]
    NameRemote(String),
    #[error("`{}` gets it if it is there", fetching(.remote, .branch, *.is_followed))]
    FetchBranch {
        remote: String,
        branch: String,
        /// The remote's refspecs include it.
        is_followed: bool,
    },
    #[error("check the spelling, or fetch it first: `git fetch REMOTE NAME`, or `git fetch --tags`")]
    FetchOrBase,
    #[error("name the branch; `git branch` lists them")]
    NameBranch,
    #[error("`git ls-remote {} 'refs/pull/*/head' 'refs/merge-requests/*/head'` lists them", ShownPath(.0))]
    ListPullRequests(String),
    #[error("`git remote add origin URL` first")]
    AddRemote,
    #[error("rename it (`git branch -m {} NEW`), then run this again", ShownPath(.0))]
    RenameBranch(String),
    #[error("choose another name")]
    ChooseAnotherName,
    #[error("work there, or name another branch")]
    ChooseAnotherBranch,
    #[error("make its ports and data, unless it is still being added")]
    FinishWorktree,
    #[error(
        "choose a name without spaces, without `..`, and without `-` at the beginning; git-check-ref-format(1) has all rules"
    )]
    CorrectBranchName,
    #[error("wait for it, or name another branch")]
    WaitOrChooseAnotherBranch,
    #[error("finish that, or abandon it with `{}`", .0.abort())]
    FinishElsewhere(UnfinishedOperation),
    #[error("finish it or `git merge --abort`")]
    FinishMergeOrLeaveChanges,
    #[error("commit or stash the change")]
    CommitOrLeaveChanges,
    #[error("name another place, or remove what is there")]
    ChooseAnotherPath,
    #[error("connect to the network, and run it again")]
    GoOnline,
    #[error("give the path of a directory that does not exist yet")]
    GiveNewPath,
    #[error("it was changed meanwhile: check what is there now")]
    CheckWorktree,

    #[error("adding a worktree clones it file by file, which needs no conversion")]
    AddWithoutConversion,
    #[error("move it away, or end the program that it belongs to; nothing is converted, and nothing is lost")]
    MoveAwayUncloned,
    #[error("stop the programs that write there, and run it again; nothing is converted, and nothing is lost")]
    StopWriters,
    #[error("end it, or change its directory: it would keep working in the old one")]
    LeaveDirectory,
    #[error("another user owns it; root may remove it")]
    RemoveAsRoot,

    #[error("`git worktree unlock` it first")]
    UnlockOrForce,
    #[error("commit or stash them")]
    CommitOrForce,
    #[error("keep a copy elsewhere, or run `git update-index --no-{} FILE` and commit it", .0)]
    KeepHiddenOrForce(HidingMark),
    #[error("finish it, or abandon it with `{}`", .0.abort())]
    FinishOrForce(UnfinishedOperation),
    #[error("keep them with `git branch NAME {}`", &.0[..12.min(.0.len())])]
    BranchOrForce(String),
    #[error(
        "if you moved the worktree, run `git worktree repair NEW-PATH`; otherwise `git fsck --lost-found` in the repository finds what it had, and then `git worktree prune` forgets it"
    )]
    RecoverOrForget,
    #[error("pruning forgets it, and keeps the data for another worktree")]
    PruneOrLoseData,
    #[error("commit, push, finish or copy what you need of it")]
    SaveEachOrForce,
    #[error("move those that you need out of the worktree")]
    MoveIgnoredOrForce,
    #[error("keep the worktree, or lose its data")]
    KeepDataOrForce,
    #[error("a smaller age removes it too")]
    GiveAge,
    #[error("check what it is, and move it away")]
    MoveNestedOrForce,
    #[error("commit and push them, or move it away")]
    CommitNestedOrForce,
    #[error("push them, or move it away")]
    PushNestedOrForce,
    #[error("keep them with `git branch NAME HEAD` in it")]
    BranchNestedOrForce,
    #[error("if it was moved, run `git worktree repair` in it, so that uncommitted work can be found")]
    RepairNestedOrForce,
    #[error("remove that worktree first")]
    RemoveInnerOrForce,
    #[error("remove that one first")]
    RemoveOtherOrForce,

    #[error(
        "give `https://HOST/PATH`, `ssh://USER@HOST/PATH`, `USER@HOST:PATH`, `git://HOST/PATH`, `file:///PATH` or a directory (`./PATH` when it begins with a dash)"
    )]
    GiveUrl,
    #[error("give the name of the directory after the URL")]
    NameDirectory,
    #[error("leave out one of the options, or choose another value")]
    ReadHelp,
    #[error("name another directory, or remove that one first; `.` always counts as in use")]
    ChooseAnotherDirectory,
    #[error("install a newer git, or do without")]
    UpdateGitOrDoWithout,
    #[error(
        "the server would have sent everything; have it support filters (`uploadpack.allowFilter`), or leave out the requirement"
    )]
    AllowFiltersOrDropRequirement,
    #[error("the server would have sent everything; clone by ssh, or leave out the requirement")]
    ChooseTransportOrDropRequirement,
    #[error("the purpose `ci` asks for a depth, `history` and `blobs` for a filter; or leave out the requirement")]
    ChoosePurposeOrDropRequirement,
    #[error("{0}")]
    Transfer(TransferFailure),
    #[error("create the parent directory first (`mkdir -p`)")]
    CreateParent,

    #[error(
        "remove worktrees that you no longer need, end programs that listen there, or choose another number in .calve.toml"
    )]
    FreePorts,
    #[error("remove it (`rm {}`): worktrees then get new ports", word(.0))]
    RemoveLeases(PathBuf),
    #[error("restore that file, or go on without the data or the approvals that belong to it: rm {}", word(.0))]
    RestoreWord(PathBuf),
}

fn fetching(remote: &str, branch: &str, is_followed: bool) -> String {
    let (remote, branch) = (ShownPath(remote), ShownPath(branch));
    let follow = match is_followed {
        true => String::new(),
        false => format!("git remote set-branches --add {remote} {branch} && "),
    };
    format!("{follow}git fetch {remote} {branch}")
}

/// An operation that git has begun, and keeps files for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display)]
#[strum(serialize_all = "kebab-case")]
pub enum UnfinishedOperation {
    Rebase,
    /// `git rebase`, or `git am`, which keeps its files in the same place.
    #[strum(serialize = "rebase or `git am`")]
    RebaseOrAm,
    Merge,
    CherryPick,
    Revert,
    #[strum(serialize = "bisection")]
    Bisect,
}

impl UnfinishedOperation {
    fn abort(self) -> &'static str {
        match self {
            Self::Rebase | Self::RebaseOrAm => "git rebase --abort",
            Self::Merge => "git merge --abort",
            Self::CherryPick => "git cherry-pick --abort",
            Self::Revert => "git revert --abort",
            Self::Bisect => "git bisect reset",
        }
    }
}

/// A mark that keeps git from looking at a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display)]
#[strum(serialize_all = "kebab-case")]
pub enum HidingMark {
    /// `git update-index --skip-worktree`, or a sparse checkout.
    SkipWorktree,
    /// `git update-index --assume-unchanged`.
    AssumeUnchanged,
}
