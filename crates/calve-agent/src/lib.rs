//! Worktrees for coding agents: a Model Context Protocol server, and the agents' configuration files. The library
//! prints only protocol messages, and requires Unix.

pub mod configuration;
pub mod mcp;
