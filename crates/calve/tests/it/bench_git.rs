//! `calve bench git`: what it measures and reports, what it leaves (nothing), and what it does with everything that goes wrong.

mod refusals;
mod report;
mod server;
mod trouble;

use std::ffi::OsStr;
use std::path::Path;

use calve_testkit::git_command;
use serde_json::Value;

use crate::program::{Calve, calve};

/// `calve bench git ... --into INTO`, of one round without words.
fn bench_git<S: AsRef<OsStr>>(into: impl AsRef<Path>, arguments: impl IntoIterator<Item = S>) -> Calve {
    calve(["bench", "git", "--into"]).arg(into.as_ref()).args(["-q", "--iterations", "1"]).args(arguments)
}

/// A made-up repository that takes no time.
const TINY: [&str; 6] =
    ["--synthetic=small", "--commits=40", "--files=30", "--file-size=2000", "--fetches=2", "--back=5"];

/// Runs git, as somebody with a name and nothing else configured.
#[track_caller]
fn git<S: AsRef<OsStr>>(directory: impl AsRef<Path>, arguments: impl IntoIterator<Item = S>) -> String {
    let mut command = git_command(directory);
    command.args(["-c", "user.name=A", "-c", "user.email=a@localhost"]).args(arguments).env("HOME", "/nonexistent");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A repository with so many commits, each of which changes a file.
fn repository(at: impl AsRef<Path>, commits: u32) {
    let at = at.as_ref();
    fs_err::create_dir_all(at).unwrap();
    git(at, ["init", "-q", "-b", "main"]);
    for number in 0..commits {
        fs_err::write(at.join("a"), "line\n".repeat(number as usize + 1)).unwrap();
        git(at, ["add", "-A"]);
        git(at, ["commit", "-q", "-m", &format!("{number}")]);
    }
}

/// The entry of a list for that test and operation.
#[track_caller]
fn of<'a>(list: &'a Value, test: &str, operation: &str) -> &'a Value {
    let found = list.as_array().unwrap().iter().find(|one| one["test"] == test && one["operation"] == operation);
    found.unwrap_or_else(|| panic!("no {operation} of {test} in {list:#}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}
