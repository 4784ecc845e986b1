//! Windows.

use std::ffi::c_int;
use std::io;
use std::path::Path;

use calve_core::{Background, Cancel, Error, ReapReport, Strategy};
use signal_hook::consts::{SIGINT, SIGTERM};
use windows_sys::Win32::Foundation as code;

/// The signals that ask to stop: Ctrl-C, and what the C library calls termination.
pub(crate) const STOPPING: [c_int; 2] = [SIGINT, SIGTERM];

/// Strategies of other systems only, which nobody here needs to hear about.
pub(crate) const FOREIGN: &[Strategy] = &[Strategy::Snapshot, Strategy::Clonefile];

/// Starts a reaper for the directory `parent`. Should it not start, the next `calve` in that directory tries again.
pub(crate) fn start_reaper(program: &Path, parent: &Path) {
    let _ = calve_core::start_reaper(program, parent);
}

/// The reaper itself.
pub(crate) fn reap(parent: &Path) -> Result<ReapReport, Error> {
    calve_core::reap(parent, Background::Yes, &Cancel::default())
}

/// Opens a file of this user's. Who may write there is up to the folder's access control list, which is the user's own.
pub(crate) fn open_own_file(path: &Path) -> io::Result<fs_err::File> {
    fs_err::File::open(path)
}

/// Makes a directory, and what is above it, with the access control list of the user's folder.
pub(crate) fn make_private_folder(path: &Path) -> io::Result<()> {
    fs_err::create_dir_all(path)
}

/// Creates a file, with the access control list of its folder.
pub(crate) fn create_private_file(path: &Path) -> io::Result<fs_err::File> {
    fs_err::OpenOptions::new().write(true).create_new(true).open(path)
}

/// "ERROR_NOT_SUPPORTED".
pub(crate) fn error_name(number: i32) -> String {
    let known = NAMES.iter().find(|(code, _)| code.cast_signed() == number);
    known.map_or_else(|| format!("error {number}"), |(_, name)| (*name).to_owned())
}

/// Those that a receipt can have.
const NAMES: &[(u32, &str)] = &[
    (code::ERROR_INVALID_FUNCTION, "ERROR_INVALID_FUNCTION"),
    (code::ERROR_FILE_NOT_FOUND, "ERROR_FILE_NOT_FOUND"),
    (code::ERROR_PATH_NOT_FOUND, "ERROR_PATH_NOT_FOUND"),
    (code::ERROR_ACCESS_DENIED, "ERROR_ACCESS_DENIED"),
    (code::ERROR_NOT_SAME_DEVICE, "ERROR_NOT_SAME_DEVICE"),
    (code::ERROR_WRITE_PROTECT, "ERROR_WRITE_PROTECT"),
    (code::ERROR_SHARING_VIOLATION, "ERROR_SHARING_VIOLATION"),
    (code::ERROR_LOCK_VIOLATION, "ERROR_LOCK_VIOLATION"),
    (code::ERROR_HANDLE_DISK_FULL, "ERROR_HANDLE_DISK_FULL"),
    (code::ERROR_NOT_SUPPORTED, "ERROR_NOT_SUPPORTED"),
    (code::ERROR_FILE_EXISTS, "ERROR_FILE_EXISTS"),
    (code::ERROR_INVALID_PARAMETER, "ERROR_INVALID_PARAMETER"),
    (code::ERROR_DISK_FULL, "ERROR_DISK_FULL"),
    (code::ERROR_INVALID_NAME, "ERROR_INVALID_NAME"),
    (code::ERROR_ALREADY_EXISTS, "ERROR_ALREADY_EXISTS"),
    (code::ERROR_BLOCK_TOO_MANY_REFERENCES, "ERROR_BLOCK_TOO_MANY_REFERENCES"),
    (code::ERROR_TOO_MANY_LINKS, "ERROR_TOO_MANY_LINKS"),
    (code::ERROR_PRIVILEGE_NOT_HELD, "ERROR_PRIVILEGE_NOT_HELD"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_number_is_always_text() {
        assert_eq!(error_name(50), "ERROR_NOT_SUPPORTED");
        assert_eq!(error_name(99_999), "error 99999");
    }
}
