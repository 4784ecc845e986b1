//! The reaper: a detached process that deletes trash after `calve` has returned.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};

use calve_core::{Background, Cancel, reap};
use rustix::fs::{CWD, Mode, OFlags};

use crate::failure::Failure;

/// Starts a reaper for the directory `parent`. It is handed over as an open descriptor, so that nothing can be put in its
/// place. Should it not start, the next `calve` in that directory tries again.
pub(crate) fn start(parent: &Path) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(directory) = rustix::fs::openat(CWD, parent, flags, Mode::empty()) else { return };
    let Ok(program) = std::env::current_exe() else { return };
    let _ = Command::new(program)
        .arg("__reap")
        .stdin(Stdio::from(directory))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        .spawn();
}

/// The reaper itself: standard input is the directory.
pub(crate) fn run() -> Result<(), Failure> {
    // Away from the terminal and its signals.
    let _ = rustix::process::setsid();
    let directory: OwnedFd = std::io::stdin().as_fd().try_clone_to_owned()?;
    // Signals end it where it is: the lock is then free, and the next reaper goes on.
    let report = reap(directory, Path::new("."), Background::Yes, &Cancel::default())?;
    match report.failure {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}
