//! `calve bench`.

use calve_core::{Cancel, Error};

use super::bench_report::{Forms, Outlet};
use crate::bench::report::Report;
use crate::bench::runs::Rounds;
use crate::bench::space::{self, Cache};
use crate::bench::{copy, dedupe, export, worktree, write};
use crate::cli::worktree::BenchWorktreeArguments;
use crate::cli::{BenchCommand, BenchCopyArguments, BenchDedupeArguments, BenchWriteArguments};
use crate::failure::{FAILED, Failure, REFUSED};

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
    let outlet = Outlet::of(&turns.report, FORMS)?;
    let report = worktree::run(&worktree::Wish {
        repository: &arguments.repository,
        into: &turns.into,
        rounds: turns.runs.map_or(Rounds::Fitting, Rounds::Exactly),
        warmup: turns.warmup,
        cache: if turns.cold { cold()? } else { Cache::Warm },
        say: &|line| outlet.say(line),
        cancel,
    })?;
    finish(&report, &outlet)
}

fn write(arguments: &BenchWriteArguments, cancel: &Cancel) -> Result<(), Failure> {
    let forms = Forms { json: write::json::document, markdown: write::Report::markdown, html: write::html::document };
    let outlet = Outlet::of(&arguments.report, forms)?;
    let report = write::run(&write::Wish {
        into: &arguments.into,
        files: arguments.files,
        bytes: arguments.size,
        directories: &arguments.directories,
        node: arguments.node.as_deref(),
        only: &arguments.only,
        rounds: Rounds::Exactly(arguments.runs),
        say: &|line| outlet.say(line),
        cancel,
    })?;
    outlet.give(&report)?;
    match report.broken() {
        Some(way) => {
            let text = format!("`{way}` failed");
            Err(Failure::stated(FAILED, text, "the report says why; see `calve bench write --help`"))
        }
        None => Ok(()),
    }
}

fn copy(arguments: &BenchCopyArguments, cancel: &Cancel) -> Result<(), Failure> {
    let turns = &arguments.run;
    let outlet = Outlet::of(&turns.report, FORMS)?;
    let report = copy::run(&copy::Wish {
        tree: &arguments.tree,
        into: &turns.into,
        rounds: turns.runs.map_or(Rounds::Fitting, Rounds::Exactly),
        warmup: turns.warmup,
        only: &arguments.only,
        cache: if turns.cold { cold()? } else { Cache::Warm },
        say: &|line| outlet.say(line),
        cancel,
    })?;
    finish(&report, &outlet)
}

fn dedupe(arguments: &BenchDedupeArguments, cancel: &Cancel) -> Result<(), Failure> {
    let turns = &arguments.run;
    let outlet = Outlet::of(&turns.report, FORMS)?;
    let report = dedupe::run(&dedupe::Wish {
        tree: &arguments.tree,
        other: arguments.and.as_deref(),
        only: &arguments.only,
        into: &turns.into,
        without: &arguments.without,
        rounds: turns.runs.map_or(Rounds::Fitting, Rounds::Exactly),
        warmup: turns.warmup,
        cache: if turns.cold { cold()? } else { Cache::Warm },
        say: &|line| outlet.say(line),
        cancel,
    })?;
    finish(&report, &outlet)
}

const FORMS: Forms<Report> =
    Forms { json: export::json::document, markdown: export::markdown::document, html: export::html::document };

/// Prints the report, writes it where it was asked for, and says whether all of Calve's own commands worked.
fn finish(report: &Report, outlet: &Outlet<Report>) -> Result<(), Failure> {
    outlet.give(report)?;
    let broken = report.failed().find(|row| row.workload.command.starts_with("calve "));
    match broken {
        Some(row) => {
            let text = format!("`{}` failed", row.workload.command);
            Err(Failure::stated(
                FAILED,
                text,
                "the report has its exit code and what it said; run it by hand to see more",
            ))
        }
        None => Ok(()),
    }
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
