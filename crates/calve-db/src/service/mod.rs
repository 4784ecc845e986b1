//! Data that outlives its servers: a directory below `services` for each, with the data, its description, a log and two locks.
//!
//! `turn` is held while it is started, ended, cloned or removed; `lock` by the supervisor and by every process of the server, so that no second
//! server is started on data which the last process of another one may still write to.

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
pub(crate) use position::{note_first, position, set_promoted, was_started};
pub use removal::{PendingRemoval, begin_removal, finish_removals};
pub use reset::reset;
pub(crate) use run::hold;
pub use run::{LossRule, start, stop};
