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
fn a_call_fails_or_kills_where_it_was_asked_to_and_one_that_is_not_reached_does_not() {
    for (fault, nth, ended, made) in [
        ("error=ENOSPC", 2, (Some(1), None), [true, false, true]),
        ("error=ENOSPC", 4, (Some(0), None), [true; 3]),
        ("signal=KILL", 2, (None, Some(9)), [true, false, false]),
        // It comes at the end of the call.
        ("signal=TERM", 1, (None, Some(15)), [true, false, false]),
    ] {
        let dir = scratch();
        let Some(outcome) = run_injected(&mkdirs(dir.path()), Injection { syscalls: "mkdir", fault, nth }) else {
            return;
        };
        assert_eq!(outcome.injected, nth < 4, "{outcome:?}");
        assert_eq!((outcome.status.code(), outcome.status.signal()), ended, "{outcome:?}");
        assert_eq!(outcome.stderr.contains("'b': No space left on device"), ended.0 == Some(1), "{outcome:?}");
        assert_eq!(["a", "b", "c"].map(|name| dir.path().join(name).exists()), made, "{outcome:?}");
    }
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
