use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::registry::{PullOptions, PushOptions};

#[derive(Debug, Subcommand)]
pub(crate) enum TemplateCommand {
    /// Make a template of a directory
    ///
    /// Clones DIR and keeps the clone under NAME, with a manifest of everything in it: type, mode, owner, time, extended attributes, size and
    /// BLAKE3 hash. The hash of the manifest is the template's key: equal trees have equal keys. It appears under its name only
    /// when it is complete and on the disk.
    #[command(after_help = "\
Examples:
  calve template create deps node_modules
  calve cp @deps ../feature/node_modules")]
    Create {
        /// The name: letters, digits, dots, dashes and underscores, at most 48
        name: String,
        /// The directory to copy; never modified
        #[arg(value_name = "DIR")]
        source: PathBuf,
        #[command(flatten)]
        options: MakeOptions,
    },
    /// List the templates
    ///
    /// States: ready; gone (files missing); unmounted (disk not mounted); changed (root or manifest modified); damaged (record unreadable).
    List {
        /// Print the list as JSON on stdout (schema calve.templates/1)
        #[arg(long)]
        json: bool,
    },
    /// Show the key, source, files and manifest of a template
    Show {
        /// The name of the template
        name: String,
        /// Print it as JSON on stdout (schema calve.template/1)
        #[arg(long)]
        json: bool,
    },
    /// Compare a template with its manifest, and list the differences
    ///
    /// Reads every file. Exits with 1 if anything differs. If nothing does, clones of a template that only looked changed (as after a
    /// restore) work again.
    Verify {
        /// The name of the template
        name: String,
        /// Print the result as JSON on stdout (schema calve.template.verify/1)
        #[arg(long)]
        json: bool,
    },
    /// Rebuild a template
    ///
    /// Clones the directory that it was made from, or DIR. A concurrent clone gets the old template or the new one, never a mix.
    #[command(
        mut_arg("exclude", |exclude| exclude.help("Exclude entries, in .gitignore syntax (repeatable) [default: as before]")),
        mut_arg("at", |at| at.help("Keep it in a hidden directory in DIRECTORY [default: as before]"))
    )]
    Refresh {
        /// The name of the template
        name: String,
        /// The new source directory [default: the present one]
        #[arg(value_name = "DIR")]
        source: Option<PathBuf>,
        #[command(flatten)]
        options: MakeOptions,
    },
    /// Remove templates
    ///
    /// Existing clones are unaffected.
    Remove {
        /// The names of the templates
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
        /// Print what was removed as JSON (schema calve.template.remove/1)
        #[arg(long)]
        json: bool,
    },
    Push(PushArguments),
    Pull(PullArguments),
}

#[derive(Debug, Args)]
pub(crate) struct MakeOptions {
    /// Exclude entries, in .gitignore syntax (repeatable) [default: none]
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,
    /// Keep it in a hidden directory in DIRECTORY [default: $CALVE_HOME if that is on DIR's file system, else beside DIR]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) at: Option<PathBuf>,
    /// Print the report as JSON on stdout (schema calve.template.create/1)
    #[arg(long)]
    pub(crate) json: bool,
}

/// Send a template to an OCI registry
///
/// It becomes an ordinary image: layers of tar, compressed by zstd. Layers already in the registry are not sent again. Ownership is not
/// stored. A template with devices, FIFOs, set-user-ID or set-group-ID bits on files, capabilities or access control lists is refused. Uses
/// docker's and podman's credentials, after `docker login` or `podman login`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calve template push deps ghcr.io/team/deps:main
  calve template push --key package-lock.json deps ghcr.io/team/deps:linux-x64
  calve template push --plain-http deps 127.0.0.1:5000/deps")]
pub(crate) struct PushArguments {
    #[command(flatten)]
    pub(crate) push: PushOptions,
    /// Push a full image, not a delta
    #[arg(long)]
    pub(crate) full: bool,
    /// Push a delta to TAG's image, for a new tag [default: the newest of the repository that was pushed or pulled here]
    #[arg(long, value_name = "TAG", conflicts_with = "full")]
    pub(crate) base: Option<String>,
    /// Print the report as JSON on stdout (schema calve.template.push/1)
    #[arg(long)]
    pub(crate) json: bool,
}

/// Receive a template from an OCI registry
///
/// Everything is checked: the digest of each layer, each path, and the whole tree against its manifest. It appears under its name only when it
/// is complete and on the disk. Pulling again from the same repository replaces the template atomically and reuses unchanged
/// files. You own all files.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calve template pull ghcr.io/team/deps:main
  calve template pull --if-key package-lock.json ghcr.io/team/deps:linux-x64
  calve cp @deps node_modules")]
pub(crate) struct PullArguments {
    #[command(flatten)]
    pub(crate) pull: PullOptions,
    /// Keep it in a hidden directory in DIRECTORY [default: $CALVE_HOME]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) at: Option<PathBuf>,
    /// Print the report as JSON on stdout (schema calve.template.pull/1)
    #[arg(long)]
    pub(crate) json: bool,
}
