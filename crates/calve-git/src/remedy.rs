//! What helps against an error: names with what their wording needs. The program puts them into words.

use crate::remote::TransferFailure;

/// What the user can do next.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// Install git, in PATH.
    InstallGit,
    /// Run the same git command in that directory.
    RunGitCommand,
    /// Correct the project's configuration.
    CorrectConfig,
    /// Correct the path of a directory that does not exist.
    CorrectPath,
    /// Permit more open files.
    RaiseOpenFiles,
    /// Check that the path exists, has room, and may be written to.
    CheckPath,
    /// Run it again.
    RunAgain,

    /// Run it inside a repository that has a commit, or make one.
    EnterRepository,
    /// Run it inside a worktree, or name one.
    EnterWorktree,
    /// Run it inside a worktree, or name the one to take files from.
    NameSource,
    /// Name a worktree of the list.
    NameListedWorktree,
    /// Name a linked worktree of the list.
    NameLinkedWorktree,
    /// Make the worktree known to the repository if it was moved, or else make a new one.
    RepairOrAdd,
    /// Make the worktree known to its repository.
    RepairWorktree,
    /// Make the worktrees and a repository that was moved know each other.
    RepairFromMain,
    /// Make the worktrees of a main worktree that was moved know it again.
    RepairMovedMain,
    /// Have git list the worktree where it really is.
    RepairLinkedPath,
    /// Forget the worktree.
    Prune,
    /// Forget the entry, or tell git the worktree's new path.
    PruneOrRepair,
    /// Forget the entry whose worktree is gone.
    PruneDuplicate,
    /// Gain permission to read the path.
    AllowReading,
    /// Use git's own command, and clone separately what git ignores.
    AddWithGit,
    /// Tell git that the owner of the repository is trusted.
    TrustOwner,
    /// Install a newer git.
    UpdateGit,
    /// Let git say what is wrong with its index.
    AskGitStatus,

    /// Make a commit.
    CommitFirst,
    /// Give the commit in place of the branch.
    NameCommitAsBranch,
    /// Give no base for a branch that exists, or another name.
    DropBaseOrRename,
    /// Give no base.
    DropBase,
    /// Look for the commit, or fetch it.
    FindCommit,
    /// Name the branch.
    NameBranch,
    /// Look which pull requests this remote has.
    ListPullRequests(String),
    /// Add a remote.
    AddRemote,
    /// Rename this branch.
    RenameBranch(String),
    /// Work in the worktree that has the branch, or take another branch or none.
    ChooseAnotherBranch,
    /// Give a branch name that git permits.
    CorrectBranchName,
    /// Wait for the other process, or name another branch.
    WaitOrChooseAnotherBranch,
    /// Finish or abandon what git is doing with the branch elsewhere, or take no branch.
    FinishElsewhere(Operation),
    /// Finish or abandon the merge, or leave uncommitted changes behind.
    FinishMergeOrLeaveChanges,
    /// Commit or stash the changes, or leave them behind.
    CommitOrLeaveChanges,
    /// Choose another path, or remove what is there.
    ChooseAnotherPath,
    /// Give the path of a directory that does not exist yet.
    GiveNewPath,
    /// Write the pattern as in `.gitignore`.
    CorrectPattern,
    /// Find out what changed the worktree meanwhile.
    CheckWorktree,

    /// Add worktrees without converting.
    AddWithoutConversion,
    /// Stop the programs that write to the worktree.
    StopWriters,
    /// Leave the directory with this process, or end it.
    LeaveDirectory,

    /// Unlock the worktree, or force the removal.
    UnlockOrForce,
    /// Commit or stash the changes, or force the removal.
    CommitOrForce,
    /// Move what is at the path of another worktree away, or force the removal.
    MoveAwayOrForce,
    /// Keep a copy, or have git see the changes and commit them, or force the removal.
    KeepHiddenOrForce(HiddenBy),
    /// Finish or abandon what git is doing, or force the removal.
    FinishOrForce(Operation),
    /// Keep this commit with a branch, or force the removal.
    BranchOrForce(String),
    /// Recover the staged contents, then forget the entry.
    RecoverStaged,
    /// Push the commits of the submodule, or force the removal.
    PushSubmoduleOrForce,
    /// Find out what the nested repository is, and move it away, or force the removal.
    MoveNestedOrForce,
    /// Commit and push the changes of the nested repository, move it away, or force the removal.
    CommitNestedOrForce,
    /// Push the commits of the nested repository, move it away, or force the removal.
    PushNestedOrForce,
    /// Unlock the nested worktree, or force the removal.
    UnlockNestedOrForce,
    /// Keep the commits of the nested worktree with a branch, or force the removal.
    BranchNestedOrForce,
    /// Make the nested worktree known to its repository, or force the removal.
    RepairNestedOrForce,
    /// Remove the worktree of the nested repository first, or force the removal.
    RemoveOtherOrForce,

    /// Give a URL or path that git understands.
    GiveUrl,
    /// Name the directory to clone into.
    NameDirectory,
    /// Read how the command is used.
    ReadHelp,
    /// Name another directory, or remove that one.
    ChooseAnotherDirectory,
    /// Install a newer git, or do without.
    UpdateGitOrDoWithout,
    /// Have the server support filters, or drop the requirement.
    AllowFiltersOrDropRequirement,
    /// Fetch without a depth, or force it.
    DropDepthOrForce,
    /// Depends on why git failed.
    Transfer(TransferFailure),
    /// Run it again; nothing was left behind.
    RunAgainUnchanged,
    /// Create the parent directory.
    CreateParent,
}

/// Something that git is in the middle of, for which it keeps files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `git rebase`.
    Rebase,
    /// `git rebase`, or `git am`, which keeps its files in the same place.
    RebaseOrAm,
    /// `git merge`.
    Merge,
    /// `git cherry-pick`.
    CherryPick,
    /// `git revert`.
    Revert,
    /// `git bisect`.
    Bisect,
}

impl Operation {
    /// Returns its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rebase => "rebase",
            Self::RebaseOrAm => "rebase or `git am`",
            Self::Merge => "merge",
            Self::CherryPick => "cherry-pick",
            Self::Revert => "revert",
            Self::Bisect => "bisection",
        }
    }
}

/// The mark by which git was told not to look at a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HiddenBy {
    /// `git update-index --skip-worktree`, or a sparse checkout.
    SkipWorktree,
    /// `git update-index --assume-unchanged`.
    AssumeUnchanged,
}

impl HiddenBy {
    /// Returns its name in `git update-index`.
    pub fn name(self) -> &'static str {
        match self {
            Self::SkipWorktree => "skip-worktree",
            Self::AssumeUnchanged => "assume-unchanged",
        }
    }
}
