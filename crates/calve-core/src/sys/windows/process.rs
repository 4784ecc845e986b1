//! A process that outlives this one.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null;

use windows_sys::Win32::Foundation::{CloseHandle, ERROR_ACCESS_DENIED};
use windows_sys::Win32::System::SystemInformation::GetSystemDirectoryW;
use windows_sys::Win32::System::Threading::{
    CREATE_BREAKAWAY_FROM_JOB, CREATE_NEW_PROCESS_GROUP, CreateProcessW, DETACHED_PROCESS, IDLE_PRIORITY_CLASS,
    PROCESS_INFORMATION, STARTUPINFOW,
};

use super::{done, is, wide};

/// Starts `program ARGUMENTS`, detached: without a console, and without any handle of this process, so that nobody who reads this
/// process's output waits for it. Where the job that this process belongs to permits it, it leaves that job too.
///
/// Its current directory is the system's: nobody can rename or remove a directory that is some process's current one.
/// Nothing of the calling process is changed. An argument must not have a quotation mark in it, as no path can.
pub(crate) fn spawn_detached(program: &Path, arguments: &[&OsStr]) -> io::Result<()> {
    let mut line = OsString::new();
    for part in [program.as_os_str()].iter().chain(arguments) {
        if part.encode_wide().any(|unit| unit == u16::from(b'"') || unit == 0) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        line.push(if line.is_empty() { "\"" } else { " \"" });
        line.push(part);
        // Backslashes before a quotation mark count double.
        let backslashes = part.as_encoded_bytes().iter().rev().take_while(|&&byte| byte == b'\\').count();
        line.push("\\".repeat(backslashes));
        line.push("\"");
    }
    let flags = DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP | IDLE_PRIORITY_CLASS;
    match create(program, &line, flags | CREATE_BREAKAWAY_FROM_JOB) {
        Err(error) if is(&error, ERROR_ACCESS_DENIED) => create(program, &line, flags),
        other => other,
    }
}

fn create(program: &Path, line: &OsStr, flags: u32) -> io::Result<()> {
    let program = wide(program);
    let mut line = wide(Path::new(line));
    let directory = system_directory()?;
    let startup = STARTUPINFOW { cb: size_of::<STARTUPINFOW>() as u32, ..STARTUPINFOW::default() };
    let mut made = PROCESS_INFORMATION::default();
    // SAFETY: strings with a NUL at their end, of which the command line may be written to; a null pointer where the call takes what
    // this process has; the two structures live until it returns. No handle is inherited.
    done(unsafe {
        CreateProcessW(
            program.as_ptr(),
            line.as_mut_ptr(),
            null(),
            null(),
            0,
            flags,
            null(),
            directory.as_ptr(),
            &startup,
            &mut made,
        )
    })?;
    for handle in [made.hProcess, made.hThread] {
        // SAFETY: the call has just opened it, and nothing else closes it.
        unsafe { CloseHandle(handle) };
    }
    Ok(())
}

/// Returns the path of the system's directory, with a NUL at its end.
fn system_directory() -> io::Result<Vec<u16>> {
    let mut path = vec![0u16; 1024];
    // SAFETY: at most as many units are written as there is room for.
    let length = unsafe { GetSystemDirectoryW(path.as_mut_ptr(), path.len() as u32) };
    done(i32::from(length > 0 && (length as usize) < path.len()))?;
    Ok(path)
}
