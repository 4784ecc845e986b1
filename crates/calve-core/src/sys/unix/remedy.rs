//! Remedies for errors of the system.

use std::io;

use rustix::io::Errno;

use crate::vocabulary::operation::{Kind, Operation};
use crate::vocabulary::remedy::Remedy;

pub(crate) fn remedy(source: &io::Error, operation: Operation) -> Remedy {
    let kind = operation.kind();
    let (deleting, writing) = (kind == Kind::Delete, kind == Kind::WriteFile);
    let reading = matches!(kind, Kind::Read | Kind::Open | Kind::Enter);
    let errno = match Errno::from_io_error(source) {
        Some(errno) => errno,
        // The Node.js and Python packages' own, for a directory where a file was to be cloned.
        None if source.kind() == io::ErrorKind::IsADirectory => Errno::ISDIR,
        None => return Remedy::CheckLog,
    };
    match errno {
        Errno::ACCESS if deleting => Remedy::AllowDeleting,
        Errno::PERM if deleting => Remedy::RunAsOwnerOrClearImmutable,
        Errno::ACCESS | Errno::PERM if reading => Remedy::AllowReading,
        Errno::ACCESS | Errno::PERM => Remedy::CheckPermissions,
        _ if kind == Kind::SyncName => Remedy::CheckDiskAfterClone,
        Errno::NOSPC if deleting => Remedy::FreeSpaceToDelete,
        Errno::NOSPC if writing => Remedy::FreeSpaceForRest,
        Errno::DQUOT if writing => Remedy::FreeQuotaForRest,
        Errno::EXIST if writing => Remedy::OverwriteOrChooseAnotherPath,
        Errno::NOSPC => Remedy::FreeSpace,
        Errno::DQUOT => Remedy::FreeQuota,
        Errno::ROFS => Remedy::ChooseWritableFileSystem,
        Errno::MFILE => Remedy::RaiseOpenFiles,
        Errno::NFILE => Remedy::RaiseSystemOpenFiles,
        Errno::NOMEM => Remedy::FreeMemory,
        Errno::AGAIN if kind == Kind::Open => Remedy::WaitForLease,
        Errno::AGAIN => Remedy::RaiseProcesses,
        Errno::IO | Errno::NXIO | Errno::NODEV => Remedy::CheckDevice,
        Errno::NAMETOOLONG => Remedy::ShortenName,
        Errno::ILSEQ => Remedy::RenameForFileSystem,
        Errno::FBIG => Remedy::ChooseFileSystemForLargeFiles,
        Errno::NOTDIR => Remedy::CheckPathForFile,
        Errno::ISDIR => Remedy::CheckPathForDirectory,
        Errno::LOOP => Remedy::CheckPathForSymlink,
        Errno::NOENT if kind == Kind::Enter => Remedy::MakeMissingDirectory,
        Errno::NOENT => Remedy::StopRemovals,
        Errno::EXIST | Errno::NOTEMPTY => Remedy::StopWrites,
        Errno::BUSY | Errno::TXTBSY => Remedy::EndUse,
        Errno::STALE | Errno::TIMEDOUT | Errno::NOTCONN | Errno::HOSTDOWN => Remedy::MountAgain,
        Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOTTY | Errno::INVAL | Errno::XDEV => Remedy::ProbeFileSystem,
        Errno::INTR => Remedy::TryAgain,
        _ => Remedy::CheckLog,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_being_done_decides_about_the_remedy() {
        let remedy = |operation, errno: Errno| remedy(&errno.into(), operation);
        assert_eq!(remedy(Operation::Open, Errno::ACCESS), Remedy::AllowReading);
        assert_eq!(remedy(Operation::RemoveDirectory, Errno::ACCESS), Remedy::AllowDeleting);
        assert_eq!(remedy(Operation::CreateStaging, Errno::ACCESS), Remedy::CheckPermissions);
        assert_eq!(remedy(Operation::EnterDirectory, Errno::NOENT), Remedy::MakeMissingDirectory);
        assert_eq!(remedy(Operation::Copy, Errno::NOSPC), Remedy::FreeSpace);
        assert_eq!(remedy(Operation::WriteFile, Errno::NOSPC), Remedy::FreeSpaceForRest);
    }
}
