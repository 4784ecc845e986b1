//! Injected faults happen where they were asked for, and are seen to have happened.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;

use calve_testkit::{Injection, each_nth, run_injected};

use crate::scratch;

fn mkdirs(dir: &std::path::Path) -> Command {
    let mut command = Command::new("mkdir");
    command.args(["a", "b", "c"]).current_dir(dir).env("LC_ALL", "C");
    command
}

#[test]
fn the_second_call_fails() {
    let dir = scratch();
    let injection = Injection { syscalls: "mkdir", fault: "error=ENOSPC", nth: 2 };
    let Some(outcome) = run_injected(&mkdirs(dir.path()), injection) else {
        return;
    };
    assert!(outcome.injected, "{}", outcome.trace);
    assert_eq!(outcome.status.code(), Some(1));
    assert!(outcome.stderr.contains("'b': No space left on device"), "{}", outcome.stderr);
    assert!(dir.path().join("a").exists() && !dir.path().join("b").exists() && dir.path().join("c").exists());
}

#[test]
fn a_call_that_is_not_reached_is_not_injected() {
    let dir = scratch();
    let injection = Injection { syscalls: "mkdir", fault: "error=ENOSPC", nth: 4 };
    let Some(outcome) = run_injected(&mkdirs(dir.path()), injection) else {
        return;
    };
    assert!(!outcome.injected && outcome.status.success(), "{outcome:?}");
}

#[test]
fn the_program_is_killed_at_the_call() {
    let dir = scratch();
    let injection = Injection { syscalls: "mkdir", fault: "signal=KILL", nth: 2 };
    let Some(outcome) = run_injected(&mkdirs(dir.path()), injection) else {
        return;
    };
    assert!(outcome.injected && outcome.status.signal() == Some(9), "{outcome:?}");
    assert!(dir.path().join("a").exists() && !dir.path().join("b").exists() && !dir.path().join("c").exists());
}

#[test]
fn other_signals_are_seen_too() {
    let dir = scratch();
    let injection = Injection { syscalls: "mkdir", fault: "signal=TERM", nth: 1 };
    let Some(outcome) = run_injected(&mkdirs(dir.path()), injection) else {
        return;
    };
    assert!(outcome.injected && outcome.status.signal() != Some(9) && !outcome.status.success(), "{outcome:?}");
}

#[test]
fn each_call_fails_once() {
    let mut dir = scratch();
    let mut failed = Vec::new();
    let undisturbed = each_nth(
        "mkdir",
        "error=EIO",
        10,
        || {
            dir = scratch();
            mkdirs(dir.path())
        },
        |nth, outcome| failed.push((nth, outcome.status.success())),
    );
    let Some(undisturbed) = undisturbed else {
        return;
    };
    assert!(undisturbed.status.success());
    assert_eq!(failed, [(1, false), (2, false), (3, false)]);
}
