mod branch_names;
mod cli;
mod commands;
mod consent;
mod destination;
mod failure;
mod home;
mod host;
mod name_parser;
mod operands;
mod output;
mod progress_bar;
mod real_path;
mod reaper;
mod sys;
mod wording;

use std::process::ExitCode;

use calve_core::CancelToken;
use clap::{CommandFactory, FromArgMatches};

use crate::cli::{Arguments, Command};
use crate::failure::{Failure, INTERRUPTED};

fn main() -> ExitCode {
    // `calve bench git` runs this program under another name.
    if let Some(code) = calve_bench::git::when_asked() {
        return code;
    }
    if let Some(answered) = commands::setting_up::completions::answer() {
        return answered;
    }
    let mut parser = Arguments::command();
    let asked = std::env::args_os().nth(1);
    if asked.as_ref().and_then(|word| word.to_str()).and_then(|word| parser.find_subcommand(word)).is_none() {
        parser = cli::with_all_commands(parser);
    }
    let line: Vec<_> = std::env::args_os().collect();
    let matches = cli::habits::parse(&mut parser, &line).unwrap_or_else(|error| error.exit());
    wording::fitting::note_options(&parser, &matches);
    let wants_json = cli::wants_json(&matches);
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if arguments.quiet {
        output::be_quiet();
    }
    // Tests use this entry, which only debug builds have.
    if cfg!(debug_assertions)
        && let Some(file) = std::env::var_os("CALVE_TEST_CLOCK")
    {
        calve_core::internal::set_clock_back_with(file.into());
    }
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
        Command::Cp(arguments) => commands::trees::cp::run(&arguments, cancel),
        Command::Rm(arguments) => commands::trees::rm::run(&arguments, cancel),
        Command::Probe { src, dst, json } => commands::trees::probe::run(&src, dst.as_ref().unwrap_or(&src), json),
        Command::Du(arguments) => commands::trees::du::run(&arguments, cancel),
        Command::Dedupe(arguments) => commands::trees::dedupe::run(&arguments, cancel),
        Command::Spares { command } => commands::trees::spares::run(&command, cancel),
        Command::Volume { command } => commands::trees::volume::run(&command, cancel),
        Command::Refill => commands::trees::spares::refill_in_background(cancel),
        Command::Watch => commands::trees::spares::watch_in_background(cancel),
        Command::Template { command } => commands::trees::template::run(&command, cancel),
        Command::Worktree { command } => commands::worktree::run(&command, cancel),
        Command::Init(arguments) => commands::setting_up::init::run(&arguments),
        Command::Env(arguments) => commands::worktree::env::run(&arguments),
        Command::Exec { command } => commands::worktree::env::exec(&command, cancel),
        Command::Up(arguments) => commands::worktree::up::up(&arguments, cancel),
        Command::Down(arguments) => commands::worktree::up::down(&arguments, cancel),
        Command::Reset(arguments) => commands::worktree::up::reset(&arguments, cancel),
        Command::Status { json } => commands::worktree::up::status(json),
        Command::Logs { service } => commands::worktree::up::logs(service.as_deref()),
        Command::Hook { command } => commands::setting_up::hook::run(&command, cancel),
        Command::Mcp { repository } => commands::setting_up::mcp::run(&repository, cancel),
        Command::Prompt => commands::setting_up::prompt::run(),
        Command::ShellInit { shell } => commands::setting_up::shell_init::run(&shell),
        Command::Db { command } => commands::db::run(&command, cancel),
        Command::Supervise => Ok(sys::supervise(cancel)?),
        Command::Fill { template } => commands::db::pool::fill(&template, cancel),
        Command::Run(arguments) => commands::trees::run::run(&arguments, cancel),
        Command::Completions { shell, dynamic } => commands::setting_up::completions::run(shell, dynamic),
        Command::Man { directory } => commands::setting_up::man::run(&directory),
        Command::Git { command } => commands::git::run(&command, cancel),
        Command::Bench { command } => commands::bench::run(&command, cancel),
        Command::Reap => reaper::run(),
    }
}
