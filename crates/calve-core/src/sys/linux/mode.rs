//! Modes of entries by name: chmod(2) follows links, and fchmod(2) needs an open file: bad for FIFOs and devices.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::{Errno, Result};

pub(crate) fn set_mode_of_name(parent: BorrowedFd<'_>, name: &CStr, mode: Mode) -> Result<()> {
    /// fchmodat2(2), Linux 6.6. The number is the same on every architecture that Rust's standard library runs on.
    const FCHMODAT2: std::ffi::c_long = 452;
    let nofollow = AtFlags::SYMLINK_NOFOLLOW.bits();
    // SAFETY: an open descriptor, a C string that outlives the call, and two integers.
    match unsafe { libc::syscall(FCHMODAT2, parent.as_raw_fd(), name.as_ptr(), mode.bits(), nofollow) } {
        0 => Ok(()),
        _ => match Errno::from_io_error(&std::io::Error::last_os_error()) {
            // An older kernel, or a container that filters the call.
            None | Some(Errno::NOSYS | Errno::PERM) => set_mode_by_proc(parent, name, mode, OFlags::empty()),
            Some(errno) => Err(errno),
        },
    }
}

/// Gives the owner every permission on the directory `name`, without following a link.
pub(crate) fn make_accessible(parent: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    set_mode_by_proc(parent, name, Mode::RWXU, OFlags::DIRECTORY)
}

fn set_mode_by_proc(parent: BorrowedFd<'_>, name: &CStr, mode: Mode, kind: OFlags) -> Result<()> {
    let fd = crate::sys::open_at(parent, name, OFlags::PATH | OFlags::NOFOLLOW | kind)?;
    // fchmod refuses descriptors opened with O_PATH; their entry in /proc is the same file.
    rustix::fs::chmod(format!("/proc/thread-self/fd/{}", fd.as_raw_fd()), mode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::FileType;
    use std::os::fd::AsFd;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn modes_are_set_without_following_links() {
        let folder = tempfile::tempdir().unwrap();
        let root = rustix::fs::open(folder.path(), OFlags::RDONLY, Mode::empty()).unwrap();
        let mode =
            |name: &str| fs_err::symlink_metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o777;
        fs_err::write(folder.path().join("target"), "").unwrap();
        fs_err::os::unix::fs::symlink("target", folder.path().join("link")).unwrap();
        rustix::fs::mknodat(&root, c"fifo", FileType::Fifo, Mode::RUSR, 0).unwrap();
        let before = mode("target");
        for set in [set_mode_of_name, |parent: BorrowedFd<'_>, name: &CStr, mode| {
            set_mode_by_proc(parent, name, mode, OFlags::empty())
        }] {
            set(root.as_fd(), c"fifo", Mode::RUSR | Mode::WGRP).unwrap();
            assert_eq!(mode("fifo"), 0o420);
            assert!(set(root.as_fd(), c"link", Mode::empty()).is_err());
            assert_eq!(mode("target"), before);
            set(root.as_fd(), c"fifo", Mode::RUSR).unwrap();
        }
    }
}
