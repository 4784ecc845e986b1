//! Remedies against errors of the system.

use std::io;

use windows_sys::Win32::Foundation as code;

use crate::operation::{Kind, Operation};
use crate::remedy::Remedy;

/// Returns what helps, by what was being done.
pub(crate) fn remedy(source: &io::Error, operation: Operation) -> Remedy {
    let kind = operation.kind();
    let Some(number) = source.raw_os_error() else { return Remedy::CheckLog };
    match number.cast_unsigned() {
        code::ERROR_SHARING_VIOLATION | code::ERROR_LOCK_VIOLATION | code::ERROR_USER_MAPPED_FILE => {
            Remedy::CloseProgram
        }
        code::ERROR_ACCESS_DENIED if kind == Kind::Delete => Remedy::CloseProgramOrCheckPermissions,
        code::ERROR_ACCESS_DENIED => Remedy::CheckPermissions,
        code::ERROR_PRIVILEGE_NOT_HELD => Remedy::EnableDeveloperMode,
        _ if kind == Kind::SyncName => Remedy::CheckDiskAfterClone,
        code::ERROR_DISK_FULL | code::ERROR_HANDLE_DISK_FULL => Remedy::FreeSpace,
        code::ERROR_DISK_QUOTA_EXCEEDED => Remedy::FreeQuota,
        code::ERROR_WRITE_PROTECT => Remedy::ChooseWritableFileSystem,
        code::ERROR_TOO_MANY_OPEN_FILES => Remedy::RaiseOpenFiles,
        code::ERROR_NOT_ENOUGH_MEMORY | code::ERROR_OUTOFMEMORY | code::ERROR_NO_SYSTEM_RESOURCES => Remedy::FreeMemory,
        code::ERROR_FILE_NOT_FOUND | code::ERROR_PATH_NOT_FOUND => Remedy::StopRemovals,
        code::ERROR_ALREADY_EXISTS | code::ERROR_FILE_EXISTS | code::ERROR_DIR_NOT_EMPTY => Remedy::StopWrites,
        code::ERROR_INVALID_NAME | code::ERROR_FILENAME_EXCED_RANGE | code::ERROR_BAD_PATHNAME => {
            Remedy::RenameForFileSystem
        }
        code::ERROR_DIRECTORY => Remedy::CheckPathForFile,
        code::ERROR_FILE_TOO_LARGE => Remedy::ChooseFileSystemForLargeFiles,
        code::ERROR_ENCRYPTION_FAILED | code::ERROR_DECRYPTION_FAILED => Remedy::DecryptFile,
        code::ERROR_CRC | code::ERROR_IO_DEVICE | code::ERROR_NOT_READY | code::ERROR_SECTOR_NOT_FOUND => {
            Remedy::CheckDevice
        }
        code::ERROR_FILE_CORRUPT | code::ERROR_DISK_CORRUPT => Remedy::CheckVolume,
        code::ERROR_BAD_NETPATH | code::ERROR_NETNAME_DELETED | code::ERROR_UNEXP_NET_ERR | code::ERROR_SEM_TIMEOUT => {
            Remedy::MountAgain
        }
        code::ERROR_CLOUD_FILE_PROVIDER_NOT_RUNNING | code::ERROR_CLOUD_FILE_NETWORK_UNAVAILABLE => {
            Remedy::MakeAvailableOffline
        }
        code::ERROR_INVALID_FUNCTION | code::ERROR_NOT_SUPPORTED | code::ERROR_NOT_SAME_DEVICE => {
            Remedy::ProbeFileSystem
        }
        _ => Remedy::CheckLog,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_being_done_decides_about_the_remedy() {
        let remedy = |operation, number| remedy(&io::Error::from_raw_os_error(number), operation);
        assert_eq!(remedy(Operation::Read, 32), Remedy::CloseProgram);
        assert_eq!(remedy(Operation::CreateSymlink, 1314), Remedy::EnableDeveloperMode);
        assert_ne!(remedy(Operation::Remove, 5), remedy(Operation::Read, 5));
    }
}
