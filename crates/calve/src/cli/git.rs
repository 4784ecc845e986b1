use std::ffi::OsString;
use std::path::PathBuf;

use calve_git::remote::{Property, Purpose};
use clap::{Args, Subcommand};

use crate::name_parser::NameParser;

#[derive(Debug, Subcommand)]
pub(crate) enum GitCommand {
    Clone(GitCloneArguments),
    Fetch(GitFetchArguments),
    Advise(GitAdviseArguments),
}

/// Clone a repository full, shallow or partial, by purpose
///
/// Chooses a full, a shallow or a partial clone, runs git, and verifies that the server did what it was asked: git itself succeeds when a
/// server ignores a filter and sends everything. Records the purpose in the clone (calve.purpose), for `calve git fetch`. DIR appears when
/// the clone is complete, and not at all if it fails or is interrupted. Leaves submodules to `git submodule`.
///
/// Uses credentials in an https URL, but neither stores nor prints them.
#[derive(Debug, Args)]
#[command(after_help = "\
Purposes:
  dev      long-lived, fetched into: full; with --sparse blobless
  ci       one commit, thrown away: --depth=1
  history  a build that needs the history: --filter=blob:none
  blobs    long-lived, with large files: --filter=blob:none

Examples:
  calve git clone https://example.org/project.git
  calve git clone --for ci --rev \"$COMMIT\" https://example.org/project.git build
  calve git clone --sparse docs --sparse site git@example.org:project.git
  calve git clone -n --for history https://example.org/project.git     say how, and do nothing

Exit codes: 0 done, 1 failed, 2 usage, 3 a requirement is not met (nothing made), 130 interrupted.")]
pub(crate) struct GitCloneArguments {
    /// The source: an https, ssh, git or file URL, HOST:PATH, or a directory
    pub(crate) url: OsString,
    /// The destination [default: the last part of URL]
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Clone for this purpose: dev, ci, history, blobs [default: ci if CI=true is set, else dev]
    #[arg(long = "for", value_name = "PURPOSE", value_parser = NameParser(Purpose::NAMES, purpose), hide_possible_values = true)]
    pub(crate) purpose: Option<Purpose>,
    /// Check out this branch or tag [default: the remote's HEAD]
    #[arg(long, value_name = "B", conflicts_with = "rev")]
    pub(crate) branch: Option<String>,
    /// Check out this commit, given by its full id [default: the remote's HEAD]
    #[arg(long, value_name = "OID")]
    pub(crate) rev: Option<String>,
    /// Check out this directory and its ancestors' own files (repeatable) [default: everything]
    #[arg(long, value_name = "PATH")]
    pub(crate) sparse: Vec<String>,
    /// Fail (exit code 3) unless the server honours this: filter, depth [default: none]
    #[arg(long, value_name = "PROPERTY", value_parser = NameParser(&["filter", "depth"], property), hide_possible_values = true)]
    pub(crate) require: Vec<Property>,
    /// Say what would be done, and do nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Print the receipt as JSON on stdout (schema calve.git-clone/1)
    #[arg(long)]
    pub(crate) json: bool,
}

/// Fetch into a clone at the lowest cost
///
/// Fetches from the remote `origin`, and leaves the working tree alone. Never passes a depth to git, which costs many times a plain fetch, and
/// cuts the history off.
#[derive(Debug, Args)]
pub(crate) struct GitFetchArguments {
    /// Branches, tags or commits to fetch [default: what the clone follows]
    #[arg(value_name = "REF")]
    pub(crate) references: Vec<String>,
    /// Fetch into this clone
    #[arg(short = 'C', value_name = "DIR", default_value = ".")]
    pub(crate) directory: PathBuf,
    /// Say what would be done, and do nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Print the receipt as JSON on stdout (schema calve.git-fetch/1)
    #[arg(long)]
    pub(crate) json: bool,
}

/// Advise which kind of clone suits which job, from measurements
///
/// Says which recipe suits which purpose, after how many fetches a shallow clone stops paying off, and what a fleet of jobs costs the server.
/// Every sentence names the numbers behind it: those of `calve bench git`, or the published ones.
#[derive(Debug, Args)]
pub(crate) struct GitAdviseArguments {
    /// Read the output of `calve bench git --json` [default: the published numbers]
    #[arg(long, value_name = "FILE")]
    pub(crate) bench: Option<PathBuf>,
    /// Assume N jobs a day
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) jobs: u64,
    /// Print the advice as JSON on stdout (schema calve.git-advice/1)
    #[arg(long)]
    pub(crate) json: bool,
}

fn purpose(name: &str) -> Result<Purpose, String> {
    name.parse().map_err(|_| "the purposes are dev, ci, history and blobs".into())
}

fn property(name: &str) -> Result<Property, String> {
    name.parse().map_err(|_| "the properties are filter and depth".into())
}
