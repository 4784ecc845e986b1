use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use calve_core::CancelToken;
use calve_db::{BuildEvent, CommandEnd, Home, Server};
use calve_git::hooks::Hook;

use crate::error::{Error, Result};
use crate::remedy::Remedy;

/// News for the user that does not end the work.
#[derive(Debug)]
pub enum Event<'a> {
    Note(String),
    Warning(String),
    /// An error that ends nothing, and its effect.
    Failure(&'static str, Error),
    /// A step in making the template `name`.
    Template {
        name: &'a str,
        event: BuildEvent,
    },
}

/// The caller: the places and programs it knows, and its user.
pub trait Host {
    /// Returns Calve's home, or the reason why it is unknown.
    fn home(&self) -> std::result::Result<PathBuf, &'static str>;

    fn runtime_directory(&self) -> Option<PathBuf>;

    /// Returns a directory for short-lived files.
    fn scratch(&self) -> PathBuf;

    /// Returns the command that supervises a database server.
    fn supervisor(&self) -> io::Result<[PathBuf; 2]>;

    /// Returns the directories to search for programs.
    fn search(&self) -> Vec<PathBuf>;

    /// Points a command at this server, and at no other.
    fn introduce(&self, server: &Server, command: &mut Command) -> calve_db::Result<()>;

    /// Asks whether a hook may be run, now and later. False if the user cannot be asked.
    fn may_run(&self, hook: Hook, text: &str) -> bool;

    /// Runs a hook to its end.
    fn run(&self, command: &mut Command) -> io::Result<ExitStatus>;

    /// Runs a command that fills a template. Returns `None` if it succeeded.
    fn fill(&self, command: &mut Command) -> io::Result<Option<CommandEnd>>;

    /// Starts a process that deletes the trash in a directory.
    fn reap(&self, parent: &Path);

    /// Listens for signals again, after one ended a command.
    fn listen_again(&self) -> CancelToken;

    fn report(&self, event: Event<'_>);
}

pub fn database_home(host: &dyn Host) -> Result<Home> {
    Ok(Home::new(&required_home(host, "databases")?, host.runtime_directory().as_deref()))
}

/// Returns [`database_home`], swept of leftovers of crashes.
pub fn swept_home(host: &dyn Host) -> Result<Home> {
    let home = database_home(host)?;
    reap_trash(host, &home)?;
    Ok(home)
}

/// Starts a process that deletes leftovers of crashes and unused files.
pub fn reap_trash(host: &dyn Host, home: &Home) -> Result<()> {
    calve_db::sweep(home)?.trash.iter().for_each(|directory| host.reap(directory));
    Ok(())
}

/// Returns Calve's home, which is needed to keep `what`.
pub fn required_home(host: &dyn Host, what: &str) -> Result<PathBuf> {
    host.home().map_err(|why| Error::failed(format!("no directory for {what}: {why}"), Remedy::SetHome))
}
