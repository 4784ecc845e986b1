//! The engine for Windows, which works by path: see docs/windows.md for how that differs from the one for Unix.

#![allow(clippy::disallowed_methods, reason = "every error gets its path and operation here, as `Error::Io`")]

mod clone;
mod compare;
mod delete;
mod facts;
mod file;
mod fill;
mod guard;
mod location;
mod lock;
mod remove;
mod staging;
#[cfg(test)]
mod tests;

// These know nothing of the system, and are the Unix engine's own.
#[path = "../tree/exclude.rs"]
#[allow(dead_code, reason = "one form of a name is of no use here")]
mod exclude;
#[path = "../tree/notes.rs"]
#[allow(dead_code, reason = "not everything is told here")]
mod notes;
#[path = "../tree/pool.rs"]
#[allow(dead_code, reason = "there are no descriptors to count")]
mod pool;

pub use clone::{clone_tree, plan};
pub use facts::probe;
pub use remove::{check_removable, reap, remove_tree, start_reaper};
