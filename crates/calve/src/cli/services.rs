use clap::Args;

// No doc comment: it would be the help of `calve up`.
#[derive(Debug, Args)]
pub(crate) struct ServicesArguments {
    /// The services [default: all]
    #[arg(value_name = "SERVICE")]
    pub(crate) names: Vec<String>,
    /// Print the services as JSON on stdout (schema calve.services/1)
    #[arg(long)]
    pub(crate) json: bool,
}

/// Stop the servers of this worktree's services
///
/// The data stays, and the next `calve up` starts servers on it. A server that cannot write its data, as on a full disk, keeps running.
#[derive(Debug, Args)]
pub(crate) struct DownArguments {
    /// Also stop servers that cannot write their data, and lose that data
    #[arg(short, long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) common: ServicesArguments,
}

/// Reset the data of a service to the template in .calve.toml
///
/// Discards this worktree's changes to it, after asking. Restarts the server; its URL changes only with the engine.
#[derive(Debug, Args)]
pub(crate) struct ResetServiceArguments {
    /// The service [default: the only one]
    pub(crate) service: Option<String>,
    /// Reset without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Print the services as JSON on stdout (schema calve.services/1)
    #[arg(long)]
    pub(crate) json: bool,
}
