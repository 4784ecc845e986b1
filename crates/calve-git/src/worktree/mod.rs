//! Complete linked worktrees: with what git ignores, by the clone engine.

mod add;
mod agent;
mod agent_turn;
mod convert;
mod list;
mod merged;
mod processes;
mod prune;
mod registration;
mod remove;
mod status;
mod tracked;
mod unsaved;

pub use add::fill::{FillReport, fill};
pub use add::ignored::dependencies::Dependency;
pub use add::ignored::{LeftBehindReason, LeftEntry};
pub use add::post_checkout::HookRun;
pub use add::spares::of_worktree as spare_of_worktree;
pub use add::target::BranchStart;
pub use add::{
    AddIntent, AddOptions, AddPlan, AddReport, AddWarning, IgnoredEntries, Trust, UncommittedChanges, add, add_after,
    plan,
};
pub use agent::{AgentBranch, finish_for_agent, for_agent, take_back};
pub use agent_turn::AgentTurn;
pub use convert::{ConvertReport, convert};
pub use list::{WorktreeInfo, list};
pub use merged::{MergedWorktree, is_still_merged, merged};
pub use processes::{WorktreeProcess, processes};
pub use prune::{KeptEntry, PruneReport, plan_prune, prune};
pub use remove::{
    BranchFate, GoingBranch, Meanwhile, NoSteps, RemovalPlan, RemovalSteps, RemoveWorktreeOptions,
    WorktreeRemoveReport, find_all, plan_removal, remove,
};
pub use tracked::NotClonedReason;
pub use unsaved::KeptFiles;

pub use crate::repository::Worktree;
pub use crate::repository::state::WorktreeState;
pub use crate::unsaved_item::{IgnoredFile, LooseCommits, UnsavedItem};
