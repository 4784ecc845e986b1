use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct PushOptions {
    /// The name of the template
    pub(crate) name: String,
    /// The destination: HOST[:PORT]/REPOSITORY[:TAG] [default tag: latest]
    pub(crate) reference: String,
    /// Add a hash of FILE to the tag (repeatable, in order) [default: none]
    ///
    /// The tag becomes TAG-HASH, or key-HASH without a tag.
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Vec<PathBuf>,
    /// Use plain HTTP, for a registry on this machine
    #[arg(long)]
    pub(crate) plain_http: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PullOptions {
    /// The source: HOST[:PORT]/REPOSITORY[:TAG], or with @sha256:DIGEST
    pub(crate) reference: String,
    /// Give the template this name here [default: the last part of the repository]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Pull the template pushed with `--key` for these files [default: none]
    ///
    /// Repeatable, in the order of the push. Exits with 3 if there is none.
    #[arg(long, value_name = "FILE")]
    pub(crate) if_key: Vec<PathBuf>,
    /// Use plain HTTP, for a registry on this machine
    #[arg(long)]
    pub(crate) plain_http: bool,
}
