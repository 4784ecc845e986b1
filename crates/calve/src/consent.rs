//! Whether a project's hook may be run: what the user has approved, and asking.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use calve_core::{CancelToken, ShownPath};
use calve_git::hooks::{self, Approvals, Hook, HookEnvironment};

use crate::failure::{FAILED, Failure, REFUSED};
use crate::{home, output, sys};

/// Opens the user's approvals of hooks. Fails if Calve's home is unknown.
pub(crate) fn approvals() -> Result<Approvals, Failure> {
    let home = home::directory().map_err(|why| {
        Failure::stated(
            FAILED,
            format!("it is not known which hooks you have approved: {why}"),
            "set HOME, or CALVE_HOME to an absolute path",
        )
    })?;
    Ok(Approvals::at(home.join("approved-hooks")))
}

/// Refuses unless `text` may be run as this hook of this repository (the directory that its worktrees share). On a terminal the user
/// is asked.
pub(crate) fn require(repository: &Path, hook: Hook, text: &str) -> Result<(), Failure> {
    let approvals = approvals()?;
    if approvals.has(repository, hook, text).map_err(failed)? {
        return Ok(());
    }
    if can_ask() && ask(hook, text) {
        return approvals.add(repository, hook, text).map_err(failed);
    }
    let hint = match hook {
        Hook::Create => "`calve hook approve` shows it and approves it",
        Hook::PostAdd | Hook::PreRemove => {
            "`calve hook approve` shows it and approves it; `--yes` runs it once, `--no-hooks` goes without"
        }
    };
    Err(Failure::stated(REFUSED, format!("the {} of this project is not approved", hook.title()), hint))
}

/// Returns whether somebody is there to answer.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Shows a hook and asks whether it may be run.
pub(crate) fn ask(hook: Hook, text: &str) -> bool {
    show(hook, text);
    yes("May it be run, now and whenever it is exactly this?")
}

/// Asks a question, and returns whether the answer is yes.
pub(crate) fn yes(question: &str) -> bool {
    let Ok(answers) = sys::Answers::new() else { return false };
    output::say(&format!("{question} [y/N]"));
    let answer = answers.line().ok().flatten().unwrap_or_default();
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Prints a hook, with escapes in place of characters that could fool a terminal or a reader.
pub(crate) fn show(hook: Hook, text: &str) {
    output::say(&format!("The {} of this project:", hook.title()));
    for line in text.lines() {
        let harmless: String = line.chars().flat_map(plain).collect();
        output::say(&format!("    {harmless}"));
    }
}

/// Escapes control characters and those that turn or hide text.
fn plain(character: char) -> Vec<char> {
    let hidden =
        matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    if character == '\t' {
        vec![' '; 4]
    } else if character.is_control() || hidden {
        character.escape_unicode().collect()
    } else {
        vec![character]
    }
}

/// Runs a hook that may be run, its output to stderr.
pub(crate) fn run(hook: Hook, text: &str, surroundings: &HookEnvironment, cancel: &CancelToken) -> Result<(), Failure> {
    let interrupted = || if cancel.is_cancelled() { Err(calve_git::Error::Interrupted) } else { Ok(()) };
    interrupted()?;
    let mut command = hooks::command(hook, text, surroundings);
    let status = sys::run_hook(command.stdout(io::stderr()))?;
    // Whatever the hook made of the signal.
    interrupted()?;
    if status.success() {
        return Ok(());
    }
    let (name, worktree) = (hook.name(), ShownPath(&surroundings.worktree));
    let text = format!("the {name} hook failed in `{worktree}`: {status}");
    Err(Failure::stated(
        FAILED,
        text,
        match hook {
            Hook::PostAdd | Hook::Create => {
                "the worktree is there; put right what the hook said, and run its commands in it yourself"
            }
            Hook::PreRemove => "the worktree is still there; put right what the hook said, or use `--no-hooks`",
        },
    ))
}

pub(crate) fn failed(error: calve_git::Error) -> Failure {
    Failure::stated(FAILED, error.to_string(), "check who may write there: approvals are kept under $CALVE_HOME")
}
