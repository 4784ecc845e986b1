//! Options of `calve template` and `calve db template` for OCI registries.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct PushOptions {
    /// The name of the template
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The destination: HOST[:PORT]/REPOSITORY[:TAG]; the tag is `latest` if none is named
    #[arg(value_name = "REFERENCE")]
    pub(crate) reference: String,
    /// Add a hash of what FILE contains to the tag: TAG-HASH, or key-HASH without a tag (repeatable, the order counts)
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) transfer: TransferOptions,
}

#[derive(Debug, Args)]
pub(crate) struct PullOptions {
    /// The source: HOST[:PORT]/REPOSITORY[:TAG], or with @sha256:DIGEST
    #[arg(value_name = "REFERENCE")]
    pub(crate) reference: String,
    /// The template's name here [default: the last part of the repository]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Ask for the template that was pushed with `--key` and the same files (repeatable, the order counts); exit with 3 if there is none
    #[arg(long, value_name = "FILE")]
    pub(crate) if_key: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) transfer: TransferOptions,
}

#[derive(Debug, Args)]
pub(crate) struct TransferOptions {
    /// Reach the registry without encryption: only one on this machine
    #[arg(long)]
    pub(crate) plain_http: bool,
}
