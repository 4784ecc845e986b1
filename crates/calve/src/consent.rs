//! Asks the user for consent, above all to a project's hooks.

use std::io::{self, IsTerminal as _};

use calve_env::Consent;
use calve_git::hooks::Hook;

use crate::failure::{Failure, REFUSED};
use crate::{output, sys};

pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && output::is_on_terminal()
}

pub(crate) fn to_hooks(no_hooks: bool, yes: bool) -> Consent {
    match (no_hooks, yes) {
        (true, _) => Consent::Nothing,
        (_, true) => Consent::Everything,
        _ => Consent::Approved,
    }
}

pub(crate) const MAY_RUN: &str = "Allow it to run, now and whenever it is unchanged?";

pub(crate) fn yes(question: &str) -> bool {
    let Ok(mut answers) = sys::Answers::new() else { return false };
    output::prompt(&format!("{question} [y/N]"));
    let answer = answers.line().ok().flatten().unwrap_or_default();
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Fails unless the user agrees, with `--yes` (`is_given`) or on a terminal.
pub(crate) fn require(is_given: bool, question: &str, refused: &str, hint: &str) -> Result<(), Failure> {
    match is_given || can_ask() && yes(question) {
        true => Ok(()),
        false => Err(Failure::stated(REFUSED, refused, hint)),
    }
}

/// Asks, or fails without a terminal.
pub(crate) fn confirm(what: &str, question: &str, hint: &str) -> Result<bool, Failure> {
    if !can_ask() {
        let text = format!("{what} needs confirmation, but there is no terminal");
        return Err(Failure::stated(REFUSED, text, hint));
    }
    Ok(yes(question))
}

/// Prints a hook, escaping characters that could fool a terminal or a reader.
pub(crate) fn show(hook: Hook, text: &str, print: fn(&str)) {
    print(&format!("The {} of this project:", hook.title()));
    for line in text.lines() {
        let harmless: String = line.chars().map(plain).collect();
        print(&format!("    {harmless}"));
    }
}

/// Escapes control characters, and characters that reverse, hide or break text.
fn plain(character: char) -> String {
    match character {
        '\t' => " ".repeat(4),
        '"' | '\'' | '\\' => character.to_string(),
        // After a letter, `escape_debug` leaves its combining mark alone.
        _ if format!("a{character}").escape_debug().count() > 2 => character.escape_unicode().to_string(),
        _ => character.to_string(),
    }
}
