//! Which file system this is, and getting a file's pages to its disk.

use std::ffi::{c_int, c_uint};
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::ioctl::{Getter, Opcode, ioctl, opcode};

use super::Result;

/// A word that names the file system an open directory is on, wherever it is mounted: its UUID where it has one, else what
/// statfs(2) and the device number tell.
pub(crate) fn volume_identity(directory: BorrowedFd<'_>) -> String {
    if let Ok(id) = super::btrfs_identity(directory) {
        return hexadecimal(&id);
    }
    if let Ok(uuid) = file_system_uuid(directory)
        && let Some(word) = told(uuid.uuid.get(..usize::from(uuid.length)).unwrap_or(&uuid.uuid))
    {
        return word;
    }
    let id = rustix::fs::fstatvfs(directory).map_or(0, |fs| fs.f_fsid);
    let device = rustix::fs::fstat(directory).map_or(0, |stat| stat.st_dev);
    format!("{id:x}-{device:x}")
}

/// Images are made with no UUID, or with one of zeros only, which tells nothing apart.
fn told(uuid: &[u8]) -> Option<String> {
    uuid.iter().any(|byte| *byte != 0).then(|| hexadecimal(uuid))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `struct fsuuid2` of linux/fs.h.
#[repr(C)]
struct FileSystemUuid {
    length: u8,
    uuid: [u8; 16],
}

/// `FS_IOC_GETFSUUID`, Linux 6.9; ENOTTY where the file system has none.
fn file_system_uuid(directory: BorrowedFd<'_>) -> Result<FileSystemUuid> {
    const GET_UUID: Opcode = opcode::read::<FileSystemUuid>(0x15, 0);
    const _: () = assert!(size_of::<FileSystemUuid>() == 17);
    // SAFETY: the opcode takes a pointer to `struct fsuuid2` of 17 bytes (size checked above), which the kernel fills.
    unsafe { ioctl(directory, Getter::<GET_UUID, FileSystemUuid>::new()) }
}

const WAIT_BEFORE: c_uint = 1;
const WRITE: c_uint = 2;
const WAIT_AFTER: c_uint = 4;

unsafe extern "C" {
    /// sync_file_range(2).
    fn sync_file_range(fd: c_int, offset: i64, bytes: i64, flags: c_uint) -> c_int;
}

/// Begins to write a file's dirty pages to the disk, and does not wait for it.
pub(crate) fn start_write_back(file: BorrowedFd<'_>) {
    // SAFETY: no memory is passed. The descriptor is open as long as it is borrowed.
    unsafe { sync_file_range(file.as_raw_fd(), 0, 0, WRITE) };
}

/// Waits until no page of a file is dirty. Unlike fsync(2) it is no promise about the disk, and does not wait for what others have
/// written.
pub(crate) fn finish_write_back(file: BorrowedFd<'_>) {
    // SAFETY: as above.
    unsafe { sync_file_range(file.as_raw_fd(), 0, 0, WAIT_BEFORE | WRITE | WAIT_AFTER) };
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_uuid_of_zeros_names_nothing() {
        assert_eq!(super::told(&[0; 16]), None);
        assert_eq!(super::told(&[]), None);
        assert_eq!(super::told(&[0, 0xab]), Some("00ab".into()));
    }
}
