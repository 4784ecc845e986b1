//! `calve bench`.

use std::path::{Path, PathBuf};

use calve_core::{Cancel, Shown};
use serde_json::Value;

use crate::bench::report::Report;
use crate::bench::runs::Rounds;
use crate::bench::space::{self, Cache};
use crate::bench::{copy, dedupe, export, worktree, write};
use crate::cli::worktree::BenchWorktreeArguments;
use crate::cli::{BenchCommand, BenchCopyArguments, BenchDedupeArguments, BenchWriteArguments, ExportArguments};
use crate::failure::{FAILED, Failure, REFUSED, USAGE};
use crate::output;

pub(crate) fn run(command: &BenchCommand, cancel: &Cancel) -> Result<(), Failure> {
    match command {
        BenchCommand::Copy(arguments) => copy(arguments, cancel),
        BenchCommand::Db(arguments) => super::bench_db::run(arguments, cancel),
        BenchCommand::Dedupe(arguments) => dedupe(arguments, cancel),
        BenchCommand::Git(arguments) => super::bench_git::run(arguments, cancel),
        BenchCommand::Worktree(arguments) => worktree(arguments, cancel),
        BenchCommand::Write(arguments) => write(arguments, cancel),
    }
}

fn worktree(arguments: &BenchWorktreeArguments, cancel: &Cancel) -> Result<(), Failure> {
    let turns = &arguments.run;
    let exports = Exports::of(&turns.export, FORMS)?;
    let report = worktree::run(&worktree::Wish {
        repository: &arguments.repository,
        into: &turns.into,
        rounds: turns.runs.map_or(Rounds::Fitting, Rounds::Exactly),
        warmup: turns.warmup,
        cache: if turns.cold { cold()? } else { Cache::Warm },
        say: &|line| say(turns.quiet, line),
        cancel,
    })?;
    finish(&report, turns.json, &exports)
}

fn write(arguments: &BenchWriteArguments, cancel: &Cancel) -> Result<(), Failure> {
    let as_json: fn(&write::Report) -> String = |report| format!("{:#}\n", write::json::document(report));
    let exports = Exports::of(&arguments.export, [as_json, write::Report::markdown, write::html::document])?;
    let report = write::run(&write::Wish {
        into: &arguments.into,
        files: arguments.files,
        bytes: arguments.size,
        directories: &arguments.directories,
        node: arguments.node.as_deref(),
        only: &arguments.only,
        rounds: Rounds::Exactly(arguments.runs),
        say: &|line| say(arguments.quiet, line),
        cancel,
    })?;
    // The files first: what was measured for minutes must not be lost with a closed pipe.
    let written = exports.write(&report);
    match arguments.json {
        true => output::json(&write::json::document(&report))?,
        false => output::result(&report.markdown())?,
    }
    written?;
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
    let exports = Exports::of(&turns.export, FORMS)?;
    let report = copy::run(&copy::Wish {
        tree: &arguments.tree,
        into: &turns.into,
        rounds: turns.runs.map_or(Rounds::Fitting, Rounds::Exactly),
        warmup: turns.warmup,
        only: &arguments.only,
        cache: if turns.cold { cold()? } else { Cache::Warm },
        say: &|line| say(turns.quiet, line),
        cancel,
    })?;
    finish(&report, turns.json, &exports)
}

fn dedupe(arguments: &BenchDedupeArguments, cancel: &Cancel) -> Result<(), Failure> {
    let turns = &arguments.run;
    let exports = Exports::of(&turns.export, FORMS)?;
    let report = dedupe::run(&dedupe::Wish {
        tree: &arguments.tree,
        other: arguments.and.as_deref(),
        only: &arguments.only,
        into: &turns.into,
        without: &arguments.without,
        rounds: turns.runs.map_or(Rounds::Fitting, Rounds::Exactly),
        warmup: turns.warmup,
        cache: if turns.cold { cold()? } else { Cache::Warm },
        say: &|line| say(turns.quiet, line),
        cancel,
    })?;
    finish(&report, turns.json, &exports)
}

/// What is going on, for those who want to know.
fn say(quiet: bool, line: &str) {
    if !quiet {
        output::say(line);
    }
}

/// Prints the report, writes it where it was asked for, and says whether all of Calve's own commands worked.
fn finish(report: &Report, json: bool, exports: &Exports<Report>) -> Result<(), Failure> {
    // The files first: what was measured for minutes must not be lost with a closed pipe.
    let written = exports.write(report);
    if json {
        output::json(&export::json::document(report))?;
    } else {
        output::result(&export::markdown::document(report))?;
    }
    written?;
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

/// A form of the report.
type Renderer<R> = fn(&R) -> String;

/// JSON, Markdown, HTML.
const FORMS: [Renderer<Report>; 3] = [
    |report| format!("{:#}\n", Value::clone(&export::json::document(report))),
    export::markdown::document,
    export::html::document,
];

/// The files to write in the end, known to be writable from the beginning.
pub(super) struct Exports<R>(Vec<(PathBuf, Renderer<R>)>);

impl<R> Exports<R> {
    /// The renderers are in the order of `FORMS`.
    pub(super) fn of(arguments: &ExportArguments, renderers: [Renderer<R>; 3]) -> Result<Self, Failure> {
        let paths = [&arguments.export_json, &arguments.export_markdown, &arguments.export_html];
        let forms = paths.into_iter().zip(renderers);
        let wanted: Vec<_> = forms.filter_map(|(path, form)| Some((path.clone()?, form))).collect();
        for (index, (path, _)) in wanted.iter().enumerate() {
            if wanted[..index].iter().any(|(other, _)| other == path) {
                let text = format!("`{}` is named for two forms of the report", Shown(path));
                return Err(Failure::stated(USAGE, text, "name a file of its own for each"));
            }
            check_writable(path)?;
        }
        Ok(Self(wanted))
    }

    pub(super) fn write(&self, report: &R) -> Result<(), Failure> {
        let written = self
            .0
            .iter()
            .map(|(path, render)| fs_err::write(path, render(report)).map_err(|error| unwritable(path, &error)));
        // One that fails does not keep the others from being written.
        written.fold(Ok(()), Result::and)
    }
}

/// Before anything is measured. What is there keeps its contents, and what is not there stays so.
fn check_writable(path: &Path) -> Result<(), Failure> {
    match fs_err::OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(_) => Ok(fs_err::remove_file(path)?),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            fs_err::OpenOptions::new().write(true).open(path).map(drop).map_err(|error| unwritable(path, &error))
        }
        Err(error) => Err(unwritable(path, &error)),
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    let text = format!("the report cannot be written to `{}`: {error}", Shown(path));
    Failure::stated(FAILED, text, "name a file in a directory that is there and that you may write to")
}
