use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct PushOptions {
    /// The name of the template
    pub(crate) name: String,
    /// The destination: HOST[:PORT]/REPOSITORY[:TAG] [default tag: latest]
    pub(crate) reference: String,
    /// Add a hash of FILE's contents to the tag: TAG-HASH, or key-HASH without a tag (repeatable; order counts)
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Vec<PathBuf>,
    /// Reach a registry on this machine without encryption
    #[arg(long)]
    pub(crate) plain_http: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PullOptions {
    /// The source: HOST[:PORT]/REPOSITORY[:TAG], or with @sha256:DIGEST
    pub(crate) reference: String,
    /// The template's name here [default: the last part of the repository]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Ask for the template pushed with `--key` and the same files, or exit with 3 (repeatable; order counts)
    #[arg(long, value_name = "FILE")]
    pub(crate) if_key: Vec<PathBuf>,
    /// Reach a registry on this machine without encryption
    #[arg(long)]
    pub(crate) plain_http: bool,
}
