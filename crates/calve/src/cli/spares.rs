use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum SparesCommand {
    Add(AddArguments),
    /// List spares with their state and disk cost
    List {
        /// Print the list as JSON on stdout (schema calve.spares/1)
        #[arg(long)]
        json: bool,
    },
    /// Build missing spares, and delete unusable ones
    ///
    /// With SRC, builds only its spares, and resumes paused building.
    Refill {
        /// The directory that will be cloned, or @NAME for a template [default: all that have spares]
        src: Option<PathBuf>,
        #[command(flatten)]
        output: Output,
    },
    /// Stop building spares of a directory until `calve spares refill`
    ///
    /// Ready spares are still handed over.
    Pause(SourceArguments),
    /// Delete the spares of a directory, and stop building them
    Remove(SourceArguments),
    /// Track changes to directories with spares, so clones check less
    ///
    /// Runs until Ctrl-C; one process per user is enough. It records changes in those directories, with at most a quarter of the user's
    /// inotify watches, and reports them to `calve cp` and `calve worktree add`, which re-check anything uncertain. Linux only.
    Watch,
}

/// Keep spares of a directory ready, and build them now
///
/// `calve cp SRC DST` then hands a spare over, if DST is on the same file system as the spares. First it makes sure that the spare equals SRC:
/// it compares every entry with its record, and clones changed entries again. The next spare is built in the background.
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
    /// Keep spares of SRC's whole git worktree, for `calve worktree add` [default SRC: .]
    #[arg(long, conflicts_with_all = ["exclude", "one_file_system"])]
    pub(crate) worktree: bool,
    /// Keep N spares ready
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) count: NonZeroUsize,
    /// Keep them in a hidden directory in DIR [default: $CALVE_HOME if that is on SRC's file system, else beside SRC]
    #[arg(long, value_name = "DIR")]
    pub(crate) at: Option<PathBuf>,
    /// Let clones start `calve spares watch` in the background (Linux)
    #[arg(long)]
    pub(crate) watch: bool,
    /// Exclude entries, for `calve cp` with the same GLOB (repeatable) [default: none]
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,
    /// Leave out other file systems, for `calve cp -x`
    #[arg(short = 'x', long)]
    pub(crate) one_file_system: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct SourceArguments {
    /// The directory that will be cloned, or @NAME for a template
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
