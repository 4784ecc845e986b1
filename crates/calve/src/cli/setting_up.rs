use clap::Args;

use super::db::ENGINES;

/// Write .calve.toml: the ports and the database of each worktree
///
/// Without options it asks on a terminal, and elsewhere writes only the port `web`. The file goes to the root of the worktree that you are in.
/// Never changes an existing one.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calve init
  calve init --port web=3000 --engine postgres --create 'npm run migrate'")]
pub(crate) struct InitArguments {
    /// Add a port of a program that you run, such as web=3000 (repeatable) [default: asked for; without a terminal web=3000]
    #[arg(long = "port", value_name = "NAME=NUMBER")]
    pub(crate) ports: Vec<String>,
    /// Add a database [default: asked for; without a terminal none]
    #[arg(long, value_name = "ENGINE", value_parser = ENGINES)]
    pub(crate) engine: Option<String>,
    /// Fill the database, at DATABASE_URL or REDIS_URL, with CMD [default: none]
    #[arg(long, value_name = "CMD", requires = "engine")]
    pub(crate) create: Option<String>,
}
