use std::path::PathBuf;
use std::time::Duration;

use calve_env::DataFrom;
use calve_git::environment::env_file_inside;
use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCandidates;

use crate::branch_names;

#[derive(Debug, Subcommand)]
pub(crate) enum WorktreeCommand {
    Add(AddArguments),
    /// Go to a worktree
    ///
    /// Prints its path; the `calve shell-init` function changes to it. Without a name, lets you choose: with fzf or sk if one is installed, else
    /// from a list.
    Cd {
        /// The worktree: its branch, its path, or the last component of its path [default: choose from a list]
        #[arg(value_name = "BRANCH-OR-PATH", add = ArgValueCandidates::new(branch_names::of_worktrees))]
        what: Option<PathBuf>,
    },
    #[command(visible_alias = "ls")]
    /// List the worktrees with their state, ports and services
    ///
    /// Shows branch, uncommitted changes, commits ahead and behind, age, ports, and services with memory and disk space. Reports paths that
    /// hold something else, and what to do.
    List {
        /// Print the list as JSON on stdout (schema calve.worktrees/1)
        #[arg(long)]
        json: bool,
    },
    #[command(visible_alias = "rm")]
    Remove(RemoveWorktreeArguments),
    Prune(PruneArguments),
    Check(CheckArguments),
    /// Make a worktree a btrfs subvolume, so that new ones are snapshots
    ///
    /// Clones the worktree into a new subvolume, compares the two, and swaps them atomically. Refuses while a process is inside, so run
    /// it from outside: `calve worktree convert PATH`. Undoes the swap if files change meanwhile.
    Convert {
        /// The worktree
        #[arg(value_name = "PATH", default_value = ".")]
        path: PathBuf,
        /// Print what was done as JSON (schema calve.worktree-convert/1)
        #[arg(long)]
        json: bool,
    },
}

/// Add a worktree with node_modules, .venv, target and the like
///
/// Makes a linked git worktree with what git ignores: node_modules, .venv, target, .env, caches. Files are cloned, so that the two
/// worktrees share blocks on disk and nothing else. The new worktree appears under its name, and in git's list, only when it
/// is complete. Prints its path.
///
/// Checks BRANCH out if it exists here or on exactly one remote, and otherwise creates it; refuses names such as origin/typo. Dependency
/// directories come from a worktree that matches BRANCH's lockfile. pr/123 fetches the head of a pull request. Without --trust it gets no
/// secrets, and calve never runs its hooks or programs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calve worktree add feature-x
  worktree=$(calve worktree add --base main fix/typo) && cd \"$worktree\"
  calve worktree add -n pr/123                     say what would be carried, and what not

.calve.toml, at the root of the repository:
  [worktree]  path, include, exclude, secrets, spares, env-file
  [hooks]     post-add, pre-remove
  [db.NAME]   standby (see `calve db pool --help`)
  [ports]     NAME = NUMBER (see `calve env --help`)
  [services.NAME]  engine, create, inputs, template, env (see `calve up --help`)")]
pub(crate) struct AddArguments {
    /// The branch: NAME, origin/NAME, pr/NUMBER, tag, commit, - (previous)
    #[arg(value_name = "BRANCH", add = ArgValueCandidates::new(branch_names::free))]
    pub(crate) branch: String,
    /// Begin a new branch at this commit [default: HEAD]
    #[arg(long, value_name = "REV")]
    pub(crate) base: Option<String>,
    /// Take files from this worktree: its branch, path or name [default: this one]
    #[arg(long, value_name = "WORKTREE", add = ArgValueCandidates::new(branch_names::of_worktrees))]
    pub(crate) from: Option<PathBuf>,
    /// Make the worktree at PATH [default: ../REPOSITORY.BRANCH, or what .calve.toml says]
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<PathBuf>,
    /// Check out the commit of BRANCH, without a branch
    #[arg(short, long)]
    pub(crate) detach: bool,
    /// Carry nothing that git ignores
    #[arg(long)]
    pub(crate) no_ignored: bool,
    /// Carry uncommitted changes and untracked files too
    #[arg(long)]
    pub(crate) dirty: bool,
    /// Write ports and service URLs to FILE in it [default: `env-file` of .calve.toml]
    ///
    /// Never changes a file that git tracks or that Calve did not create.
    #[arg(long, value_name = "FILE", value_parser = env_file_inside)]
    pub(crate) env_file: Option<PathBuf>,
    /// Clone service data from a worktree, kept data, template, or none [default: the worktree of the files, else the template]
    ///
    /// `calve db list --all` lists kept data.
    #[arg(long, value_name = "WORKTREE|template|none", default_value = "", hide_default_value = true, value_parser = parse_data_from)]
    pub(crate) data_from: DataFrom,
    /// Run no hooks of .calve.toml, and no `create` of a service
    #[arg(long)]
    pub(crate) no_hooks: bool,
    /// Run hooks, and `create` of services, without asking (for CI)
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Treat a pull request as your own branch: carry secrets, run hooks
    #[arg(long)]
    pub(crate) trust: bool,
    /// Make it for `calve hook worktree-create`: hand it over when it is finished, or take it away again
    #[arg(long, value_name = "MAKER", hide = true)]
    pub(crate) for_agent: Option<String>,
    /// Say what would be done, and do nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Print the receipt as JSON on stdout (schema calve.worktree-add/1)
    #[arg(long)]
    pub(crate) json: bool,
}

