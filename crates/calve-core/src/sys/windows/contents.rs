//! The contents of one file: shared or copied.

use std::ffi::c_void;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::null_mut;

use windows_sys::Win32::Foundation::{GENERIC_READ, GENERIC_WRITE, HANDLE};
use windows_sys::Win32::Storage::FileSystem::{
    COPY_FILE_FAIL_IF_EXISTS, CopyFileExW, FILE_SHARE_READ, LPPROGRESS_ROUTINE_CALLBACK_REASON, PROGRESS_CANCEL,
    PROGRESS_CONTINUE, WRITE_DAC,
};

use super::{done, wide};
use crate::progress::CancelToken;

/// Copies a file with all of its streams, its attributes and its time of writing. There must be nothing at `to`.
///
/// When cancelled: ERROR_REQUEST_ABORTED, and nothing is left.
pub(crate) fn copy_file(from: &Path, to: &Path, cancel: &CancelToken) -> io::Result<()> {
    let (from, to) = (wide(from), wide(to));
    let cancel: *const CancelToken = cancel;
    // SAFETY: two strings with a NUL at their end, and a pointer to what `progress` expects; all live until the call returns.
    done(unsafe {
        CopyFileExW(from.as_ptr(), to.as_ptr(), Some(progress), cancel.cast(), null_mut(), COPY_FILE_FAIL_IF_EXISTS)
    })
}

/// Called by the system after every piece of a file.
unsafe extern "system" fn progress(
    _size: i64,
    _transferred: i64,
    _stream_size: i64,
    _stream_transferred: i64,
    _stream: u32,
    _reason: LPPROGRESS_ROUTINE_CALLBACK_REASON,
    _source: HANDLE,
    _destination: HANDLE,
    data: *const c_void,
) -> u32 {
    // SAFETY: `copy_file` has handed over a pointer to a `CancelToken` that outlives the call.
    let cancel = unsafe { &*data.cast::<CancelToken>() };
    if cancel.is_cancelled() { PROGRESS_CANCEL } else { PROGRESS_CONTINUE }
}

/// Makes a new file, open for whatever is to be done with it.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .access_mode(GENERIC_READ | GENERIC_WRITE | WRITE_DAC)
        .share_mode(FILE_SHARE_READ)
        .create_new(true)
        .write(true)
        .open(path)
}

/// Shares the blocks of an open file with the open, empty file `to` (ReFS, Dev Drive), in pieces below 4 GiB.
pub(crate) fn reflink(from: &File, to: &File) -> io::Result<()> {
    reflink_copy::reflink_file(from, to)
}
