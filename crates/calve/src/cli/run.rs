use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// Run a command in a throw-away copy of a directory
///
/// CMD sees a writable copy of DIR at DIR's own path. Nobody else sees what CMD writes there. When CMD has ended, Calve prints how many
/// files it changed and drops the changes, unless you pass --apply or --keep. On a terminal, without any of these options, it asks
/// whether to apply, keep or discard them. Outside of DIR, CMD sees and writes the real files; for a linked worktree of git, that is also
/// where commits go. The exit code is CMD's, or 128 plus the number of the signal that ended it. Starting takes milliseconds, whatever the
/// size of DIR: the copy is an overlay in a mount namespace. This needs Linux, and no privileges if the system lets users make namespaces.
///
/// This keeps mistakes away from DIR. It is no security boundary: a hostile CMD can write to anything else that you can write to.
///
/// Nobody should change DIR while CMD runs. Processes that CMD leaves behind keep their copy until they end.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The directory [default: the repository around the working directory, else the working directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) tree: Option<PathBuf>,
    /// Keep DIR as CMD left it, even if CMD failed, as an independent copy DST outside of DIR
    #[arg(long, value_name = "DST")]
    pub(crate) keep: Option<PathBuf>,
    /// Make the changes in DIR itself, all or none, if CMD succeeds. If somebody else changed the same entries meanwhile, keep a
    /// copy beside DIR instead, and fail
    #[arg(long, conflicts_with = "keep")]
    pub(crate) apply: bool,
    /// Drop the changes without asking (the default without a terminal)
    #[arg(long, conflicts_with_all = ["keep", "apply"])]
    pub(crate) discard: bool,
    /// Print the changes as JSON on stdout (schema calve.run/1); CMD's output goes to stderr
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the changes of text files as a diff for `git apply`, which refuses it if binary files changed; CMD's output goes to stderr
    #[arg(long, conflicts_with = "json")]
    pub(crate) diff: bool,
    /// The command to run
    #[arg(value_name = "CMD", last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}
