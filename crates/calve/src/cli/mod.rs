pub(crate) mod bench;
pub(crate) mod db;
pub(crate) mod env;
pub(crate) mod git;
mod groups;
pub(crate) mod habits;
pub(crate) mod hook;
pub(crate) mod registry;
pub(crate) mod run;
pub(crate) mod services;
pub(crate) mod setting_up;
mod space;
pub(crate) mod spares;
pub(crate) mod template;
pub(crate) mod volume;
pub(crate) mod worktree;

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use calve_core::{Requirement, Strategy};
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};

use self::bench::{BenchRunArguments, ReportArguments};
pub(crate) use self::groups::with_all_commands;
use self::space::size;
pub(crate) use self::space::{DedupeArguments, DuArguments};
use crate::name_parser::NameParser;

/// Make instant, isolated copies of trees, git worktrees and databases
#[derive(Debug, Parser)]
#[command(name = "calve", version, max_term_width = 100, disable_help_subcommand = true)]
#[command(
    after_help = "Exit codes: 0 done, 1 failed, 2 usage, 3 a requirement was not met (nothing made), 130 interrupted."
)]
pub(crate) struct Arguments {
    /// Print no progress and no summary: errors, warnings and the result only
    #[arg(short, long, global = true, hide = true)]
    pub(crate) quiet: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Built only when asked for: building all of them takes longer than a removal.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    Cp(CpArguments),
    Rm(RmArguments),
    /// Show the strategies available here, or between two directories
    ///
    /// With one PATH: cloning from it and into it. With two: cloning the first to the second. Each strategy is available, or
    /// refused with the reason and what would make it available. Calve tries each one in a hidden directory in the target, which with one
    /// PATH is that PATH itself, and removes the directory. It writes nothing else.
    Probe {
        /// The directory to clone from
        #[arg(value_name = "PATH", default_value = ".")]
        src: PathBuf,
        /// The directory to clone to [default: the first]
        dst: Option<PathBuf>,
        /// Print the answer as JSON on stdout (schema calve.probe/1)
        #[arg(long)]
        json: bool,
    },
    Du(DuArguments),
    Dedupe(DedupeArguments),
    /// Keep clones ready, for `calve cp` to hand over in milliseconds
    Spares {
        #[command(subcommand)]
        command: spares::SparesCommand,
    },
    /// Make btrfs volumes in files, for copy-on-write on ext4
    Volume {
        #[command(subcommand)]
        command: volume::VolumeCommand,
    },
    /// Build missing spares, in the background
    #[command(name = "__refill", hide = true)]
    Refill,
    /// Track changes to directories with spares, in the background
    #[command(name = "__watch", hide = true)]
    Watch,
    /// Keep directories under names, to clone: `calve cp @NAME DST`
    Template {
        #[command(subcommand)]
        command: template::TemplateCommand,
    },
    /// Add git worktrees with what git ignores, like node_modules
    #[command(visible_alias = "wt")]
    Worktree {
        #[command(subcommand)]
        command: worktree::WorktreeCommand,
    },
    Init(setting_up::InitArguments),
    Env(env::EnvArguments),
    /// Run a command with the environment of this worktree
    ///
    /// Starts the worktree's services first, as `calve up` does, and fails if one has no data. CMD then replaces calve, so signals and the
    /// exit code are its own. It runs in the current directory, with the variables that `calve env` prints. Engine variables such as PGHOST
    /// point to the worktree's service of that engine, and are unset if there are several. DATABASE_URL and REDIS_URL are unset unless a
    /// service sets them. `--` is needed only before a command that starts with a dash.
    Exec {
        /// The command to run
        #[arg(value_name = "CMD", trailing_var_arg = true, required = true)]
        command: Vec<OsString>,
    },
    /// Start this worktree's services: databases with durable data
    ///
    /// `[services.NAME]` in .calve.toml names a service. Its data is cloned from a template for each worktree, kept across reboots, and removed
    /// with the worktree. `calve env` prints its URL, and `calve exec` starts it too.
    #[command(after_help = "\
Example:
  calve hook approve                 once: shows `create`, and asks
  calve up && eval \"$(calve env)\"

.calve.toml, at the root of the repository:
  [services.db]
  engine = \"postgres\"
  create = \"npm run migrate\"       builds the template, once per version of the inputs
  inputs = [\"migrations/**\"]
  env = \"DATABASE_URL\"

or `template = \"shop\"` in place of the first three, after `calve db template create shop`")]
    Up(services::ServicesArguments),
    Down(services::DownArguments),
    Reset(services::ResetServiceArguments),
    /// Show the services of this worktree: state, template, URL
    Status {
        /// Print the services as JSON on stdout (schema calve.services/1)
        #[arg(long)]
        json: bool,
    },
    /// Print the last lines of a service's log
    Logs {
        /// The service [default: the only one]
        service: Option<String>,
    },
    /// Set up coding agents, serve their hooks, approve project hooks
    Hook {
        #[command(subcommand)]
        command: hook::HookCommand,
    },
    /// Serve worktrees and databases to a coding agent (MCP)
    ///
    /// Speaks the protocol on stdin and stdout, so that an agent starts it and ends it. Its tools list, create, show and remove worktrees,
    /// return the URLs of their databases, reset these, and show disk usage, in the repositories that are named here. No tool runs a
    /// command of the agent's choice. Removing and resetting take two calls: a plan, then its confirmation.
    #[command(after_help = "\
Examples:
  calve hook install claude                      has Claude Code start it
  calve mcp --repository app --repository api    serve two repositories")]
    Mcp {
        /// Serve the repository around DIR (repeatable)
        #[arg(long, value_name = "DIR", default_value = ".")]
        repository: Vec<PathBuf>,
    },
    /// Print the worktree that you are in, for a shell's prompt
    ///
    /// Prints the branch of a linked worktree, its ports, and which of its services run, such as `feature web:3001 db:running`. Prints
    /// nothing in a main worktree or outside of a repository. It starts no other program, and never fails.
    #[command(after_help = "\
Where to put it:
  bash  PS1='$(calve prompt) '\"$PS1\"                      in ~/.bashrc
  zsh   setopt prompt_subst; RPROMPT='$(calve prompt)'      in ~/.zshrc
  fish  function fish_right_prompt; calve prompt; end       in ~/.config/fish/config.fish")]
    Prompt,
    /// Print a shell function that changes to worktrees
    ///
    /// A program cannot change the directory of the shell that started it. Prints a function `calve` that can: it goes into the worktree that
    /// `calve worktree add` has made, to the one that `calve worktree cd` names, and to the main worktree when `calve worktree remove` has
    /// removed the one that you are in. Everything else is passed through unchanged. Also prints completions that know the branches.
    #[command(after_help = "\
Where to put it:
  bash  eval \"$(calve shell-init bash)\"       in ~/.bashrc
  zsh   eval \"$(calve shell-init zsh)\"        in ~/.zshrc, after compinit
  fish  calve shell-init fish | source        in ~/.config/fish/config.fish")]
    ShellInit {
        /// The shell
        #[arg(value_parser = ["bash", "zsh", "fish"])]
        shell: String,
    },
    /// Start database servers on clones of prepared data
    Db {
        #[command(subcommand)]
        command: db::DbCommand,
    },
    /// Supervise a database server; stdout is the starter's socket
    #[command(name = "__supervise", hide = true)]
    Supervise,
    /// Start the missing standbys of a pool
    #[command(name = "__fill", hide = true)]
    Fill {
        /// The pool's template
        template: String,
    },
    Run(run::RunArguments),
    /// Print completions for a shell
    ///
    /// The script completes the commands, options and values of this version, and does not run calve. With --dynamic it queries
    /// calve at every press of Tab: it also completes some values that only calve knows, and stays valid after an update.
    #[command(after_help = "\
Where to put it:
  bash  calve completions bash > ~/.local/share/bash-completion/completions/calve
  zsh   calve completions zsh > DIRECTORY/_calve    a directory of $fpath, before compinit runs
  fish  calve completions fish > ~/.config/fish/completions/calve.fish")]
    Completions {
        /// The shell
        #[arg(value_name = "SHELL", value_parser = PossibleValuesParser::new(["bash", "elvish", "fish", "zsh"]).try_map(|name| name.parse::<Shell>()))]
        shell: Shell,
        /// Print a script that queries calve
        #[arg(long)]
        dynamic: bool,
    },
    /// Write the manual pages, one for each command, into a directory
    #[command(name = "__man", hide = true)]
    Man {
        /// An existing directory
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Clone git repositories full, shallow or partial, by purpose
    Git {
        #[command(subcommand)]
        command: git::GitCommand,
    },
    /// Compare Calve with other programs, on your own data
    Bench {
        #[command(subcommand)]
        command: BenchCommand,
    },
    /// Delete the trash of the directory given as standard input
    #[command(name = "__reap", hide = true)]
    Reap,
}

/// Clone files and directories
///
/// SRC and the clone are independent: a write to one never shows in the other. The clone appears under its name only
/// when it is complete; names, modes, times, extended attributes, ACLs, links and holes are kept, and owners when
/// privileged. One line on stderr says which strategy was used, and why no faster one.
///
/// DST works as in cp: if it is a directory, the clone goes into it, unless -T is given. Unlike with cp, an existing
/// target is an error (see --replace), nothing is merged, and a directory DST with SRC's own name and without a slash at
/// its end is the target itself, so that running a command twice does not nest `node_modules/node_modules`.
///
/// @NAME as SRC is the template of that name (`calve template`); DST is then the target itself, as with -T. A file or
/// directory whose name begins with @ needs its directory: ./@NAME.
#[derive(Debug, Args)]
#[command(override_usage = "calve cp [OPTIONS] <SRC>... <DST>\n       calve cp [OPTIONS] -t <DIR> <SRC>...")]
#[command(after_help = "\
Examples:
  calve cp node_modules ../feature/node_modules
  calve cp --require cow data /mnt/scratch/data    fail rather than copy bytes
  calve cp -n big copy                             say what would be done
  calve cp @shop node_modules                      clone the template `shop`

Strategies, the fastest first:
  spare      a clone made ahead of time and brought up to date (calve spares add SRC)
  snapshot   SRC is a btrfs subvolume: one call, whatever the size
  clonefile  one call for the tree (APFS)
  reflink    per file, extents shared (btrfs, XFS, bcachefs)
  copy       per file, bytes read and written
  hardlink   per file, the same inode: THE TREES ARE NOT INDEPENDENT; only when named")]
pub(crate) struct CpArguments {
    /// The sources, then the destination
    #[arg(value_names = ["SRC", "DST"], num_args = 1.., required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Treat DST as the target itself, never as a directory to copy into
    #[arg(short = 'T', long)]
    pub(crate) no_target_directory: bool,
    /// Clone every SRC into this existing directory [default: none]
    #[arg(short = 't', long, value_name = "DIR", conflicts_with = "no_target_directory")]
    pub(crate) target_directory: Option<PathBuf>,
    /// Say what would be done, and do nothing (unlike cp -n)
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Print the receipt as JSON (schema calve.clone/1 or calve.clones/1)
    #[arg(long)]
    pub(crate) json: bool,
    /// Fail (exit code 3) unless this holds: instant, cow, stable [default: none]
    ///
    /// instant: the cost does not grow with the tree. cow: calve writes no file data. stable: no entry changes while the clone is made; SRC
    /// must be on ext4, XFS or btrfs. May be given several times.
    #[arg(long, value_name = "PROPERTY", value_parser = NameParser(&["instant", "cow", "stable"], str::parse::<Requirement>), hide_possible_values = true)]
    pub(crate) require: Vec<Requirement>,
    /// Use this strategy of those below, or fail [default: the fastest]
    #[arg(long, value_name = "NAME", value_parser = NameParser(Strategy::NAMES, strategy), hide_possible_values = true)]
    pub(crate) strategy: Option<Strategy>,
    /// Exclude entries, in .gitignore syntax (repeatable) [default: none]
    ///
    /// The last pattern that matches decides. `*.log` excludes logs everywhere, `/dist/` the top-level `dist`; a later `!keep.log`
    /// re-includes that file. Nothing below an excluded directory can be re-included.
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,
    /// Replace an existing target
    ///
    /// In one step: DST is the old tree or the new one, never a mix. The old one is deleted in the background.
    #[arg(long)]
    pub(crate) replace: bool,
    /// Leave out other file systems, as empty directories
    #[arg(short = 'x', long)]
    pub(crate) one_file_system: bool,
    /// Use N worker threads, 1 to 64 [default: one for each processor, at most 8]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Sync the clone to disk before publishing it
    #[arg(long)]
    pub(crate) sync: bool,
    /// Compare contents and metadata with SRC before publishing the clone
    #[arg(long)]
    pub(crate) verify: bool,
    /// Do nothing, as do -p and -v: calve always copies like `cp -a`
    #[arg(short = 'r', short_alias = 'R', visible_short_alias = 'a', aliases = ["recursive", "archive", "verbose"], short_aliases = ['p', 'v'], action = clap::ArgAction::Count, hide_short_help = true)]
    pub(crate) as_cp: u8,
    /// Do nothing: an existing target still needs --replace
    #[arg(short = 'f', long, action = clap::ArgAction::Count, hide_short_help = true)]
    pub(crate) force: u8,
}

/// Remove files and directories instantly
///
/// A directory is renamed to a hidden sibling, whatever its size, and deleted by a background process of low priority. Removes symlinks,
/// and does not follow them. Refuses the root, mount points, trees that contain mount points, your home directory and ancestors of the
/// current directory, trees with entries of other users that you cannot delete, and git worktrees, which `calve worktree remove` removes.
#[derive(Debug, Args)]
pub(crate) struct RmArguments {
    /// The files and directories to remove
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Say what would be done, and do nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Print what was done as JSON on stdout (schema calve.remove/1)
    #[arg(long)]
    pub(crate) json: bool,
    /// Delete in the foreground, and return when everything is gone
    #[arg(long)]
    pub(crate) wait: bool,
    /// Ignore a missing PATH; remove git worktrees; directories need no -r
    #[arg(short = 'f', long)]
    pub(crate) force: bool,
    /// Do nothing: directories are removed without it too
    #[arg(short = 'r', short_alias = 'R', alias = "recursive", action = clap::ArgAction::Count, hide_short_help = true)]
    pub(crate) as_rm: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    Copy(BenchCopyArguments),
    Db(bench::BenchDbArguments),
    Git(Box<bench::BenchGitArguments>),
    Write(BenchWriteArguments),
    Worktree(worktree::BenchWorktreeArguments),
}

/// Time `calve cp` against cp, rsync, cpz and xcp
///
/// Runs cp, rsync, cpz and xcp, if installed, and calve cp with every strategy that works there, in turn, each
/// into a new directory. Prints a table with the time (from start to end of the process), the CPU and memory used, and the disk
/// space taken. A program that is faster than Calve is marked.
///
/// Only reads the tree. Makes everything in one hidden directory below --into, and removes that at the end, even after an error or Ctrl-C.
/// A tree on another file system is first copied there once, and that copy is measured.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calve bench copy --tree node_modules --into .
  calve bench copy --tree node_modules --into /mnt/scratch --runs 5 > report.md
  calve bench copy --tree node_modules --into . --only 'calve cp,cpz,cp -a'

Exit codes: 0 measured (the report names other programs that failed), 1 the bench or a Calve command failed, 2 usage, 130 interrupted.")]
pub(crate) struct BenchCopyArguments {
    /// Copy this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) tree: PathBuf,
    /// Run only these commands or programs, such as `calve cp,cpz,cp -a` [default: all]
    ///
    /// Name a command as the table does, without SRC and DST; a program means all of its commands. An unknown name is an error that lists all.
    #[arg(long, value_name = "NAME", value_delimiter = ',', add = ArgValueCandidates::new(bench_programs))]
    pub(crate) only: Vec<String>,
    #[command(flatten)]
    pub(crate) run: BenchRunArguments,
}

/// Time `writeFiles` against Node's own ways to write small files
///
/// Runs each way in a Node process of its own, in turn, into a new directory: writeFileSync in a loop, Promise.all, await in a loop, worker
/// threads, and writeFiles of the npm package calve with several numbers of threads, with all files in one directory and spread over
/// several. Prints the time of the writing, how long the event loop was blocked, and the memory.
///
/// It needs Node and the npm package calve, found from the current directory. Everything is made in one hidden directory below
/// --into, which is removed at the end, even after an error or Ctrl-C.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  npx calve bench write
  npx calve bench write --into /mnt/scratch --files 100000 --directories 1000

Exit codes: 0 measured (the report names Node's ways that failed), 1 the bench or a way of Calve failed, 2 usage, 130 interrupted.")]
pub(crate) struct BenchWriteArguments {
    /// Write in this directory, and clean up at the end
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) into: PathBuf,
    /// Write N files
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) files: u64,
    /// Make each file B bytes long, or with K, M or G (powers of 1,024)
    #[arg(long, value_name = "B", default_value = "6K", value_parser = size)]
    pub(crate) size: u64,
    /// Use N directories; several numbers make several tables
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,20", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) directories: Vec<u64>,
    /// Run each way N times
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,
    #[command(flatten)]
    pub(crate) report: ReportArguments,
}

pub(crate) fn threads(number: &str) -> Result<NonZeroUsize, String> {
    let number = number.parse().ok().filter(|threads: &NonZeroUsize| threads.get() <= MOST_THREADS);
    number.ok_or_else(|| format!("the number of threads is 1 to {MOST_THREADS}"))
}

/// The library uses no more threads; accepting more would be a false promise.
const MOST_THREADS: usize = 64;

/// Completes `--only` with programs, because shells would split commands at their spaces.
fn bench_programs() -> Vec<CompletionCandidate> {
    calve_bench::copy::programs().into_iter().map(CompletionCandidate::new).collect()
}

fn strategy(name: &str) -> Result<Strategy, String> {
    match name.parse::<Strategy>()? {
        Strategy::Overlay => {
            Err("an overlay is a mount that needs an owner; only callers of the library can ask for one".into())
        }
        strategy => Ok(strategy),
    }
}

/// Returns whether the command, or a subcommand, was given `--json`.
pub(crate) fn wants_json(matches: &clap::ArgMatches) -> bool {
    matches.try_get_one::<bool>("json").is_ok_and(|json| json == Some(&true))
        || matches.subcommand().is_some_and(|(_, inner)| wants_json(inner))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Arguments::command().debug_assert();
    }

    // A variant and its arguments must not both have a doc comment: the second would replace the first when the command is built.
    #[test]
    fn each_command_has_one_description() {
        let parts = super::Arguments::command();
        let mut whole = parts.clone();
        whole.build();
        for command in parts.get_subcommands() {
            let built = whole.find_subcommand(command.get_name()).unwrap().get_about().unwrap();
            assert!(command.get_about().is_none_or(|about| about == built), "{}", command.get_name());
        }
    }
}
