//! Windows: the calls that the standard library has no safe form of.
//!
//! Paths that come in are verbatim (`\\?\C:\...`, see [`verbatim`]): no limit of 260 characters, and no name is interpreted.

#![allow(clippy::disallowed_methods, reason = "the engine adds path and operation to every error")]

mod contents;
mod entry;
mod identity;
mod lock;
mod process;
mod remedy;
mod reparse;
mod security;
mod streams;
mod volume;

use std::io;
use std::os::windows::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf, Prefix};
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::{ERROR_DIR_NOT_EMPTY, ERROR_LOCK_VIOLATION, ERROR_SHARING_VIOLATION};
use windows_sys::Win32::Storage::FileSystem::{
    MOVE_FILE_FLAGS, MOVEFILE_REPLACE_EXISTING, MOVEFILE_WRITE_THROUGH, MoveFileExW,
};

pub(crate) use contents::{copy_file, create_file, reflink};
pub(crate) use entry::{Identity, Info, hide, info, look, open, pin, set_attributes, set_basic};
pub(crate) use identity::{lower_priority, machine_identity, random, user_identity};
pub(crate) use lock::{is_locked_by_another, try_lock};
pub(crate) use process::spawn_detached;
pub(crate) use remedy::remedy;
pub(crate) use reparse::{read_link, write_link};
pub(crate) use security::{own_access, set_access};
pub(crate) use streams::streams;
pub(crate) use volume::{Volume, volume};

/// Returns the error of a call that says no by returning zero.
fn done(returned: i32) -> io::Result<()> {
    if returned == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Converts a path to UTF-16 with a NUL at its end.
fn wide(path: &Path) -> Vec<u16> {
    path.as_os_str().encode_wide().chain([0]).collect()
}

/// Returns the path from the root of its volume, in the form that is taken as it is.
pub(crate) fn verbatim(path: &Path) -> io::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    let mut parts = absolute.components();
    let Some(Component::Prefix(prefix)) = parts.next() else { return Ok(absolute) };
    let start = match prefix.kind() {
        Prefix::Disk(letter) => format!(r"\\?\{}:", char::from(letter)).into(),
        Prefix::UNC(server, share) => {
            let mut start = std::ffi::OsString::from(r"\\?\UNC\");
            start.push(server);
            start.push(r"\");
            start.push(share);
            start
        }
        _ => return Ok(absolute),
    };
    let mut verbatim = start;
    verbatim.push(parts.as_path());
    Ok(verbatim.into())
}

/// Gives `from` the name `to`, unless something has it.
pub(crate) fn rename_no_replace(from: &Path, to: &Path) -> io::Result<()> {
    move_file(from, to, MOVEFILE_WRITE_THROUGH)
}

/// Gives the file `from` the name `to`, in the place of a file that has it.
pub(crate) fn rename_replace_file(from: &Path, to: &Path) -> io::Result<()> {
    move_file(from, to, MOVEFILE_WRITE_THROUGH | MOVEFILE_REPLACE_EXISTING)
}

fn move_file(from: &Path, to: &Path, flags: MOVE_FILE_FLAGS) -> io::Result<()> {
    let (from, to) = (wide(from), wide(to));
    // SAFETY: two strings with a NUL at their end, which live until the call returns.
    done(unsafe { MoveFileExW(from.as_ptr(), to.as_ptr(), flags) })
}

/// How long a file that another program has open, in a way that forbids what is wanted, is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Repeats what fails because another program has the file open: virus scanners and indexers do, for a moment, with whatever is new.
pub(crate) fn patiently<T>(patience: Duration, mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let end = Instant::now() + patience;
    let mut wait = Duration::from_millis(1);
    loop {
        match call() {
            Err(error) if is_in_use(&error) && Instant::now() + wait < end => std::thread::sleep(wait),
            other => return other,
        }
        wait = (wait * 2).min(Duration::from_millis(100));
    }
}

/// How long the rename that publishes a clone is tried again, which may be hours of work.
pub(crate) const PUBLISH_PATIENCE: Duration = Duration::from_secs(60);

/// Returns whether another program's open handle is the reason. A directory is not empty as long as what was deleted in it is open.
pub(crate) fn is_in_use(error: &io::Error) -> bool {
    [ERROR_SHARING_VIOLATION, ERROR_LOCK_VIOLATION, ERROR_DIR_NOT_EMPTY].iter().any(|code| is(error, *code))
}

/// Returns the error of an entry that another program has open. Renames of directories fail with another one.
pub(crate) fn in_use() -> io::Error {
    io::Error::from_raw_os_error(ERROR_SHARING_VIOLATION.cast_signed())
}

/// Returns whether an error has this number, be it as it is or in an HRESULT, as the crate `windows` has it.
pub(crate) fn is(error: &io::Error, code: u32) -> bool {
    /// FACILITY_WIN32.
    const HRESULT: u32 = 0x8007_0000;
    let found = error.raw_os_error().map(i32::cast_unsigned);
    found == Some(code) || found == Some(HRESULT | code)
}

/// Returns a path that is not Unicode, and how it is printed.
#[cfg(test)]
pub(crate) fn undecodable_path() -> (PathBuf, &'static str) {
    use std::os::windows::ffi::OsStringExt;
    // Half of a surrogate pair.
    (std::ffi::OsString::from_wide(&[0x61, 0xd800, 0x7a]).into(), r"a\xed\xa0\x80z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_verbatim() {
        let cases = [
            (r"C:\a\b", r"\\?\C:\a\b"),
            (r"C:\a\..\b", r"\\?\C:\b"),
            (r"C:\", r"\\?\C:\"),
            (r"\\server\share\a", r"\\?\UNC\server\share\a"),
            (r"\\?\C:\a. ", r"\\?\C:\a. "),
        ];
        for (path, expected) in cases {
            assert_eq!(verbatim(Path::new(path)).unwrap(), Path::new(expected), "{path}");
        }
        let relative = verbatim(Path::new("a")).unwrap();
        assert!(relative.starts_with(r"\\?\") || relative.to_str().unwrap().starts_with(r"\\?\"), "{relative:?}");
    }

    #[test]
    fn numbers_are_found_in_other_numbers() {
        let number = |code: u32| io::Error::from_raw_os_error(code.cast_signed());
        assert!(is(&number(50), 50) && is(&number(0x8007_0032), 50));
        assert!(!is(&number(0x8007_0033), 50) && !is(&number(0x8004_0032), 50));
    }

    #[test]
    fn waiting_for_a_file_in_use_ends() {
        let mut calls = 0;
        let result: io::Result<()> = patiently(Duration::from_millis(50), || {
            calls += 1;
            Err(io::Error::from_raw_os_error(ERROR_SHARING_VIOLATION.cast_signed()))
        });
        assert!(is_in_use(&result.unwrap_err()));
        assert!(calls > 2, "{calls}");
        let other = patiently(PATIENCE, || Err::<(), _>(io::Error::from_raw_os_error(5)));
        assert_eq!(other.unwrap_err().raw_os_error(), Some(5));
    }
}
