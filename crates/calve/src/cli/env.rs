use clap::Args;

use crate::name_parser::NameParser;

/// Print this worktree's environment: ports and service URLs
///
/// A port named `web` in .calve.toml becomes WEB_PORT. Each worktree has ports of its own: the first call leases them, and they stay the
/// worktree's until it is removed. In the main worktree a port has the number in .calve.toml unless another worktree has it. The URL of a
/// service is printed once it has data; `calve up` starts its server.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  eval \"$(calve env)\"                       also as a line of direnv's .envrc
  calve env --format fish | source
  calve env --format dotenv > .env.local     worktrees made from here get their own ports in it
  calve env --format mise > mise.local.toml  likewise

.calve.toml, at the root of the repository:
  [ports]        web = 3000
  [services.db]  template = \"shop\", env = \"DATABASE_URL\"")]
pub(crate) struct EnvArguments {
    /// Print in this format: sh, fish, dotenv, mise
    #[arg(long, value_name = "FORMAT", value_parser = NameParser(&["sh", "fish", "dotenv", "mise"], format), default_value = "sh", hide_possible_values = true)]
    pub(crate) format: EnvFormat,
    /// Replace this worktree's ports first, such as one that is in use
    #[arg(long)]
    pub(crate) renew: bool,
    /// Print the environment as JSON on stdout (schema calve.environment/1)
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum EnvFormat {
    /// Shell commands: the words before and after the name of a set variable, and the word before an unset one.
    Shell([&'static str; 3]),
    /// A file with this name.
    File(&'static str),
}

fn format(name: &str) -> Result<EnvFormat, String> {
    Ok(match name {
        "sh" => EnvFormat::Shell(["export ", "=", "unset "]),
        "fish" => EnvFormat::Shell(["set -gx ", " ", "set -e "]),
        "dotenv" => EnvFormat::File(".env"),
        "mise" => EnvFormat::File("mise.toml"),
        _ => return Err("it is one of: sh, fish, dotenv, mise".into()),
    })
}
