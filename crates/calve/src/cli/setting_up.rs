use clap::Args;

use super::db::ENGINES;

/// Write .calve.toml: the ports and the database of each worktree
///
/// Without options it asks on a terminal, and elsewhere writes only the port `web`. The file goes to the root of the worktree that you are in. An
/// existing one is left alone.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calve init
  calve init --port web=3000 --engine postgres --create 'npm run migrate'")]
pub(crate) struct InitArguments {
    /// A port of a program that you run, such as web=3000 (repeatable) [default: asked for; without a terminal web=3000]
    #[arg(long = "port", value_name = "NAME=NUMBER")]
    pub(crate) ports: Vec<String>,
    /// The database [default: asked for; without a terminal none]
    #[arg(long, value_name = "ENGINE", value_parser = ENGINES)]
    pub(crate) engine: Option<String>,
    /// The command that fills the database, which finds its URL in DATABASE_URL (REDIS_URL) [default: it is empty]
    #[arg(long, value_name = "CMD", requires = "engine")]
    pub(crate) create: Option<String>,
}
