//! The command line of `calve mcp`.

use std::path::PathBuf;

use clap::Args;

/// Serve worktrees and databases to a coding agent (MCP)
///
/// Speaks the protocol on stdin and stdout, so that an agent starts it and ends it. Its tools list, create, show and remove worktrees, return
/// the URLs of their databases, reset these, and show disk usage, in the repositories that are named here. No tool runs a command of the
/// agent's choice. Removing and resetting take two calls: a plan, then its confirmation.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calve hook install claude                      has Claude Code start it
  calve mcp --repository app --repository api    serve two repositories")]
pub(crate) struct McpArguments {
    /// A directory in a repository to serve (may be given several times)
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) repository: Vec<PathBuf>,
    /// Maximum size of a tool's result in bytes
    #[arg(long, value_name = "N", default_value_t = calve_agent::mcp::RESULT_BYTES, value_parser = result_bytes)]
    pub(crate) result_bytes: usize,
}

fn result_bytes(text: &str) -> Result<usize, String> {
    let number: Option<usize> = text.parse().ok();
    number
        .filter(|number| (500..=1_000_000).contains(number))
        .ok_or_else(|| "it is a number from 500 to 1000000".into())
}
