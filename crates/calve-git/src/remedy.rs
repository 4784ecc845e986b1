//! Remedies against errors: names with the values that their wording needs. The program puts them into words.

use std::path::PathBuf;

use strum::IntoStaticStr;

use crate::transfer_failure::TransferFailure;

/// The user's next step.
#[derive(Debug, Clone, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum Remedy {
    InstallGit,
    /// Run the same git command in that directory.
    RunGitCommand,
    /// Correct the project's configuration.
    CorrectConfig,
    /// Name the place of worktrees in a configuration file of the user's own.
    NamePlaceInLocalConfig,
    /// Correct the path of a directory that does not exist.
    CorrectPath,
    /// Permit more open files.
    RaiseOpenFiles,
    CheckPath,
    RunAgain,

    EnterRepository,
    EnterWorktree,
    NameSource,
    NameListedWorktree,
    NameLinkedWorktree,
    /// Make the worktree known to the repository if it was moved, or else make a new one.
    RepairOrAdd,
    RepairWorktree,
    /// Make the worktrees and a repository that was moved know each other.
    RepairFromMain,
    /// Make the worktrees of a main worktree that was moved know it again.
    RepairMovedMain,
    /// Have git list the worktree where it really is.
    RepairLinkedPath,
    Prune,
    /// Forget the entry, or tell git the worktree's new path.
    PruneOrRepair,
    /// Forget the entry whose worktree is gone.
    PruneDuplicate,
    AllowReading,
    /// Use git's own command, and clone separately what git ignores.
    AddWithGit,
    RemoveWithGit,
    TrustOwner,
    UpdateGit,
    /// Let git say what is wrong with its index.
    AskGitStatus,

    CommitFirst,
    /// Give the commit in place of the branch.
    NameCommitAsBranch,
    /// Give no base for a branch that exists, or another name.
    DropBaseOrRename,
    DropBase,
    FindCommit,
    /// Name the branch with its remote, or have git prefer this remote.
    NameRemote(String),
    /// Fetch the branch, or give a base for a new one of its name.
    FetchBranch {
        remote: String,
        branch: String,
        /// The remote's refspecs have it.
        is_followed: bool,
    },
    /// Fetch it, or give a base for a new branch of its name.
    FetchOrBase,
    NameBranch,
    /// Look which pull requests this remote has.
    ListPullRequests(String),
    AddRemote,
    RenameBranch(String),
    /// Work in the worktree that has the branch, or take another branch or none.
    ChooseAnotherBranch,
    CorrectBranchName,
    WaitOrChooseAnotherBranch,
    /// Finish or abandon what git is doing with the branch elsewhere, or take no branch.
    FinishElsewhere(UnfinishedOperation),
    /// Finish or abandon the merge, or leave uncommitted changes behind.
    FinishMergeOrLeaveChanges,
    CommitOrLeaveChanges,
    ChooseAnotherPath,
    /// Let the remote of a partial clone answer.
    GoOnline,
    GiveNewPath,
    /// Find out what changed the worktree meanwhile.
    CheckWorktree,

    AddWithoutConversion,
    StopWriters,
    LeaveDirectory,

    UnlockOrForce,
    CommitOrForce,
    MoveAwayOrForce,
    /// Keep a copy, or have git see the changes and commit them, or force the removal.
    KeepHiddenOrForce(HidingMark),
    /// Finish or abandon what git is doing, or force the removal.
    FinishOrForce(UnfinishedOperation),
    /// Keep this commit with a branch, or force the removal.
    BranchOrForce(String),
    /// Tell git the worktree's new path, or recover what it had and forget the entry.
    RecoverOrForget,
    /// Keep each of several things in its own way, or force the removal.
    SaveEachOrForce,
    /// Move large ignored files out, or force the removal.
    MoveIgnoredOrForce,
    /// Keep the worktree with its data, or force the removal.
    KeepDataOrForce,
    /// Give an age from which also branches without commits of their own count as merged.
    GiveAge,
    MoveNestedOrForce,
    CommitNestedOrForce,
    PushNestedOrForce,
    UnlockNestedOrForce,
    BranchNestedOrForce,
    RepairNestedOrForce,
    RemoveOtherOrForce,

    GiveUrl,
    NameDirectory,
    ReadHelp,
    ChooseAnotherDirectory,
    /// Install a newer git, or do without.
    UpdateGitOrDoWithout,
    AllowFiltersOrDropRequirement,
    ChooseTransportOrDropRequirement,
    ChoosePurposeOrDropRequirement,
    /// Depends on why git failed.
    Transfer(TransferFailure),
    RunAgainUnchanged,
    CreateParent,

    /// Remove worktrees, end programs, or begin the range elsewhere.
    FreePorts,
    /// Remove this file of leases; they are made anew.
    RemoveLeases(PathBuf),
}

impl Remedy {
    /// Returns the stable name, for programs.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

/// Something that git is in the middle of, for which it keeps files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
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
    /// Returns its name, for people.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The mark by which git was told not to look at a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum HidingMark {
    /// `git update-index --skip-worktree`, or a sparse checkout.
    SkipWorktree,
    /// `git update-index --assume-unchanged`.
    AssumeUnchanged,
}

impl HidingMark {
    /// Returns its name in `git update-index`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
