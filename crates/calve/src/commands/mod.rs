//! The commands by the groups of `calve --help`: from arguments to plain options of a library, and from its report to what is printed.

pub(crate) mod bench;
pub(crate) mod db;
pub(crate) mod git;
mod registry;
pub(crate) mod setting_up;
pub(crate) mod trees;
pub(crate) mod worktree;
