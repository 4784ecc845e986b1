//! The command line of `calve spares`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum SparesCommand {
    Add(AddArguments),
    List(ListArguments),
    Refill(RefillArguments),
    Pause(PauseArguments),
    Remove(RemoveArguments),
    /// Track changes to directories with spares, so a claim need not check every file
    ///
    /// Runs until Ctrl-C; one process per user is enough. It records changes in those directories, with at most a quarter of the user's
    /// inotify watches, and reports them to `calve cp` and `calve worktree add`, which check anything uncertain themselves. Linux only.
    Watch,
}

/// Keep spares of a directory ready, and build them now
///
/// `calve cp SRC DST` then hands a spare over, if DST is on the same file system as the spares. First it makes sure that the spare equals SRC:
/// it compares every entry with what was recorded of it, and clones again what has changed. The next spare is built in the background.
///
/// Spares are kept under $CALVE_HOME if that is on SRC's file system, and otherwise in a hidden directory beside SRC. Where files cannot
/// share their blocks, as on ext4, a spare takes as much space as SRC, and is only built while a fifth of the disk stays free.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calve spares add node_modules
  calve spares add --count 4 node_modules
  calve spares add --watch node_modules              handed over without comparing every entry
  calve spares add --at /mnt/scratch node_modules    for clones to /mnt/scratch
  calve spares add --worktree                        for `calve worktree add` in this repository")]
pub(crate) struct AddArguments {
    /// The directory that will be cloned, or @NAME for a template
    #[arg(value_name = "SRC", required_unless_present = "worktree")]
    pub(crate) src: Option<PathBuf>,
    /// Keep spares of the whole git worktree that SRC is in (by default the current directory), for `calve worktree add`
    #[arg(long, conflicts_with_all = ["exclude", "one_file_system"])]
    pub(crate) worktree: bool,
    /// The number to keep ready
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) count: NonZeroUsize,
    /// Keep them in a hidden directory in DIR
    #[arg(long, value_name = "DIR")]
    pub(crate) at: Option<PathBuf>,
    /// Have each clone start `calve spares watch` in the background, unless it runs; it ends when the spares are removed (Linux)
    #[arg(long)]
    pub(crate) watch: bool,
    /// Leave out entries that match: for `calve cp` with the same --exclude (may be given several times)
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,
    /// Leave other file systems below SRC out: for `calve cp` with the same option
    #[arg(short = 'x', long)]
    pub(crate) one_file_system: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// List the spares, their state and what they cost
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Print the list as JSON on stdout (schema calve.spares/1)
    #[arg(long)]
    pub(crate) json: bool,
}

/// Build the spares that are missing, and delete those that cannot be used any more
///
/// With SRC, only of that; building goes on if it was paused.
#[derive(Debug, Args)]
pub(crate) struct RefillArguments {
    /// The directory that will be cloned, or @NAME for a template
    #[arg(value_name = "SRC")]
    pub(crate) src: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Build no more spares of a directory until `calve spares refill SRC`
///
/// Those that are ready are still handed over.
#[derive(Debug, Args)]
pub(crate) struct PauseArguments {
    /// The directory that will be cloned, or @NAME for a template
    #[arg(value_name = "SRC")]
    pub(crate) src: PathBuf,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Delete the spares of a directory, and build no more
#[derive(Debug, Args)]
pub(crate) struct RemoveArguments {
    /// The directory that will be cloned, or @NAME for a template
    #[arg(value_name = "SRC")]
    pub(crate) src: PathBuf,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Output {
    /// Print the spares as JSON on stdout (schema calve.spares/1)
    #[arg(long)]
    pub(crate) json: bool,
}
