//! Extended attributes of open files, and of names that cannot be opened (symlinks, FIFOs, devices).

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::XattrFlags;
use rustix::io::{Errno, Result};

use crate::sys::{XattrTarget, grown};

/// Returns a path to a name in an open directory, as there is no `*at` call for attributes before Linux 6.13.
pub(super) fn proc_path(directory: BorrowedFd<'_>, name: &CStr) -> Result<CString> {
    // A thread with a descriptor table of its own is not `self` to /proc.
    let mut path = format!("/proc/thread-self/fd/{}/", directory.as_raw_fd()).into_bytes();
    path.extend_from_slice(name.to_bytes());
    CString::new(path).map_err(|_| Errno::INVAL)
}

/// Lists the attributes' names, one after the other, each with a NUL. Empty where the file system has none.
pub(crate) fn list_xattrs<'b>(target: XattrTarget<'_>, buffer: &'b mut Vec<u8>) -> Result<&'b [u8]> {
    let listed = grown(buffer, 256, |buffer| match target {
        XattrTarget::Open(fd) => rustix::fs::flistxattr(fd, buffer),
        XattrTarget::Named(directory, name) => rustix::fs::llistxattr(&proc_path(directory, name)?, buffer),
    });
    match listed {
        Ok(length) => {
            let length = leave_out_second_forms(&mut buffer[..length]);
            Ok(&buffer[..length])
        }
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(&[]),
        Err(error) => Err(error),
    }
}

/// Takes the access control lists away that a new directory has from its parent, and with them what its entries would get.
pub(crate) fn drop_inherited_acls(directory: BorrowedFd<'_>) {
    for inherited in [c"system.posix_acl_default", c"system.posix_acl_access"] {
        // Fails where it does not exist.
        let _ = rustix::fs::fremovexattr(directory, inherited);
    }
}

/// Takes the access control list away that a new file has from its directory.
pub(crate) fn drop_acl(file: BorrowedFd<'_>) -> Result<()> {
    match rustix::fs::fremovexattr(file, c"system.posix_acl_access") {
        Ok(()) | Err(Errno::NODATA | Errno::NOTSUP | Errno::NOSYS) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Removes the names that XFS shows root for its access control lists (`trusted.SGI_ACL_FILE`), which mean nothing elsewhere. Returns the new length.
fn leave_out_second_forms(names: &mut [u8]) -> usize {
    const SECOND: &[u8] = b"trusted.SGI_ACL_";
    if !names.windows(SECOND.len()).any(|part| part == SECOND) {
        return names.len();
    }
    let kept: Vec<u8> =
        names.split_inclusive(|&byte| byte == 0).filter(|name| !name.starts_with(SECOND)).flatten().copied().collect();
    names[..kept.len()].copy_from_slice(&kept);
    kept.len()
}

impl XattrTarget<'_> {
    /// Reads the value of one attribute into `buffer`, which grows as needed, and returns its length.
    pub(crate) fn read(self, name: &CStr, buffer: &mut Vec<u8>) -> Result<usize> {
        grown(buffer, 1024, |buffer| match self {
            Self::Open(fd) => rustix::fs::fgetxattr(fd, name, buffer),
            Self::Named(directory, file) => rustix::fs::lgetxattr(&proc_path(directory, file)?, name, buffer),
        })
    }

    pub(crate) fn write(self, name: &CStr, value: &[u8]) -> Result<()> {
        match self {
            Self::Open(fd) => rustix::fs::fsetxattr(fd, name, value, XattrFlags::empty()),
            Self::Named(directory, file) => {
                rustix::fs::lsetxattr(&proc_path(directory, file)?, name, value, XattrFlags::empty())
            }
        }
    }
}
