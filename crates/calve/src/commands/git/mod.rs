//! `calve git`.

mod advise;
mod clone;
mod fetch;

use std::io::{IsTerminal, Write, stderr, stdin};

use calve_core::CancelToken;
use calve_git::remote::{Prompts, RemoteError};

use crate::cli::git::GitCommand;
use crate::failure::{FAILED, Failure, INTERRUPTED, REFUSED, USAGE};
use crate::{output, wording};

pub(crate) fn run(command: &GitCommand, cancel: &CancelToken) -> Result<(), Failure> {
    match command {
        GitCommand::Clone(arguments) => clone::run(arguments, cancel),
        GitCommand::Fetch(arguments) => fetch::run(arguments, cancel),
        GitCommand::Advise(arguments) => advise::run(arguments),
    }
}

fn failure(error: RemoteError) -> Failure {
    let code = match &error {
        RemoteError::Url { .. } | RemoteError::Senseless { .. } | RemoteError::NoName(_) => USAGE,
        RemoteError::Refused { .. } | RemoteError::NotAsked { .. } => REFUSED,
        RemoteError::Interrupted => INTERRUPTED,
        _ => FAILED,
    };
    let remedy = error.remedy();
    Failure::Stated { text: error.to_string(), hint: wording::git::hint(&remedy), code, remedy: Some(remedy.name()) }
}

/// Allows git's questions where somebody can answer them: on a terminal, unless `GIT_TERMINAL_PROMPT` is 0.
fn prompts() -> Prompts {
    let forbidden = std::env::var_os("GIT_TERMINAL_PROMPT").is_some_and(|value| value == "0");
    if !forbidden && stdin().is_terminal() && stderr().is_terminal() { Prompts::OnTerminal } else { Prompts::Never }
}

/// git's progress, on one line of the terminal.
struct Line {
    shown: bool,
}

impl Line {
    fn new() -> Line {
        Line { shown: !output::is_quiet() && stderr().is_terminal() }
    }

    fn show(&self, text: &str) {
        if self.shown {
            let text: String = text.chars().take(100).collect();
            let _ = write!(stderr().lock(), "\r\x1b[K{text}");
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(stderr().lock(), "\r\x1b[K");
        }
    }
}
