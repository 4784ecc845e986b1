use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::space::size;

#[derive(Debug, Subcommand)]
pub(crate) enum VolumeCommand {
    Create(CreateArguments),
    /// List volumes with their disk usage
    List {
        /// Print the list as JSON on stdout (schema calve.volumes/1)
        #[arg(long)]
        json: bool,
    },
    /// Mount a volume and print its path
    ///
    /// Only root can mount. On a terminal, calve shows the commands, and runs them by sudo or pkexec if you agree. Otherwise it prints them
    /// and exits with code 3. The volume stays attached until `calve volume detach` or a restart of the machine.
    #[command(after_help = "\
Examples:
  cd $(calve volume attach work)
  calve volume attach work --print | sudo sh")]
    Attach(MountArguments),
    /// Unmount a volume; its contents stay
    Detach(MountArguments),
    /// Make a volume larger
    ///
    /// An attached volume grows at once, which needs root; a detached one grows when it is next attached.
    Grow {
        /// The name of the volume
        name: String,
        /// Grow to this size, as in 80G
        #[arg(long, value_name = "SIZE", value_parser = size)]
        size: u64,
        #[command(flatten)]
        output: Output,
    },
    /// Delete a detached volume, with everything in it
    Remove {
        /// The name of the volume
        name: String,
        /// Delete it without asking
        #[arg(short, long)]
        yes: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Check a volume, and repair what is safe to repair
    ///
    /// Checks the image, its record, loop devices, mount options, free space, and the errors that btrfs has counted. It repairs mount options,
    /// an unfinished resize, and the owner of the top directory. Exits with code 1 if anything else is wrong.
    Doctor {
        /// The name of the volume [default: all volumes]
        name: Option<String>,
        #[command(flatten)]
        output: Output,
    },
}

/// Make a volume
///
/// Makes a file in $CALVE_HOME/volumes/NAME and formats it. Needs no root, and mounts nothing: `calve volume attach` does. The file's full
/// size is allocated up front, so a full disk cannot damage the volume. Refuses a size above nine tenths of the free space.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calve volume create work
  calve volume create work --size 40G --at ~/work    ~/work is an empty directory")]
pub(crate) struct CreateArguments {
    /// The name: letters, digits, dots, dashes and underscores
    pub(crate) name: String,
    /// Make it this large, as in 40G [default: 20G, or a quarter of the free space if that is less]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) size: Option<u64>,
    /// Mount it on the empty directory DIR [default: $CALVE_HOME/volumes/NAME/tree]
    #[arg(long, value_name = "DIR")]
    pub(crate) at: Option<PathBuf>,
    /// Allocate space on demand and return deleted space
    ///
    /// If the disk fills up, the volume becomes read-only and unsynced data is lost.
    #[arg(long)]
    pub(crate) sparse: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct MountArguments {
    /// The name of the volume
    pub(crate) name: String,
    /// Print the commands that root must run, and run none
    #[arg(long, conflicts_with = "json")]
    pub(crate) print: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Output {
    /// Print the volume as JSON on stdout (schema calve.volumes/1)
    #[arg(long)]
    pub(crate) json: bool,
}