/// Remove worktrees instantly
///
/// Without a name, removes the worktree that you are in. If you are inside it, prints the main worktree's path, to which the
/// `calve shell-init` function changes. Moves its directory aside, deletes it in the background, and makes git forget it.
///
/// Without -f, refuses to lose anything that exists nowhere else, and names it: uncommitted changes, untracked files, commits on no branch
/// or tag, an unfinished rebase, data of services that may have been written to (--lose-data loses that alone). This includes repositories
/// inside it, ignored or not. Ignored files found nowhere else, up to 100 MB, need no -f: they are moved to .git/calve/kept for seven days,
/// except dependencies and build outputs. Processes that are inside it or listen on its ports are named, and on a terminal you may end
/// them. Even with -f, refuses if something else is at its path. Runs no hook in the worktree of an untrusted pull request.
#[derive(Debug, Default, Args)]
pub(crate) struct RemoveWorktreeArguments {
    /// The worktree: its branch, its path, or the last component of its path [default: this one]
    #[arg(value_name = "BRANCH-OR-PATH", add = ArgValueCandidates::new(branch_names::removable))]
    pub(crate) what: Vec<PathBuf>,
    /// Remove it even if something is lost
    #[arg(short, long)]
    pub(crate) force: bool,
    /// Discard its services' data, but nothing else
    #[arg(long)]
    pub(crate) lose_data: bool,
    /// Delete its branch if it is merged
    #[arg(short = 'd', long)]
    pub(crate) delete_merged: bool,
    /// Delete its branch, and name its last commit
    #[arg(short = 'D', long)]
    pub(crate) delete_branch: bool,
    /// Run no hooks of .calve.toml
    #[arg(long)]
    pub(crate) no_hooks: bool,
    /// Run the hooks of .calve.toml without asking (for CI)
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Treat a pull request as your own branch: run its hooks
    #[arg(long)]
    pub(crate) trust: bool,
    /// Say what would be removed, lost and moved aside, and do nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Print JSON (calve.worktree-remove/1 or calve.worktree-removals/1)
    #[arg(long)]
    pub(crate) json: bool,
}

/// Forget missing worktrees and clean up after killed runs
///
/// Keeps and names an entry that holds the last copy of something (staged contents, commits, an unfinished rebase). Removes the data of the
/// services of missing worktrees, unless it may have been written to: --lose-data removes that too. Without --merged, never touches the
/// directory at a worktree's path.
///
/// --merged also removes worktrees whose commits are all in their upstream or in the main worktree's branch, or that were squash-merged into
/// it. It lists them and asks first. Their branches stay. A worktree stays if `calve worktree remove` would refuse it, if a process of yours
/// is inside, or if you are. Without --older-than, a new worktree, on whose branch no commit was ever made, also stays.
#[derive(Debug, Args)]
pub(crate) struct PruneArguments {
    /// Also remove worktrees that are merged or pushed
    #[arg(long)]
    pub(crate) merged: bool,
    /// Remove only worktrees older than AGE, such as 14d [default: any age]
    #[arg(long, value_name = "AGE", requires = "merged", value_parser = age)]
    pub(crate) older_than: Option<Duration>,
    /// Say which worktrees would be forgotten or removed, and do nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Remove them without asking
    #[arg(short, long, requires = "merged")]
    pub(crate) yes: bool,
    /// Also discard their services' data, even if modified
    #[arg(long)]
    pub(crate) lose_data: bool,
    /// Print what was done as JSON on stdout (schema calve.worktree-prune/1)
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parses an age, such as `14d`, `2w`, `12h` or `30m`.
fn age(text: &str) -> Result<Duration, String> {
    let units = [('w', 7 * 86_400), ('d', 86_400), ('h', 3_600), ('m', 60)];
    let parsed = units.into_iter().find_map(|(unit, seconds)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(seconds)
    });
    parsed.map(Duration::from_secs).ok_or_else(|| "a number with w, d, h or m behind it, such as 14d".into())
}

/// Find references in a worktree to another one
///
/// Finds symlinks, shebangs, virtual environments, path files, notes of pnpm, build directories of CMake, caches of webpack and Next.js,
/// `.git` files and Cargo build units that name another worktree of the repository. With --fix, Calve redirects them to this one, or
/// deletes them if a tool recreates them. If the worktree was moved, also finds its former path. Only reports tracked files. Never writes
/// to other worktrees.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 no references remain, 1 some do, 2 usage, 130 interrupted.")]
pub(crate) struct CheckArguments {
    /// The worktree, or a directory in it
    #[arg(value_name = "PATH", default_value = ".")]
    pub(crate) path: PathBuf,
    /// Repair or drop what is found
    #[arg(long)]
    pub(crate) fix: bool,
    /// Print the findings as JSON on stdout (schema calve.worktree-check/1)
    #[arg(long)]
    pub(crate) json: bool,
    /// Find references to DIR, of which PATH is a copy (repeatable) [default: the other worktrees of its repository]
    #[arg(long, value_name = "DIR")]
    pub(crate) against: Vec<PathBuf>,
}

/// Time `calve worktree add` against `git worktree add` with cp or npm
///
/// Times `git worktree add` followed by `cp`, by `npm ci --offline` where there is a package-lock.json, and by worktrunk, if installed, and
/// `calve worktree add`. Each run is measured from nothing to the end of the first `git status`.
///
/// Only reads the repository: adds worktrees to a clone of it, in one hidden directory below --into, which is removed at the end.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calve bench worktree --repo . --into ..
  calve bench worktree --repo app --into /mnt/scratch --runs 5")]
pub(crate) struct BenchWorktreeArguments {
    /// Measure with this main worktree, and what git ignores in it
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) repo: PathBuf,
    #[command(flatten)]
    pub(crate) run: super::bench::BenchRunArguments,
}

fn parse_data_from(text: &str) -> Result<DataFrom, std::convert::Infallible> {
    Ok(match text {
        "" => DataFrom::Donor,
        "template" => DataFrom::Template,
        "none" => DataFrom::Nowhere,
        worktree => DataFrom::Worktree(worktree.into()),
    })
}
