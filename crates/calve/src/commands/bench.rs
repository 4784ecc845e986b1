//! `calve bench`.

use calve_core::{Cancel, Error};

use super::bench_report::Outlet;
use crate::cli::worktree::BenchWorktreeArguments;
use crate::cli::{BenchCommand, BenchCopyArguments, BenchDedupeArguments, BenchWriteArguments};
use crate::failure::{Failure, REFUSED};
use crate::output;
use calve_bench::runs::Rounds;
use calve_bench::space::{self, Cache};
use calve_bench::{copy, dedupe, worktree, write};

pub(crate) fn run(command: &BenchCommand, cancel: &Cancel) -> Result<(), Failure> {
    let result = match command {
        BenchCommand::Copy(arguments) => copy(arguments, cancel),
        BenchCommand::Db(arguments) => super::bench_db::run(arguments, cancel),
        BenchCommand::Dedupe(arguments) => dedupe(arguments, cancel),
        BenchCommand::Git(arguments) => super::bench_git::run(arguments, cancel),
        BenchCommand::Worktree(arguments) => worktree(arguments, cancel),
        BenchCommand::Write(arguments) => write(arguments, cancel),
    };
    // The terminal sends Ctrl-C to the programs of a bench too: their failures are then no findings.
    result.map_err(|failure| if cancel.is_cancelled() { Error::Interrupted.into() } else { failure })
}

fn worktree(arguments: &BenchWorktreeArguments, cancel: &Cancel) -> Result<(), Failure> {
    let turns = &arguments.run;
    let outlet = Outlet::of(&turns.report)?;
    let report = worktree::run(&worktree::Setup {
        repository: &arguments.repository,
        into: &turns.into,
        rounds: turns.runs.map_or(Rounds::Fitting, Rounds::Exactly),
        warmup: turns.warmup,
        cache: if turns.cold { cold()? } else { Cache::Warm },
        say: &|line| outlet.say(line),
        warn: &output::say,
        cancel,
    })?;
    outlet.finish(&report)
}

fn write(arguments: &BenchWriteArguments, cancel: &Cancel) -> Result<(), Failure> {
    let outlet = Outlet::of(&arguments.report)?;
    let report = write::run(&write::Setup {
        into: &arguments.into,
        files: arguments.files,
        bytes: arguments.size,
        directories: &arguments.directories,
        node: arguments.node.as_deref(),
        only: &arguments.only,
        rounds: Rounds::Exactly(arguments.runs),
        say: &|line| outlet.say(line),
        warn: &output::say,
        cancel,
    })?;
    outlet.finish(&report)
}

fn copy(arguments: &BenchCopyArguments, cancel: &Cancel) -> Result<(), Failure> {
    let turns = &arguments.run;
    let outlet = Outlet::of(&turns.report)?;
    let report = copy::run(&copy::Setup {
        tree: &arguments.tree,
        into: &turns.into,
        rounds: turns.runs.map_or(Rounds::Fitting, Rounds::Exactly),
        warmup: turns.warmup,
        only: &arguments.only,
        cache: if turns.cold { cold()? } else { Cache::Warm },
        say: &|line| outlet.say(line),
        warn: &output::say,
        cancel,
    })?;
    outlet.finish(&report)
}

fn dedupe(arguments: &BenchDedupeArguments, cancel: &Cancel) -> Result<(), Failure> {
    let turns = &arguments.run;
    let outlet = Outlet::of(&turns.report)?;
    let report = dedupe::run(&dedupe::Setup {
        tree: &arguments.tree,
        other: arguments.and.as_deref(),
        only: &arguments.only,
        into: &turns.into,
        without: &arguments.without,
        rounds: turns.runs.map_or(Rounds::Fitting, Rounds::Exactly),
        warmup: turns.warmup,
        cache: if turns.cold { cold()? } else { Cache::Warm },
        say: &|line| outlet.say(line),
        warn: &output::say,
        cancel,
    })?;
    outlet.finish(&report)
}

/// Needs a switch of the kernel's that root alone may use.
fn cold() -> Result<Cache, Failure> {
    match fs_err::OpenOptions::new().write(true).open(space::DROP_CACHES) {
        Ok(_) => Ok(Cache::Cold),
        Err(error) => {
            let text = format!("`--cold` cannot be had: {error}");
            Err(Failure::stated(REFUSED, text, "emptying the caches takes root, on Linux; or measure with warm caches"))
        }
    }
}
