//! `calve bench git`: what it measures and reports, what it leaves (nothing), and what it does with everything that goes wrong.

mod refusals;
mod report;
mod server;
mod trouble;

use std::ffi::OsStr;
use std::path::Path;

use calve_testkit::git;
use serde_json::Value;

use crate::program::{Calve, calve};

/// `calve bench git ... --into INTO`, of one round without words.
fn bench_git<S: AsRef<OsStr>>(into: impl AsRef<Path>, arguments: impl IntoIterator<Item = S>) -> Calve {
    calve(["bench", "git", "--into"]).arg(into.as_ref()).args(["-q", "--iterations", "1"]).args(arguments)
}

/// A made-up repository that takes no time.
const TINY: [&str; 6] =
    ["--synthetic=small", "--commits=40", "--files=30", "--file-size=2000", "--fetches=2", "--back=5"];

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
