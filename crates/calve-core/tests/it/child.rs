//! Tests that need a process of their own: another user, another umask, a namespace.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Command;

use calve_testkit::{Volume, copy_program};
use fs_err as fs;

const DIRECTORY: &str = "CALVE_TEST_CHILD_DIRECTORY";

/// The directory that the parent has prepared, in the child; `None` in the parent.
pub fn directory() -> Option<PathBuf> {
    env::var_os(DIRECTORY).map(PathBuf::from)
}

#[cfg(target_os = "linux")]
/// Makes `directory` the directory of a child that the caller runs.
pub fn in_directory(command: &mut Command, directory: &std::path::Path) {
    command.env(DIRECTORY, directory);
}

/// Runs the test `name` (its module path below the crate) again in a process of its own, in which [`directory`] is the one given.
/// `command` makes the command that runs the given program.
#[track_caller]
pub fn run(name: &str, directory: impl AsRef<OsStr>, command: impl FnOnce(&OsStr) -> Command) {
    let program = env::current_exe().unwrap().into_os_string();
    run_program(&program, name, directory.as_ref(), command);
}

/// [`run`], for a user who may not be able to reach this program where it was built: a copy of it is put into `volume`.
#[track_caller]
pub fn run_copied(name: &str, volume: &Volume, directory: impl AsRef<OsStr>, command: impl FnOnce(&OsStr) -> Command) {
    let copy = volume.path().join("the-tests");
    copy_program(env::current_exe().unwrap(), &copy);
    run_program(&OsString::from(&copy), name, directory.as_ref(), command);
    fs::remove_file(copy).unwrap();
}

#[track_caller]
fn run_program(program: &OsStr, name: &str, directory: &OsStr, command: impl FnOnce(&OsStr) -> Command) {
    let mut command = command(program);
    command.args([name, "--exact", "--nocapture", "--include-ignored"]).env(DIRECTORY, directory);
    let output = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}\n{out}\n{err}");
    assert!(out.contains("1 passed"), "the test `{name}` did not run:\n{out}\n{err}");
}
