//! System calls of the program: signals, processes, the terminal, paths as bytes.

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
use calve_db::CommandEnd;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

pub(crate) const STOPPING: [c_int; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Strategies that exist only on other systems, omitted from messages here.
pub(crate) const FOREIGN: &[calve_core::Strategy] =
    if cfg!(target_vendor = "apple") { &[] } else { &[calve_core::Strategy::Clonefile] };

/// Returns whether file permissions do not apply to this process.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns whether this user or root owns the path.
pub(crate) fn is_trusted(path: &Path) -> io::Result<bool> {
    let owner = fs_err::metadata(path)?.uid();
    Ok(owner == 0 || owner == rustix::process::geteuid().as_raw())
}

pub(crate) fn leave_terminal() {
    let _ = rustix::process::setsid();
}

/// Runs as the reaper, in the directory on standard input.
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

/// Supervises a database server. Stdin is the lock on the server's place; stdout is the starter's socket.
pub(crate) fn supervise(cancel: &CancelToken) -> Result<(), calve_db::Error> {
    let failed = |error| calve_db::Error::io("open", "/dev/stdin", error);
    let lock = io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    let talk = io::stdout().as_fd().try_clone_to_owned().map_err(failed)?;
    calve_db::supervise(lock, talk, cancel)
}

/// Returns how a user's command failed. `None` on success.
pub(crate) fn command_end(status: std::process::ExitStatus) -> Option<CommandEnd> {
    use std::os::unix::process::ExitStatusExt as _;
    let (code, how) = match (status.code(), status.signal().unwrap_or_default()) {
        (Some(0), _) => return None,
        (Some(code), _) => (code, format!("exit code {code}")),
        // As shells report it.
        (None, signal) => (128 + signal, format!("signal {signal}")),
    };
    Some(CommandEnd { code: u8::try_from(code).unwrap_or(1), how })
}

pub(crate) fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

pub(crate) fn path_bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// Returns the shells' reason: for a missing program, the kernel reports an inaccessible directory of `PATH`.
pub(crate) fn without_closed_directories(program: &OsStr, error: io::Error) -> io::Error {
    let is_path = program.as_encoded_bytes().contains(&b'/');
    if error.kind() != io::ErrorKind::PermissionDenied || is_path {
        return error;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_somewhere = std::env::split_paths(&path).any(|directory| directory.join(program).symlink_metadata().is_ok());
    if is_somewhere { error } else { rustix::io::Errno::NOENT.into() }
}
