//! The configuration files of agents, so that they make worktrees with Calve and can ask its server.
//!
//! Members are added to the syntax tree of a file and taken out of it again: everything else stays, with its comments. A file that cannot be
//! changed in this way (with an error, with another value at that place) is left alone.

mod agents;
mod file;
mod json_text;
mod toml_text;

pub use agents::Agent;
pub use file::{Edit, FileChange, FileLeftReason, apply};

use std::path::Path;

/// Whether something is put into the files or taken out of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The settings that an agent needs are added.
    Install,
    /// Exactly that goes.
    Uninstall,
}

/// Finds out what is to become of the files of an agent, in the worktree with this root. Changes nothing.
pub fn plan(agent: Agent, root: &Path, direction: Direction) -> std::io::Result<Vec<FileChange>> {
    agents::parts(agent, root).into_iter().map(|part| file::planned(root, part, direction)).collect()
}
