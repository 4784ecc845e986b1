//! Linked worktrees that are complete: with what git ignores, by the clone engine.

mod add;
mod agent;
mod convert;
mod list;
mod prune;
mod registration;
mod remove;
mod repository;
mod standing;
mod status;
mod tracked;
mod unsaved;

pub use add::ignored::dependencies::Dependency;
pub use add::ignored::{Left, LeftReason};
pub use add::post_checkout::HookRun;
pub use add::{AddOptions, Added, Changes, Ignored, Planned, Trust, Upcoming, Warning, add, add_after, plan};
pub use agent::{ForAgent, finish_for_agent, for_agent, take_back};
pub use convert::{Converted, convert};
pub use list::{Listed, list};
pub use prune::{Kept, Pruned, prune};
pub use remove::{BranchFate, RemoveWorktreeOptions, Removed, find_all, plan_removal, remove};
pub(crate) use repository::Repository;
pub use repository::Worktree;
pub(crate) use repository::path_of;
pub use standing::Standing;
pub use tracked::NotCloned;
