//! `calve db`.

mod copies;
mod data;
mod gc;
mod list;
mod logs;
mod mark;
pub(crate) mod pool;
mod promote;
mod registry;
mod reset;
pub(crate) mod run;
mod start;
mod stop;
pub(crate) mod supervise;
pub(super) mod template;
mod url;

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use calve_core::CancelToken;
use calve_db::{Address, Home};

use super::reap;
use crate::cli::db::{DbCommand, TemplateCommand};
use crate::failure::{FAILED, Failure};

pub(crate) fn run(command: &DbCommand, cancel: &CancelToken) -> Result<(), Failure> {
    match command {
        DbCommand::Template { command: TemplateCommand::Create(arguments) } => template::create(arguments, cancel),
        DbCommand::Template { command: TemplateCommand::List(arguments) } => template::list(arguments),
        DbCommand::Template { command: TemplateCommand::Remove(arguments) } => template::remove(arguments),
        DbCommand::Template { command: TemplateCommand::Push(arguments) } => registry::push(arguments, cancel),
        DbCommand::Template { command: TemplateCommand::Pull(arguments) } => registry::pull(arguments, cancel),
        DbCommand::Pool(arguments) => pool::run(arguments, cancel),
        DbCommand::Mark(arguments) => mark::add(arguments, cancel),
        DbCommand::Marks(arguments) => mark::list(arguments),
        DbCommand::Unmark(arguments) => mark::remove(arguments, cancel),
        DbCommand::Start(arguments) => start::run(arguments, cancel),
        DbCommand::Run(arguments) => run::run(arguments, cancel),
        DbCommand::Reset(arguments) => reset::run(arguments, cancel),
        DbCommand::Stop(arguments) => stop::run(arguments, cancel),
        DbCommand::List(arguments) => list::run(arguments),
        DbCommand::Logs(arguments) => logs::run(arguments),
        DbCommand::Promote(arguments) => promote::run(arguments, cancel),
        DbCommand::Url(arguments) => url::run(arguments),
        DbCommand::Gc(arguments) => gc::run(arguments),
    }
}

/// Returns where everything is. Removes what was left there by a crash.
pub(super) fn home() -> Result<Home, Failure> {
    let home = unswept_home()?;
    reap_trash(&home)?;
    Ok(home)
}

/// Starts a process that deletes what a crash left or nobody uses any more.
pub(super) fn reap_trash(home: &Home) -> Result<(), Failure> {
    calve_db::sweep(home)?.trash.iter().for_each(|directory| reap::start(directory));
    Ok(())
}

pub(super) fn unswept_home() -> Result<Home, Failure> {
    let directory = crate::home::directory()
        .map_err(|why| Failure::stated(FAILED, why, "set CALVE_HOME to a directory of your own"))?;
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    Ok(Home::new(&directory, runtime.as_deref()))
}

/// Returns a user's command whose environment leads to the server and to no other.
fn command_for(address: &Address, line: &[OsString]) -> calve_db::Result<Option<Command>> {
    let [program, words @ ..] = line else { return Ok(None) };
    let mut command = Command::new(program);
    command.args(words);
    introduce(address, &mut command)?;
    Ok(Some(command))
}

/// Lets the command find the server, and no other one.
pub(super) fn introduce(address: &Address, command: &mut Command) -> calve_db::Result<()> {
    calve_db::check_option_files(address, env::var_os("HOME").map(PathBuf::from).as_deref())?;
    for name in address.foreign_variables() {
        command.env_remove(name);
    }
    command.envs(address.environment());
    Ok(())
}

/// Returns the names of the programs that run containers, the best first.
pub(super) fn runtimes() -> Vec<String> {
    let mut names: Vec<String> = calve_db::RUNTIMES.map(Into::into).to_vec();
    if env::var_os("DOCKER_HOST").is_some_and(|host| !host.is_empty()) {
        names.reverse();
    }
    names
}

/// Returns the directories of PATH.
pub(super) fn search() -> Vec<PathBuf> {
    env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default()
}

/// Returns the command that looks after a server: this program and the name of its hidden command.
pub(super) fn supervisor() -> Result<[PathBuf; 2], Failure> {
    Ok([env::current_exe()?, "__supervise".into()])
}
