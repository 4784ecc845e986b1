//! The program as its users meet it: what it prints, how it ends, and what it leaves behind when things go wrong.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "clippy takes functions outside `#[test]` for other code")]

mod bad_input;
mod bench_copy;
mod bench_git;
mod bench_write;
mod completions;
mod contract;
mod documents;
mod faults;
mod git;
mod hints;
mod hooks;
mod install_deps;
mod json_errors;
mod kill;
mod limits;
mod manual;
mod messages;
mod packaging;
mod probe;
mod process;
mod program;
mod rm;
mod run;
mod shell_init;
mod space;
mod spares;
mod spares_watch;
mod spot;
mod template;
mod template_registry;
mod terminal;
mod unprivileged;
mod volume;
mod worktree;
mod worktree_projects;
