//! What helps against an error of the system.

use std::io;

use windows_sys::Win32::Foundation as code;

use crate::error::SYNC_NAME;

/// The command that makes a directory and those above it.
pub(crate) const MAKE_DIRECTORY: &str = "mkdir";

/// What helps, by what was being done.
pub(crate) fn hint(source: &io::Error, operation: &str) -> &'static str {
    let deleting = ["remove", "delete", "move to the trash"].iter().any(|verb| operation.starts_with(verb));
    let Some(number) = source.raw_os_error() else { return UNKNOWN };
    match number.cast_unsigned() {
        code::ERROR_SHARING_VIOLATION | code::ERROR_LOCK_VIOLATION | code::ERROR_USER_MAPPED_FILE => {
            "another program has it open: close that program (Resource Monitor, resmon, tells which), then try again"
        }
        code::ERROR_ACCESS_DENIED if deleting => {
            "a program may have something in it open, or you lack the permission: close it, or check the permissions (icacls)"
        }
        code::ERROR_ACCESS_DENIED => {
            "check its permissions (icacls), and whether a program has something in it open; or run as its owner"
        }
        code::ERROR_PRIVILEGE_NOT_HELD => {
            "making symbolic links needs Developer Mode (in the system's settings) or an administrator"
        }
        _ if operation == SYNC_NAME => "the clone is there and complete, but might not survive a power failure",
        code::ERROR_DISK_FULL | code::ERROR_HANDLE_DISK_FULL | code::ERROR_DISK_QUOTA_EXCEEDED => {
            "free some space there; what was staged has been removed"
        }
        code::ERROR_WRITE_PROTECT => "that volume is write-protected",
        code::ERROR_TOO_MANY_OPEN_FILES => "close some programs, or lower `--threads`",
        code::ERROR_NOT_ENOUGH_MEMORY | code::ERROR_OUTOFMEMORY | code::ERROR_NO_SYSTEM_RESOURCES => {
            "free some memory, or lower `--threads`"
        }
        code::ERROR_FILE_NOT_FOUND | code::ERROR_PATH_NOT_FOUND => {
            "it was there and is gone, or is a link to nothing; stop what is removing it, then try again"
        }
        code::ERROR_ALREADY_EXISTS | code::ERROR_FILE_EXISTS | code::ERROR_DIR_NOT_EMPTY => {
            "another program is making files there; stop it, then try again"
        }
        code::ERROR_INVALID_NAME | code::ERROR_FILENAME_EXCED_RANGE | code::ERROR_BAD_PATHNAME => {
            "the volume cannot have a file of that name; choose another one"
        }
        code::ERROR_DIRECTORY => "a file is where the path needs a directory; check the path",
        code::ERROR_FILE_TOO_LARGE => "the volume allows smaller files only; clone to another one",
        code::ERROR_ENCRYPTION_FAILED | code::ERROR_DECRYPTION_FAILED => {
            "the file is encrypted, and cannot be there: clone to an NTFS volume, or decrypt it (cipher /d)"
        }
        code::ERROR_CRC | code::ERROR_IO_DEVICE | code::ERROR_NOT_READY | code::ERROR_SECTOR_NOT_FOUND => {
            "the device reported a failure; check it (chkdsk) and the system's event log"
        }
        code::ERROR_FILE_CORRUPT | code::ERROR_DISK_CORRUPT => "check the volume: chkdsk",
        code::ERROR_BAD_NETPATH | code::ERROR_NETNAME_DELETED | code::ERROR_UNEXP_NET_ERR | code::ERROR_SEM_TIMEOUT => {
            "the server of that share does not answer; connect it again, then try again"
        }
        code::ERROR_CLOUD_FILE_PROVIDER_NOT_RUNNING | code::ERROR_CLOUD_FILE_NETWORK_UNAVAILABLE => {
            "the file is in the cloud only; start that service, or make the file available offline"
        }
        code::ERROR_INVALID_FUNCTION | code::ERROR_NOT_SUPPORTED | code::ERROR_NOT_SAME_DEVICE => {
            "this volume does not do that; `calve probe SRC DST` tells what it does"
        }
        _ => UNKNOWN,
    }
}

const UNKNOWN: &str = "look at the system's event log, then try again";

#[cfg(test)]
mod tests {
    use crate::error::Error;

    #[test]
    fn every_error_of_the_system_has_a_hint() {
        let hint = |operation, number| {
            Error::io(operation, "a", std::io::Error::from_raw_os_error(number)).hint().unwrap_or_default()
        };
        for number in 1..2000 {
            assert!(!hint("read", number).is_empty(), "{number}");
        }
        assert!(hint("read", 32).contains("open"));
        assert!(hint("make link", 1314).contains("Developer Mode"));
        assert_ne!(hint("remove", 5), hint("read", 5));
    }
}
