//! The arguments of `calve run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// Run a command in a throw-away copy of a directory
///
/// CMD sees a writable copy of DIR at DIR's own path. What it writes there is seen by nobody else, and is dropped when CMD has ended,
/// unless you pass `--apply` or `--keep`; a line on stderr counts it. On a terminal, without any of these options, Calve then asks what to do with it.
/// Everything outside of DIR is as always. The exit code is CMD's; 128 and the signal's number if a signal ended it. It takes
/// milliseconds whatever the size of DIR: it is an overlay in a mount namespace, which needs Linux, and no privilege where the system
/// lets users have namespaces.
///
/// This keeps mistakes away from DIR. It is no security boundary: a hostile CMD can write to anything else that you can write to.
///
/// Nobody should change DIR while CMD runs. Processes that CMD leaves behind keep their copy until they end.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The directory; by default the repository around the working directory, else the working directory. May be given several times
    #[arg(long, value_name = "DIR")]
    pub(crate) tree: Vec<PathBuf>,
    /// Afterwards make a complete, independent copy of DIR as CMD left it, also if CMD failed. DST is outside of DIR
    #[arg(long, value_name = "DST")]
    pub(crate) keep: Option<PathBuf>,
    /// Afterwards make CMD's changes in DIR itself, all or none of them, if CMD succeeded. Refused, with a copy kept beside DIR, if somebody else
    /// has changed the same entries meanwhile
    #[arg(long, conflicts_with = "keep")]
    pub(crate) apply: bool,
    /// Drop the changes without asking, which is what happens anyway where there is no terminal
    #[arg(long, conflicts_with_all = ["keep", "apply"])]
    pub(crate) discard: bool,
    /// `none`: CMD reaches no network, only a loopback device of its own
    #[arg(long, value_name = "NETWORK", value_parser = ["none"], hide_possible_values = true)]
    pub(crate) net: Option<String>,
    /// Start a database server of this template for CMD, as `calve db run` does; its URL is in DATABASE_URL
    #[arg(long, value_name = "TEMPLATE")]
    pub(crate) db: Option<String>,
    /// Print what CMD changed as JSON on stdout (schema calve.run/1). What CMD prints goes to stderr
    #[arg(long)]
    pub(crate) json: bool,
    /// Print what CMD changed in text files as a unified diff on stdout, for `git apply`. What CMD prints goes to stderr
    #[arg(long, conflicts_with = "json")]
    pub(crate) diff: bool,
    /// Print nothing but errors, and what CMD prints
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// What to run
    #[arg(value_name = "CMD", last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}
