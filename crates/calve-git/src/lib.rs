//! Working copies for git: worktrees with what git ignores, and clones from a URL.
//!
//! The library never prints. It reads PATH, for git, but no other environment or configuration of its own accord.

pub mod advise;
mod config;
mod dependency_names;
mod directory;
pub mod environment;
mod error;
pub mod escape;
mod file_lock;
mod foreign_variables;
mod git;
pub mod hooks;
mod identity;
mod nesting;
mod paths;
mod place;
mod redact;
mod remedy;
pub mod remote;
mod repository;
mod settings;
mod transfer_failure;
mod trust;
mod unsaved_item;
pub mod worktree;

pub use config::{
    Config, ENGINES, Hooks, MOST_STANDBYS, SHARED as SHARED_CONFIG, Secrets, ServiceConfig, SparesRequest,
    TemplateRecipe,
};
pub use error::{Error, Result};
pub use foreign_variables::configured_variables;
pub use git::Git;
pub use nesting::Nesting;
pub use remedy::{HidingMark, Remedy, UnfinishedOperation};
pub use repository::provenance::{provenance_of, trust_commit};
pub use trust::Provenance;
