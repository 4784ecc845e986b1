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
    /// A directory in a repository to serve (repeatable)
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) repository: Vec<PathBuf>,
}
