//! The commands, grouped like `calve --help`: each turns arguments into a library's options, and reports into output.

pub(crate) mod bench;
pub(crate) mod db;
pub(crate) mod git;
mod registry;
pub(crate) mod setting_up;
pub(crate) mod trees;
pub(crate) mod worktree;
