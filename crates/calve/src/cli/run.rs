use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// Run a command in a throw-away copy of a directory
///
/// CMD sees a writable copy of DIR at DIR's own path. No other process sees CMD's writes. When CMD has ended, Calve prints how many
/// files it changed and drops the changes, unless you pass --apply or --keep. On a terminal, without any of these options, it asks
/// whether to apply, keep or discard them. Outside of DIR, CMD sees and writes the real files; for a linked worktree of git, that is also
/// where commits go. The exit code is CMD's, or 128 plus the number of the signal that ended it. Starting takes milliseconds, whatever the
/// size of DIR: the copy is an overlay in a mount namespace. Requires Linux; needs no privileges where user namespaces are allowed.
///
/// This keeps mistakes away from DIR. It is not a security boundary: a hostile CMD can write to anything else that you can write to.
///
/// Do not change DIR while CMD runs. Background processes keep their copy until they exit. `git apply` refuses a diff with binary files.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Run CMD in a copy of DIR [default: the repository around the working directory, else the working directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) tree: Option<PathBuf>,
    /// Save DIR as CMD left it to DST, outside DIR, even if CMD fails [default: ask on a terminal, else discard]
    #[arg(long, value_name = "DST")]
    pub(crate) keep: Option<PathBuf>,
    /// Make the changes in DIR itself, all or none, if CMD succeeds
    ///
    /// If other programs changed the same entries, keeps a copy beside DIR instead, and fails.
    #[arg(long, conflicts_with = "keep")]
    pub(crate) apply: bool,
    /// Drop the changes without asking (the default without a terminal)
    #[arg(long, conflicts_with_all = ["keep", "apply"])]
    pub(crate) discard: bool,
    /// Print the changes as JSON (schema calve.run/1), CMD's output on stderr
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a diff of text files for `git apply`, CMD's output on stderr
    #[arg(long, conflicts_with = "json")]
    pub(crate) diff: bool,
    /// The command to run
    #[arg(value_name = "CMD", last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}
