//! `calve worktree`, against the real git.

mod add;
mod agents;
mod bad_input;
mod bench;
mod carry;
mod check;
mod donors;
mod env_file;
mod kinds;
mod lost;
mod mcp;
mod merged;
mod messages;
mod outlived;
mod parallel;
mod partial;
mod ports;
mod remove;
mod repo;
mod services;
mod services_killed;
mod spares;
mod subvolume;
mod typed;
mod untrusted;
mod whole_spares;
