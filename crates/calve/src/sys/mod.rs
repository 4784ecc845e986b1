//! The program's needs of its system: signals, processes, the terminal, paths as bytes.

mod command;
pub(crate) mod interrupt;

use std::ffi::{OsStr, c_int};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

pub(crate) use command::{Answers, TerminalModes, become_command, run_command, run_hook};

use calve_core::options::Background;
use calve_core::report::ReapReport;
use calve_core::{CancelToken, Error};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

pub(crate) const STOPPING: [c_int; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Strategies of other systems only, which nobody here needs to hear about.
pub(crate) const FOREIGN: &[calve_core::Strategy] =
    if cfg!(target_vendor = "apple") { &[] } else { &[calve_core::Strategy::Clonefile] };

/// Returns whether nobody's files are closed to this process for their owner's sake.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns whether what is there belongs to this user or to root.
pub(crate) fn is_trusted(path: &Path) -> io::Result<bool> {
    let owner = fs_err::metadata(path)?.uid();
    Ok(owner == 0 || owner == rustix::process::geteuid().as_raw())
}

pub(crate) fn leave_terminal() {
    let _ = rustix::process::setsid();
}

/// Runs the reaper itself, in the directory that is this process's standard input.
pub(crate) fn reap() -> Result<ReapReport, Error> {
    leave_terminal();
    let failed = |source| Error::Io {
        operation: calve_core::error::Operation::OpenDirectory,
        path: "/dev/stdin".into(),
        source,
    };
    let directory: OwnedFd = std::io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    calve_core::reap(directory, Path::new("."), Background::Yes, &CancelToken::default())
}

/// Supervises a database server. Standard input is the lock on the server's place; standard output leads to the process that wants it.
pub(crate) fn supervise(cancel: &CancelToken) -> Result<(), calve_db::Error> {
    let failed = |error| calve_db::Error::io(calve_db::Operation::Open, "/dev/stdin", error);
    let lock = io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    let talk = io::stdout().as_fd().try_clone_to_owned().map_err(failed)?;
    calve_db::supervise(lock, talk, cancel)
}

/// Returns how a command of the user's ended: the exit code to pass on, and the words. `None` when it ended well.
pub(crate) fn command_end(status: std::process::ExitStatus) -> Option<(u8, String)> {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) => Some((u8::try_from(code).unwrap_or(1), format!("exit code {code}"))),
        // As shells tell it.
        (None, signal) => {
            let signal = signal.unwrap_or_default();
            Some((u8::try_from(128 + signal).unwrap_or(1), format!("signal {signal}")))
        }
    }
}

/// Returns a path from the bytes that another program printed.
pub(crate) fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

pub(crate) fn path_bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// Returns why a program did not start, as shells have it: for one that is nowhere, the kernel names a directory of `PATH` that is closed.
pub(crate) fn without_closed_directories(program: &OsStr, error: io::Error) -> io::Error {
    let is_path = program.as_encoded_bytes().contains(&b'/');
    if error.kind() != io::ErrorKind::PermissionDenied || is_path {
        return error;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_somewhere = std::env::split_paths(&path).any(|directory| directory.join(program).symlink_metadata().is_ok());
    if is_somewhere { error } else { rustix::io::Errno::NOENT.into() }
}
