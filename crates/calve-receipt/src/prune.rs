//! The document of `calve worktree prune`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::UnsavedReceipt;
use crate::values::ReceiptPath;

/// The report of `calve worktree prune`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.worktree-prune/1")]
pub struct WorktreePruneReceipt {
    /// Worktrees that are gone, and that git no longer lists, or would not.
    pub forgotten: Vec<ReceiptPath>,
    /// Worktrees that are not at their paths, and that git still lists; with `--merged` also those that are merged and stay.
    pub kept: Vec<KeptWorktree>,
    /// Trees of killed runs that were removed.
    pub swept: Vec<ReceiptPath>,
    /// Merged worktrees that were removed, or would be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<MergedWorktreeReceipt>,
    /// Data of worktrees that are gone which was removed, or would be. Absent if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<PrunedData>,
}

/// The data of one service of a worktree that is gone.
#[derive(Debug, JsonSchema, Serialize)]
pub struct PrunedData {
    /// The worktree's last path.
    pub worktree: ReceiptPath,
    /// The name of the service.
    pub service: String,
    /// The name of its servers.
    pub server: String,
    /// True if it was removed.
    pub removed: bool,
}

/// A worktree all of whose commits another branch has.
#[derive(Debug, JsonSchema, Serialize)]
pub struct MergedWorktreeReceipt {
    /// Its path.
    pub path: ReceiptPath,
    /// Its branch, which stays; none when HEAD was detached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The branch that has its commits.
    pub merged_into: String,
    /// True if that branch has its changes as one commit, and not its commits.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub squashed: bool,
    /// True if it was removed.
    pub removed: bool,
    /// Ignored files that only it has, and that are moved aside. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsaved: Vec<UnsavedReceipt>,
}

/// A worktree that stays.
#[derive(Debug, JsonSchema, Serialize)]
pub struct KeptWorktree {
    /// The path at which git lists it.
    pub path: ReceiptPath,
    /// Why it stays.
    pub reason: String,
    /// The next step.
    pub hint: String,
    /// Everything that exists only there, if that is the reason. Absent otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsaved: Vec<UnsavedReceipt>,
}
