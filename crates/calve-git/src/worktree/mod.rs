//! Linked worktrees that are complete: with what git ignores, by the clone engine.

mod add;
mod agent;
mod carry;
mod conversion;
mod convert;
mod donors;
mod index;
mod journal;
mod lfs;
mod list;
mod partial;
mod patterns;
mod place;
mod plan;
mod post_checkout;
mod prune;
mod register;
mod remove;
mod repository;
mod rules;
mod status;
mod submodules;
mod survey;
mod target;
mod tracked;

pub use add::{AddOptions, Added, Changes, Ignored, Planned, Trust, Upcoming, add, add_after, plan};
pub use agent::{ForAgent, finish_for_agent, for_agent, take_back};
pub use carry::Left;
pub use convert::{Converted, convert};
pub use donors::Dependency;
pub use list::{Listed, list};
pub use post_checkout::HookRun;
pub use prune::{Pruned, prune};
pub use remove::{BranchFate, RemoveWorktreeOptions, Removed, remove};
pub use repository::Worktree;
pub(crate) use repository::path_of;
