//! Locks on files, which end with the process that holds them.

use std::fs::File;
use std::io;
use std::os::windows::io::AsRawHandle;

use windows_sys::Win32::Foundation::{ERROR_IO_PENDING, ERROR_LOCK_VIOLATION};
use windows_sys::Win32::Storage::FileSystem::{LOCKFILE_EXCLUSIVE_LOCK, LOCKFILE_FAIL_IMMEDIATELY, LockFileEx};
use windows_sys::Win32::System::IO::{OVERLAPPED, OVERLAPPED_0, OVERLAPPED_0_0};

use super::{done, is};

/// Far behind the contents: locks here keep others from reading and writing what they cover.
const POSITION_HIGH: u32 = 0x4000_0000;

/// Takes the lock of an open file for as long as the handle is open. An error for which [`is_locked_by_another`] holds when
/// somebody else has it.
pub(crate) fn try_lock(file: &File) -> io::Result<()> {
    let position = OVERLAPPED_0_0 { Offset: 0, OffsetHigh: POSITION_HIGH };
    let mut overlapped = OVERLAPPED { Anonymous: OVERLAPPED_0 { Anonymous: position }, ..OVERLAPPED::default() };
    let flags = LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY;
    // SAFETY: the handle is open as long as `file` lives, and opened for calls that wait, so that `overlapped` is only needed until
    // this one returns.
    done(unsafe { LockFileEx(file.as_raw_handle(), flags, 0, 1, 0, &mut overlapped) })
}

/// Returns whether [`try_lock`] has failed because the lock is held.
pub(crate) fn is_locked_by_another(error: &io::Error) -> bool {
    is(error, ERROR_LOCK_VIOLATION) || is(error, ERROR_IO_PENDING)
}
