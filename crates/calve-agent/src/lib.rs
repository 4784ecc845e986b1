//! Worktrees for coding agents: a server of the Model Context Protocol, and the configuration files of agents.
//!
//! The library prints nothing but what the protocol asks for. It is for Unix.

pub mod configuration;
pub mod mcp;
