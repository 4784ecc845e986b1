//! One file per command: from its arguments to plain options of the library, and from its report to what is printed.

#[cfg(unix)]
pub(crate) mod ahead;
#[cfg(unix)]
pub(crate) mod awaited;
#[cfg(unix)]
pub(crate) mod bench;
#[cfg(unix)]
pub(crate) mod bench_db;
#[cfg(unix)]
pub(crate) mod bench_git;
#[cfg(unix)]
mod bench_report;
pub(crate) mod completions;
pub(crate) mod cp;
#[cfg(unix)]
pub(crate) mod db;
#[cfg(unix)]
pub(crate) mod dedupe;
#[cfg(unix)]
pub(crate) mod du;
#[cfg(unix)]
pub(crate) mod env;
#[cfg(unix)]
pub(crate) mod git;
#[cfg(unix)]
pub(crate) mod hook;
pub(crate) mod man;
#[cfg(unix)]
pub(crate) mod mcp;
#[cfg(unix)]
mod pending;
pub(crate) mod probe;
#[cfg(unix)]
pub(crate) mod prompt;
pub(crate) mod reap;
#[cfg(unix)]
mod registry;
#[cfg(unix)]
pub(crate) mod reshare;
pub(crate) mod rm;
#[cfg(unix)]
pub(crate) mod run;
#[cfg(unix)]
pub(crate) mod services;
#[cfg(unix)]
pub(crate) mod shell_init;
#[cfg(unix)]
pub(crate) mod spares;
#[cfg(unix)]
pub(crate) mod template;
#[cfg(unix)]
pub(crate) mod up;
#[cfg(unix)]
pub(crate) mod volume;
#[cfg(unix)]
pub(crate) mod worktree;

use std::path::PathBuf;

/// Returns the places that are never removed or replaced: the user's home directory.
fn protected() -> Vec<PathBuf> {
    std::env::home_dir().into_iter().filter(|home| home.is_absolute()).collect()
}
