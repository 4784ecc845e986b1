//! Programs that tests write can be run, whatever else is started at that moment.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use calve_testkit::{copy_program, spawn_written, write_program};

use crate::scratch;

#[test]
fn a_written_program_can_be_run_while_others_are_started() {
    let (folder, done) = (scratch(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    assert!(Command::new("true").status().unwrap().success());
                }
            });
        }
        for number in 0..100 {
            let [written, copied, own] = ["written", "copied", "own"].map(|name| folder.path().join(name));
            write_program(&written, format!("#!/bin/sh\nexit {}\n", number % 3));
            assert_eq!(Command::new(&written).status().unwrap().code(), Some(number % 3));
            copy_program(&written, &copied);
            assert_eq!(Command::new(&copied).status().unwrap().code(), Some(number % 3));
            // By this process, which the others may inherit.
            fs_err::copy(&written, &own).unwrap();
            assert_eq!(spawn_written(&mut Command::new(&own)).wait().unwrap().code(), Some(number % 3));
        }
        done.store(true, Ordering::Relaxed);
    });
}
