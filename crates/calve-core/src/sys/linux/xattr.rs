//! Extended attributes of open files, and of names that cannot be opened (symlinks, FIFOs, devices).

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::XattrFlags;
use rustix::io::{Errno, Result};

use crate::sys::{XattrTarget, grown, xattr_names};

/// Returns a path to a name in an open directory: Linux has `*at` calls for attributes only since 6.13.
pub(super) fn proc_path(directory: BorrowedFd<'_>, name: &CStr) -> Result<CString> {
    // To /proc, a thread with a descriptor table of its own is not `self`.
    let mut path = format!("/proc/thread-self/fd/{}/", directory.as_raw_fd()).into_bytes();
    path.extend_from_slice(name.to_bytes());
    CString::new(path).map_err(|_| Errno::INVAL)
}

/// Lists the attributes' names, each with a NUL. Empty where the file system has none.
pub(crate) fn list_xattrs<'b>(target: XattrTarget<'_>, buffer: &'b mut Vec<u8>) -> Result<&'b [u8]> {
    let listed = grown(buffer, 256, |buffer| match target {
        XattrTarget::Open(fd) => rustix::fs::flistxattr(fd, buffer),
        XattrTarget::Named(directory, name) => rustix::fs::llistxattr(&proc_path(directory, name)?, buffer),
    });
    buffer.truncate(match listed {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => 0,
        listed => listed?,
    });
    // XFS shows root its access control lists again, under names that mean nothing elsewhere.
    let is_second = |name: &CStr| name.to_bytes().starts_with(b"trusted.SGI_ACL_");
    if xattr_names(buffer).any(is_second) {
        let names = xattr_names(buffer).filter(|name| !is_second(name));
        *buffer = names.flat_map(CStr::to_bytes_with_nul).copied().collect();
    }
    Ok(buffer)
}

/// Removes the access control lists that a new directory inherited, and so what its entries would inherit.
pub(crate) fn drop_inherited_acls(directory: BorrowedFd<'_>) {
    for inherited in [c"system.posix_acl_default", c"system.posix_acl_access"] {
        // Fails where it does not exist.
        let _ = rustix::fs::fremovexattr(directory, inherited);
    }
}

pub(crate) fn drop_acl(file: BorrowedFd<'_>) -> Result<()> {
    match rustix::fs::fremovexattr(file, c"system.posix_acl_access") {
        Ok(()) | Err(Errno::NODATA | Errno::NOTSUP | Errno::NOSYS) => Ok(()),
        Err(errno) => Err(errno),
    }
}

impl XattrTarget<'_> {
    /// Reads one attribute into `buffer`, which grows as needed, and returns the value's length.
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
