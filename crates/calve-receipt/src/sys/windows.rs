//! Windows.

use calve_core::Error;
use windows_sys::Win32::Foundation as code;

/// Returns the name of an error number ("ERROR_NOT_SUPPORTED").
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

/// Returns the number of the system that says the same as an error that has none.
pub(crate) fn closest(error: &Error) -> Option<i32> {
    let number = match error {
        Error::DestinationExists(_) => code::ERROR_ALREADY_EXISTS,
        Error::Missing(_) => code::ERROR_FILE_NOT_FOUND,
        Error::ParentMissing(_) => code::ERROR_PATH_NOT_FOUND,
        Error::NoRoom { .. } => code::ERROR_DISK_FULL,
        Error::Protected { .. } => code::ERROR_ACCESS_DENIED,
        _ => return None,
    };
    Some(number.cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_number_is_always_text() {
        assert_eq!(error_name(50), "ERROR_NOT_SUPPORTED");
        assert_eq!(error_name(99_999), "error 99999");
    }
}
