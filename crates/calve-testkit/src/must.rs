//! Panics that name the path and the operation.

use std::fmt::Display;
use std::path::Path;
use std::process::Command;

/// Unwraps `result`, or fails the test with "cannot `action` `path`: reason".
#[track_caller]
pub(crate) fn must<T, E: Display>(result: Result<T, E>, action: &str, path: &Path) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("cannot {action} `{}`: {error}", path.display()),
    }
}

/// Runs a program, and returns its standard output, or fails the test with what it said.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> String {
    let output = must(command.output(), "run", Path::new(command.get_program()));
    assert!(output.status.success(), "{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
