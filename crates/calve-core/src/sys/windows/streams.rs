//! Alternate data streams: further contents of a file, under names behind a colon.

use std::ffi::OsString;
use std::io;
use std::mem::MaybeUninit;
use std::os::windows::ffi::OsStringExt;
use std::path::Path;

use windows_sys::Win32::Foundation::{
    ERROR_HANDLE_EOF, ERROR_INVALID_FUNCTION, ERROR_INVALID_PARAMETER, ERROR_NOT_SUPPORTED, HANDLE,
    INVALID_HANDLE_VALUE,
};
use windows_sys::Win32::Storage::FileSystem::{
    FindClose, FindFirstStreamW, FindNextStreamW, FindStreamInfoStandard, WIN32_FIND_STREAM_DATA,
};

use super::{done, is, wide};

/// Returns the names of the streams beside the main one, each with its colon (`:Zone.Identifier`). Empty where the file system has none.
pub(crate) fn streams(path: &Path) -> io::Result<Vec<OsString>> {
    let wide = wide(path);
    let mut found = MaybeUninit::<WIN32_FIND_STREAM_DATA>::zeroed();
    // SAFETY: a string with a NUL at its end, and a structure of the kind that is asked for.
    let handle = unsafe { FindFirstStreamW(wide.as_ptr(), FindStreamInfoStandard, found.as_mut_ptr().cast(), 0) };
    if handle == INVALID_HANDLE_VALUE {
        let error = io::Error::last_os_error();
        // No stream at all, as with directories; a file system that has none.
        let none = [ERROR_HANDLE_EOF, ERROR_INVALID_PARAMETER, ERROR_INVALID_FUNCTION, ERROR_NOT_SUPPORTED];
        return if none.iter().any(|code| is(&error, *code)) { Ok(Vec::new()) } else { Err(error) };
    }
    let search = Search(handle);
    let mut names = Vec::new();
    loop {
        // SAFETY: integers, all zero or filled by the call.
        names.extend(name(unsafe { found.assume_init_ref() }));
        // SAFETY: the search is open, and the structure is of the kind that it was opened for.
        match done(unsafe { FindNextStreamW(search.0, found.as_mut_ptr().cast()) }) {
            Ok(()) => {}
            Err(error) if is(&error, ERROR_HANDLE_EOF) => return Ok(names),
            Err(error) => return Err(error),
        }
    }
}

/// Parses the name of a stream, `:name:$DATA`, without its type. Returns `None` for the main stream, which has no name.
fn name(found: &WIN32_FIND_STREAM_DATA) -> Option<OsString> {
    const COLON: u16 = b':' as u16;
    let text = &found.cStreamName;
    let end = text.iter().position(|&unit| unit == 0).unwrap_or(text.len());
    let behind = text[..end].strip_prefix(&[COLON])?;
    let length = behind.iter().position(|&unit| unit == COLON).unwrap_or(behind.len());
    (length > 0).then(|| OsString::from_wide(&text[..=length]))
}

struct Search(HANDLE);

impl Drop for Search {
    fn drop(&mut self) {
        // SAFETY: the search was opened by the call that returned its handle, and is closed here only.
        unsafe { FindClose(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_stream_is_not_one_of_the_names() {
        for (text, expected) in [("::$DATA", None), (":a b:$DATA", Some(":a b")), (":x", Some(":x")), ("", None)] {
            let mut found = WIN32_FIND_STREAM_DATA { StreamSize: 0, cStreamName: [0; 296] };
            for (unit, slot) in text.encode_utf16().zip(&mut found.cStreamName) {
                *slot = unit;
            }
            assert_eq!(name(&found), expected.map(OsString::from), "{text}");
        }
    }
}
