//! Data that outlives its servers: a directory for each service, with the data, its description, a log and two locks.
//!
//! `turn` is held while the service is started, ended, cloned or removed. The supervisor and every process of the
//! server hold `lock`, so that no second server starts on data that the last process of another may still write to.

mod create;
mod data;
mod position;
mod removal;
mod reset;
mod run;

pub use create::{ServiceData, ServiceOrigin, create, template_with_program, usable_template};
pub(crate) use create::{copy_running, start_copy};
pub use data::{
    Service, ServiceWorktree, find, has_newer_template, new_worktree_id, services, services_of, set_worktree,
    unreadable,
};
pub use position::is_written;
pub(crate) use position::{note_start, position, set_promoted, was_started};
pub use removal::{PendingRemoval, begin_removal, finish_removals};
pub use reset::reset;
pub(crate) use run::hold;
pub use run::{LossRule, start, stop};
