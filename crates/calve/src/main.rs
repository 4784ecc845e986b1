//! The `calve` program.

#[cfg(unix)]
mod branch_names;
mod cli;
mod clone_receipt;
mod commands;
#[cfg(unix)]
mod consent;
#[cfg(unix)]
mod db_receipt;
mod destination;
mod failure;
#[cfg(unix)]
mod git_receipt;
#[cfg_attr(windows, allow(dead_code, reason = "nothing is kept there yet"))]
mod home;
mod linked;
mod name_parser;
mod output;
mod progress_bar;
#[cfg(unix)]
mod real_path;
#[cfg(unix)]
mod space_receipt;
mod sys;
mod wording;

use std::process::ExitCode;

use calve_core::CancelToken;
use clap::{CommandFactory, FromArgMatches};

use crate::cli::{Arguments, Command};
use crate::failure::{Failure, INTERRUPTED};

fn main() -> ExitCode {
    // Under another name, for `calve bench git`.
    #[cfg(unix)]
    if let Some(code) = calve_bench::git::pack_objects::when_asked() {
        return code;
    }
    if let Some(answered) = commands::completions::answer() {
        return answered;
    }
    let mut parser = Arguments::command();
    #[cfg(unix)]
    let Some(line) = commands::awaited::command_line() else { return ExitCode::from(commands::awaited::UNUSED) };
    #[cfg(windows)]
    let line: Vec<_> = std::env::args_os().collect();
    let asked = line.get(1).and_then(|word| word.to_str());
    if asked.and_then(|word| parser.find_subcommand(word)).is_none() {
        // The help lists all commands.
        parser.build();
    }
    let matches = parser.get_matches_from(line);
    let wants_json = cli::wants_json(&matches);
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let cancel = match sys::interrupt::listen(INTERRUPTED) {
        Ok(cancel) => cancel,
        Err(error) => return output::failure(&error.into()),
    };
    match run(arguments.command, &cancel) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if wants_json => output::failure_as_json(&failure),
        Err(failure) => output::failure(&failure),
    }
}

fn run(command: Command, cancel: &CancelToken) -> Result<(), Failure> {
    match command {
        Command::Cp(arguments) => commands::cp::run(&arguments, cancel),
        Command::Rm(arguments) => commands::rm::run(&arguments, cancel),
        Command::Probe(arguments) => commands::probe::run(&arguments),
        #[cfg(unix)]
        Command::Du(arguments) => commands::du::run(&arguments, cancel),
        #[cfg(unix)]
        Command::Dedupe(arguments) => commands::dedupe::run(&arguments, cancel),
        #[cfg(unix)]
        Command::Reshare(arguments) => commands::reshare::run(&arguments, cancel),
        #[cfg(unix)]
        Command::Spares { command } => commands::spares::run(&command, cancel),
        #[cfg(unix)]
        Command::Volume { command } => commands::volume::run(&command, cancel),
        #[cfg(unix)]
        Command::Refill => commands::spares::refill_in_background(cancel),
        #[cfg(unix)]
        Command::Watch => commands::spares::watch_in_background(cancel),
        #[cfg(unix)]
        Command::Template { command } => commands::template::run(&command, cancel),
        #[cfg(unix)]
        Command::Worktree { command } => commands::worktree::run(&command, cancel),
        #[cfg(unix)]
        Command::Env(arguments) => commands::env::run(&arguments),
        #[cfg(unix)]
        Command::Exec(arguments) => commands::env::exec(&arguments, cancel),
        #[cfg(unix)]
        Command::Up(arguments) => commands::up::up(&arguments, cancel),
        #[cfg(unix)]
        Command::Down(arguments) => commands::up::down(&arguments),
        #[cfg(unix)]
        Command::Reset(arguments) => commands::up::reset(&arguments, cancel),
        #[cfg(unix)]
        Command::Status(arguments) => commands::up::status(&arguments),
        #[cfg(unix)]
        Command::Logs(arguments) => commands::up::logs(&arguments),
        #[cfg(unix)]
        Command::Hook { command } => commands::hook::run(&command, cancel),
        #[cfg(unix)]
        Command::Mcp(arguments) => commands::mcp::run(&arguments),
        #[cfg(unix)]
        Command::Prompt(_) => commands::prompt::run(),
        #[cfg(unix)]
        Command::ShellInit(arguments) => commands::shell_init::run(&arguments),
        #[cfg(unix)]
        Command::Db { command } => commands::db::run(&command, cancel),
        #[cfg(unix)]
        Command::Supervise => commands::db::supervise::run(cancel),
        #[cfg(unix)]
        Command::Fill { template } => commands::db::pool::fill(&template, cancel),
        #[cfg(unix)]
        Command::Run(arguments) => commands::run::run(&arguments, cancel),
        Command::Completions(arguments) => commands::completions::run(&arguments),
        Command::Man(arguments) => commands::man::run(&arguments),
        #[cfg(unix)]
        Command::Git { command } => commands::git::run(&command, cancel),
        #[cfg(unix)]
        Command::Bench { command } => commands::bench::run(&command, cancel),
        #[cfg(unix)]
        Command::Write(arguments) => commands::bench::write(&arguments, cancel),
        Command::Reap(arguments) => commands::reap::run(&arguments),
    }
}
