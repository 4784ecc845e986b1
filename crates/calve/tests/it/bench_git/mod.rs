//! `calve bench git`: what it measures and reports, what it leaves (nothing), and what it does with everything that goes wrong.

mod refusals;
mod report;
mod trouble;

use std::ffi::OsStr;
use std::path::Path;

use calve_testkit::{SplitMix64, git};
use serde_json::Value;

use crate::program::{Calve, calve};
use crate::spot::Spot;

/// `calve bench git ... --into INTO`, of one round without words.
fn bench_git<S: AsRef<OsStr>>(into: impl AsRef<Path>, arguments: impl IntoIterator<Item = S>) -> Calve {
    calve(["bench", "git", "--into"]).arg(into.as_ref()).args(["-q", "--runs", "1"]).args(arguments)
}

/// Makes a repository with `git fast-import`, the same each time, with `files` files of incompressible contents. Each commit after the
/// first changes one of the first five files.
fn made_up(spot: &Spot, commits: u32, files: u32, bytes: usize) -> String {
    let mut stream = Vec::new();
    let mut random = SplitMix64::new(1);
    for commit in 0..commits {
        let time = 1_577_836_800 + u64::from(commit) * 3600;
        stream.extend(format!("commit refs/heads/main\ncommitter A <a@b> {time} +0000\ndata 1\nx\n").into_bytes());
        let changed = commit % files.min(5);
        let changed = if commit == 0 { 0..files } else { changed..changed + 1 };
        for file in changed {
            stream.extend(format!("M 644 inline d{}/f{file}\ndata {}\n", file % 3, bytes).into_bytes());
            stream.extend(random.bytes(bytes));
            stream.push(b'\n');
        }
    }
    let at = spot.join("made-up");
    git(&**spot, ["init", "-q", "--bare", "-b", "main", "made-up"]);
    fs_err::write(spot.join("stream"), stream).unwrap();
    let mut import = std::process::Command::new("git");
    import
        .arg("-C")
        .arg(&at)
        .args(["-c", "core.compression=0", "fast-import", "--quiet"])
        .stdin(fs_err::File::open(spot.join("stream")).unwrap().into_file());
    assert!(import.status().unwrap().success());
    format!("--repo={}", at.display())
}

/// One that takes no time.
fn tiny(spot: &Spot) -> String {
    made_up(spot, 40, 30, 2000)
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
