//! The engine for Windows, which works by path: see docs/windows.md for how that differs from the one for Unix.

#![allow(clippy::disallowed_methods, reason = "every error gets its path and operation here, as `Error::Io`")]

mod compare;
mod delete;
mod facts;
mod file;
mod fill;
mod guard;
mod location;
mod lock;
mod remove;
mod source;
mod stage;
mod staging;
#[cfg(test)]
mod tests;

pub(crate) use crate::sys::Identity;
pub(crate) use delete::sweep_staged;
pub use facts::probe;
pub(crate) use guard::check_replaceable;
pub(crate) use location::Location;
pub use remove::{check_removable, reap, remove_tree, start_reaper};
pub(crate) use source::Source;
pub use source::with_source;
pub(crate) use stage::StagedTree;
