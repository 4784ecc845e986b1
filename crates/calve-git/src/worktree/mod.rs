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

pub use add::add_after;
pub use add::fill::{FillReport, fill};
pub use add::ignored::left_behind;
pub use add::options::{AddOptions, AddWarning, IgnoredEntries, UncommittedChanges};
pub use add::plan::plan;
pub use add::post_checkout::HookRun;
pub use add::report::{AddDetails, AddIntent, AddReport, CarriedFiles, Dependency, NewWorktree, PlanDetails};
pub use add::spares::of_worktree as spare_of_worktree;
pub use add::target::{AddTarget, BranchStart};
pub use agent::{AgentBranch, delete_made_branch, finish_for_agent, for_agent};
pub use agent_turn::AgentTurn;
pub use convert::{ConvertReport, convert};
pub use list::{WorktreeInfo, list};
pub use merged::{JudgedWorktrees, MergedWorktree, is_still_merged, merged};
pub use processes::{WorktreeProcess, processes};
pub use prune::{KeptEntry, PruneReport, plan_prune, prune};
pub use remove::{
    BranchFate, GoingBranch, Meanwhile, RemovalPlan, RemovalSteps, RemoveWorktreeOptions, WorktreeRemoveReport,
    find_all, plan_removal, remove,
};
pub use tracked::{NotClonedFiles, NotClonedReason, TrackedCounts};
pub use unsaved::{KeptFiles, UnsavedReceipt};

pub use crate::repository::status::WorktreeState;
pub use crate::repository::{Worktree, list as list_of_git};
pub use crate::unsaved_item::{IgnoredFile, LooseCommits, UnsavedItem};
