//! One file per command: from its arguments to plain options of the library, and from its report to what is printed.

pub(crate) mod ahead;
pub(crate) mod bench;
pub(crate) mod bench_db;
pub(crate) mod bench_git;
pub(crate) mod completions;
pub(crate) mod cp;
pub(crate) mod db;
pub(crate) mod dedupe;
pub(crate) mod du;
pub(crate) mod env;
pub(crate) mod git;
pub(crate) mod hook;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod probe;
pub(crate) mod prompt;
pub(crate) mod reap;
mod registry;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod service_template;
pub(crate) mod services;
pub(crate) mod shell_init;
pub(crate) mod spares;
pub(crate) mod template;
pub(crate) mod up;
pub(crate) mod volume;
pub(crate) mod worktree;

use std::path::PathBuf;

/// Returns the places that are never removed or replaced: the user's home directory.
fn protected() -> Vec<PathBuf> {
    std::env::home_dir().into_iter().filter(|home| home.is_absolute()).collect()
}

/// Returns the number of threads set by a test that counts calls or memory.
fn threads_of_a_test() -> Option<std::num::NonZeroUsize> {
    std::env::var("CALVE_TEST_THREADS").ok()?.parse().ok()
}
