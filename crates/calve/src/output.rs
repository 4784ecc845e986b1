//! Output: results on stdout, messages on stderr.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use calve_core::internal::ShownPath;
use calve_receipt::ErrorCode;
use serde::Serialize;

use crate::failure::{FAILED, Failure};

/// The only access to stderr: `clippy.toml` forbids it elsewhere, so that nothing bypasses `--quiet`.
#[allow(clippy::disallowed_methods)]
fn stderr() -> io::Stderr {
    io::stderr()
}

fn say(text: &str) {
    // If stderr is gone, the failure cannot be reported.
    let _ = writeln!(stderr().lock(), "{text}");
}

const WARNING: &str = "warning: ";

/// Prints a warning of a loss or of an unexpected result, even with `--quiet`.
pub(crate) fn warn(text: &str) {
    note(&format!("{WARNING}{text}"));
}

pub(crate) fn hint(text: &str) {
    say(&format!("hint: {text}"));
}

/// Warns of a record under Calve's home that this version cannot read and so does not list.
pub(crate) fn warn_of_record(path: &Path) {
    warn(&format!("`{}` is damaged, or of another version, so it is not listed", ShownPath(path)));
}

/// Prints a summary, hint or fact. `--quiet` suppresses all but warnings. Errors and results use other functions.
pub(crate) fn note(text: &str) {
    if !is_quiet() || text.starts_with(WARNING) {
        say(text);
    }
}

/// Prints a question and its subject, even with `--quiet`. Only for a user who can answer, or before an error.
pub(crate) fn prompt(text: &str) {
    say(text);
}

/// Returns [`prompt`] for text before a question, else [`note`].
pub(crate) fn prompt_if(asks: bool) -> fn(&str) {
    if asks { prompt } else { note }
}

pub(crate) fn is_on_terminal() -> bool {
    stderr().is_terminal()
}

pub(crate) fn shows_progress() -> bool {
    !is_quiet() && is_on_terminal()
}

/// Replaces the last progress shown on the terminal. An empty text clears the line.
pub(crate) fn progress(text: &str) {
    if shows_progress() {
        let _ = write!(stderr().lock(), "\r\x1b[K{text}");
    }
}

/// Returns standard error, for the output of a command that is not Calve's result.
pub(crate) fn for_command() -> Stdio {
    Stdio::from(stderr())
}

static QUIET: AtomicBool = AtomicBool::new(false);

pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints raw bytes on stderr: another program's output, or output that the user has just requested.
pub(crate) fn pass_on(bytes: &[u8]) {
    let _ = stderr().lock().write_all(bytes);
}

pub(crate) fn error(text: &str, hint: Option<&str>) {
    // See no-color.org.
    let has_colours = is_on_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let (red, cyan, reset) = if has_colours { ("\x1b[1;31m", "\x1b[1;36m", "\x1b[0m") } else { ("", "", "") };
    say(&format!("{red}error:{reset} {text}"));
    if let Some(hint) = hint {
        say(&format!("{cyan}hint:{reset} {hint}"));
    }
}

/// Prints an error and its hint, and returns the exit code.
pub(crate) fn failure(failure: &Failure) -> ExitCode {
    if let Some(receipt) = &failure.receipt {
        error(&receipt.message, receipt.hint.as_deref());
    }
    ExitCode::from(failure.code)
}

/// Prints an error like [`failure`], and also as the command's JSON document, unless it has printed one.
pub(crate) fn failure_as_json(failed: &Failure) -> ExitCode {
    let code = failure(failed);
    if let Some(document) = failed.receipt.as_ref().filter(|_| !IS_STDOUT_DONE.load(Ordering::Relaxed)) {
        // The exit code reports the failure in any case.
        let _ = json(document);
    }
    code
}

/// Set by the first document, because a command prints only one, or when stdout fails.
static IS_STDOUT_DONE: AtomicBool = AtomicBool::new(false);

pub(crate) fn json(document: &impl Serialize) -> Result<(), Failure> {
    IS_STDOUT_DONE.store(true, Ordering::Relaxed);
    let text = serde_json::to_string_pretty(document).map_err(|error| not_written(&error.into()))?;
    result(&(text + "\n"))
}

pub(crate) fn json_if(is_wanted: bool, document: &impl Serialize) -> Result<(), Failure> {
    if is_wanted { json(document) } else { Ok(()) }
}

/// Prints the document if it is wanted, else the text.
pub(crate) fn json_or(is_wanted: bool, document: &impl Serialize, text: &str) -> Result<(), Failure> {
    if is_wanted { json(document) } else { result(text) }
}

/// Returns lines of a name and more, aligned.
pub(crate) fn table(rows: impl IntoIterator<Item = (String, String)>) -> String {
    let rows: Vec<_> = rows.into_iter().collect();
    let widest = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    rows.iter().map(|(name, more)| format!("{name:widest$}  {more}").trim_end().to_owned() + "\n").collect()
}

pub(crate) fn result(text: &str) -> Result<(), Failure> {
    bytes(text.as_bytes())
}

/// Prints a server's log without control characters, because clients choose parts of it.
pub(crate) fn log(text: &str) -> Result<(), Failure> {
    let is_plain = |c: &char| !c.is_control() || "\n\t".contains(*c);
    result(&text.chars().filter(is_plain).collect::<String>())
}

/// Prints only a path on stdout, byte for byte, for a program to read.
pub(crate) fn path(path: &Path) -> Result<(), Failure> {
    bytes(&[crate::sys::path_bytes(path), b"\n"].concat())
}

/// Prints part of a command's result, byte for byte.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        // The reader has seen enough, like `head`: not a failure.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| not_written(&error)),
    }
}

/// Builds the failure of a command that has done its work.
fn not_written(error: &io::Error) -> Failure {
    IS_STDOUT_DONE.store(true, Ordering::Relaxed);
    let text = format!("write the report to stdout: {error}");
    let hint = "only the report was lost; everything else was done";
    Failure::in_words(FAILED, ErrorCode::Io, text, Some(hint.into()), None)
}
