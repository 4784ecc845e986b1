//! The command lines of `calve up`, `down`, `status` and `logs`.

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

/// End the servers of this worktree's services
///
/// The data stays, and the next `calve up` starts servers on it. A server that cannot write its data, on a full disk for example, goes on.
#[derive(Debug, Args)]
pub(crate) struct DownArguments {
    /// End servers that cannot write their data too: what they have not written is lost
    #[arg(short, long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) common: ServicesArguments,
}

/// Put the data of a service back to what its template has
///
/// What was written to it in this worktree is lost, so it asks first. The server ends and is started again; its URL stays the same.
#[derive(Debug, Args)]
pub(crate) struct ResetServiceArguments {
    /// The service [default: the only one]
    #[arg(value_name = "SERVICE")]
    pub(crate) service: Option<String>,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Print the services as JSON on stdout (schema calve.services/1)
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show the services of this worktree: state, template, URL
#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Print the services as JSON on stdout (schema calve.services/1)
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print the last lines that a service of this worktree has logged
#[derive(Debug, Args)]
pub(crate) struct LogsArguments {
    /// The service [default: the only one]
    #[arg(value_name = "SERVICE")]
    pub(crate) service: Option<String>,
}
