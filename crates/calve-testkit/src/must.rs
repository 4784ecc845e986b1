use std::fmt::Display;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Unwraps `result`, or panics with "cannot `action` `path`: reason".
#[track_caller]
pub(crate) fn must<T, E: Display>(result: Result<T, E>, action: &str, path: &Path) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("cannot {action} `{}`: {error}", path.display()),
    }
}

/// Runs a program and returns its standard output. Panics with its standard error if it fails.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> String {
    let output = must(command.output(), "run", Path::new(command.get_program()));
    assert!(output.status.success(), "{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a program with `input` on stdin. Panics if it fails.
#[track_caller]
pub(crate) fn feed(command: &mut Command, input: &[u8]) {
    let program = Path::new(command.get_program()).to_owned();
    let mut child = must(command.stdin(Stdio::piped()).spawn(), "run", &program);
    // Dropping stdin here ends the input.
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(input));
    must(written, "write to", &program);
    assert!(must(child.wait(), "wait for", &program).success(), "{command:?} failed");
}
