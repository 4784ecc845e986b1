//! Output, and its place: results on stdout, prose on stderr.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use crate::failure::Failure;

/// Prints one line, or a few, for people, on stderr.
pub(crate) fn say(text: &str) {
    // Nobody is left to tell when stderr is gone.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints a message that `--quiet` suppresses. Errors, warnings and results use other functions.
pub(crate) fn note(text: &str) {
    if !is_quiet() {
        say(text);
    }
}

/// Set by `--quiet`, which every command takes.
static QUIET: AtomicBool = AtomicBool::new(false);

pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints bytes on stderr as they are, without the newline that [`say`] adds.
pub(crate) fn say_bytes(bytes: &[u8]) {
    let _ = io::stderr().lock().write_all(bytes);
}

pub(crate) fn error(text: &str, hint: Option<&str>) {
    let (red, cyan, reset) = if coloured() { ("\x1b[1;31m", "\x1b[1;36m", "\x1b[0m") } else { ("", "", "") };
    say(&format!("{red}error:{reset} {text}"));
    if let Some(hint) = hint {
        say(&format!("{cyan}hint:{reset} {hint}"));
    }
}

/// Prints an error and its hint, and says how the program ends.
pub(crate) fn failure(failure: &Failure) -> ExitCode {
    if let Some(receipt) = failure.receipt() {
        error(&receipt.message, receipt.hint.as_deref());
    }
    ExitCode::from(failure.code())
}

/// Prints an error like [`failure`], and as the command's JSON document too, if the command has printed none.
pub(crate) fn failure_as_json(failed: &Failure) -> ExitCode {
    let code = failure(failed);
    let document = failed.receipt().filter(|_| !matches!(failed, Failure::Output(_)) && !has_printed_json());
    if let Some(document) = document {
        // The exit code says that the command has failed, whatever becomes of this.
        let _ = json(&document);
    }
    code
}

/// Reports whether stderr is a terminal that wants colours (no-color.org).
fn coloured() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Set by the first document: a command prints one.
static PRINTED_JSON: AtomicBool = AtomicBool::new(false);

fn has_printed_json() -> bool {
    PRINTED_JSON.load(Ordering::Relaxed)
}

/// Prints one JSON document on stdout.
pub(crate) fn json(document: &impl Serialize) -> Result<(), Failure> {
    PRINTED_JSON.store(true, Ordering::Relaxed);
    let text = serde_json::to_string_pretty(document).map_err(|error| Failure::Output(error.into()))?;
    result(&(text + "\n"))
}

/// Prints the result of a command on stdout.
pub(crate) fn result(text: &str) -> Result<(), Failure> {
    write(text.as_bytes())
}

/// Prints a path alone on stdout, byte for byte, for a program to read.
pub(crate) fn path(path: &std::path::Path) -> Result<(), Failure> {
    write(&[crate::sys::path_bytes(path), b"\n"].concat())
}

/// Prints a part of a command's result, byte for byte.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    write(bytes)
}

fn write(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        // The reader has seen enough, as `head` does: that is no failure.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(Failure::Output),
    }
}
