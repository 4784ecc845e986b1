//! The program as the libraries' host: the user's places and programs, questions and messages.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use calve_core::CancelToken;
use calve_db::{Address, BuildEvent, CommandEnd, Server};
use calve_env::{Event, Host};
use calve_git::hooks::Hook;

use crate::failure::with_hint;
use crate::wording::fitting::fitting;
use crate::{consent, home, output, reaper, sys};

pub(crate) struct Program;

impl Host for Program {
    fn home(&self) -> Result<PathBuf, &'static str> {
        home::directory()
    }

    fn runtime_directory(&self) -> Option<PathBuf> {
        env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute())
    }

    fn scratch(&self) -> PathBuf {
        env::temp_dir()
    }

    fn supervisor(&self) -> io::Result<[PathBuf; 2]> {
        Ok([env::current_exe()?, "__supervise".into()])
    }

    fn search(&self) -> Vec<PathBuf> {
        env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default()
    }

    fn introduce(&self, server: &Server, command: &mut Command) -> calve_db::Result<()> {
        server.check_option_files(env::var_os("HOME").map(PathBuf::from).as_deref())?;
        Address::set_environment(&server.address.environment, command);
        Ok(())
    }

    fn may_run(&self, hook: Hook, text: &str) -> bool {
        consent::can_ask() && {
            consent::show(hook, text, output::prompt);
            consent::yes(consent::MAY_RUN)
        }
    }

    fn run(&self, command: &mut Command) -> io::Result<ExitStatus> {
        sys::run_hook(command.stdout(output::for_command()))
    }

    fn fill(&self, command: &mut Command) -> io::Result<Option<CommandEnd>> {
        Ok(sys::command_end(self.run(command)?))
    }

    fn reap(&self, parent: &Path) {
        reaper::start(parent);
    }

    fn listen_again(&self) -> CancelToken {
        sys::interrupt::listen_again().unwrap_or_default()
    }

    fn report(&self, event: Event<'_>) {
        match event {
            Event::Note(text) => output::note(&fitting(text)),
            Event::Warning(text) => output::warn(&text),
            Event::Failure(effect, error) => output::warn(&format!("{effect}: {}", with_hint(&error))),
            Event::Template { name, event } => say_building(name, event),
        }
    }
}

pub(crate) fn say_building(name: &str, event: BuildEvent) {
    match event {
        BuildEvent::Waiting => {
            output::note(&format!("waiting for another process that makes the template `{name}`"));
        }
        BuildEvent::Unfinished(what) => output::warn(&what),
        BuildEvent::Neutralised(what) => output::note(&format!("in the template: {what}")),
    }
}
