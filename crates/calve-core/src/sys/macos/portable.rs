//! Portable calls, and constant answers for calls that macOS lacks.

use std::ffi::{CStr, CString};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::Command;

use rustix::fs::{AtFlags, Dir, DirEntry, Mode, OFlags, Stat};
use rustix::io::{Errno, Result};
use rustix::path::Arg;

use crate::sys::{Denial, ListedEntry};

absent! {
    /// Fails: fclonefileat(2) clones only to a new name, never into an open file, and copyfile(3) unlinks and makes
    /// anew. So nothing is shared file by file here: the `clonefile` strategy takes the whole tree.
    fn reflink(_src: BorrowedFd<'_>, _dst: BorrowedFd<'_>) -> Result<()> = Err(Errno::OPNOTSUPP);
    fn reflink_range(_src: BorrowedFd<'_>, _dst: BorrowedFd<'_>, _offset: u64, _bytes: u64) -> Result<()> = Err(Errno::OPNOTSUPP);
    fn copy_nocow(_src: BorrowedFd<'_>, _dst: BorrowedFd<'_>) -> Result<bool> = Ok(false);
    fn clear_nocow(_directory: BorrowedFd<'_>) -> Result<bool> = Ok(false);
    fn is_subvolume(_directory: BorrowedFd<'_>, _stat: &Stat) -> Result<bool> = Ok(false);
    fn chosen_flags(_directory: BorrowedFd<'_>) -> u32 = 0;
    fn stalled() -> Option<[u64; 3]> = None;
    fn processor_ticks() -> Option<[u64; 2]> = None;
    fn allocation_group_shift(_directory: BorrowedFd<'_>) -> Option<u32> = None;
    fn unnamed_file_on_xfs(_directory: BorrowedFd<'_>) -> Option<OwnedFd> = None;
    fn open_beneath(_root: BorrowedFd<'_>, _path: &Path, _flags: OFlags) -> Result<OwnedFd> = Err(Errno::NOSYS);
    fn copy_range(_src: BorrowedFd<'_>, _dst: BorrowedFd<'_>, _bytes: usize) -> Result<usize> = Err(Errno::NOSYS);
    fn mount_overlay(_lower: BorrowedFd<'_>, _upper: BorrowedFd<'_>,
        _work: BorrowedFd<'_>, _target: BorrowedFd<'_>) -> Result<()> = Err(Errno::NOSYS);
    fn is_opaque(_directory: BorrowedFd<'_>, _attribute: &CStr) -> Result<bool> = Err(Errno::NOSYS);
    fn contain(_command: &mut Command, _paths: [&Path; 3],
        _lock: BorrowedFd<'_>, _working_directory: &Path) -> Result<Steps> = Err(Errno::NOSYS);
    fn detach_mount(_parent: BorrowedFd<'_>, _name: &CStr) -> Result<()> = Err(Errno::NOSYS);
    fn create_subvolume(_parent: BorrowedFd<'_>, _name: &CStr) -> Result<()> = Err(Errno::NOSYS);
    fn is_inline(_file: BorrowedFd<'_>, _size: u64) -> bool = false;
    fn copies_on_the_server(_magic: u64) -> bool = false;
    fn same_btrfs(_a: BorrowedFd<'_>, _b: BorrowedFd<'_>) -> bool = false;
    fn is_inside_by_another_mount(_inner: BorrowedFd<'_>, _outer: BorrowedFd<'_>) -> bool = false;
    /// Measured on Linux only.
    fn makes_one_at_a_time(_directory: BorrowedFd<'_>) -> bool = false;
    /// File systems are told apart by name: their numbers are assigned when they are loaded, and mean nothing.
    fn magic(_fd: BorrowedFd<'_>) -> Result<u64> = Ok(0);
    fn snapshot(_src: BorrowedFd<'_>, _parent: BorrowedFd<'_>, _name: &CStr) -> Result<()> = Err(Errno::NOTSUP);
    fn delete_subvolume(_parent: BorrowedFd<'_>, _name: &CStr) -> Result<()> = Err(Errno::NOTSUP);
    fn make_subvolume_writable(_subvolume: BorrowedFd<'_>) -> Result<()> = Err(Errno::NOTSUP);
    fn nested_subvolumes(_root: BorrowedFd<'_>) -> Result<Vec<CString>> = Ok(Vec::new());
    fn opaque_attribute() -> &'static CStr = c"";
    fn mount_options(_directory: BorrowedFd<'_>) -> String = String::new();
    /// Assumed: a store through a mapping may go unnoticed.
    fn shows_stores(_file: BorrowedFd<'_>) -> Result<bool> = Ok(true);
    fn write_back_stores(_directory: BorrowedFd<'_>) -> Result<()> = Ok(());
}

/// Returns the device number: mounts have no numbers of their own.
#[allow(clippy::unnecessary_cast, reason = "the field's type differs between systems")]
pub(crate) fn mount_identity(fd: BorrowedFd<'_>) -> Result<u64> {
    Ok(rustix::fs::fstat(fd)?.st_dev as u64)
}

pub(crate) fn private_descriptors(_keep: &[BorrowedFd<'_>]) {}

/// readdir(3) has a buffer of its own.
#[derive(Default)]
pub(crate) struct ListingBuffer;

impl ListingBuffer {
    pub(crate) fn new() -> Self {
        Self
    }
}

pub(crate) struct Listing<'a> {
    directory: Dir,
    current: Option<DirEntry>,
    read: usize,
    #[cfg(like_macos)]
    began: Option<super::Version>,
    _buffer: &'a mut ListingBuffer,
}

/// Entries worth sharing as a piece of work.
const BATCH: usize = 1024;

impl<'a> Listing<'a> {
    pub(crate) fn new(directory: BorrowedFd<'a>, buffer: &'a mut ListingBuffer) -> Result<Self> {
        // Duplicated, because closing the stream closes it. Reopening would need permission to search the directory.
        let mut directory = Dir::new(rustix::io::fcntl_dupfd_cloexec(directory, 0)?)?;
        directory.rewind();
        Ok(Self {
            #[cfg(like_macos)]
            began: super::version(&directory),
            directory,
            current: None,
            read: 0,
            _buffer: buffer,
        })
    }

    pub(crate) fn next(&mut self) -> Option<Result<ListedEntry<'_>>> {
        loop {
            let entry = match self.directory.read()? {
                Err(error) => return Some(Err(error)),
                Ok(entry) => entry,
            };
            if matches!(entry.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            self.read += 1;
            #[cfg(like_macos)]
            if self.read.is_multiple_of(super::PASSED_OVER) && super::version(&self.directory) != self.began {
                continue;
            }
            let entry = self.current.insert(entry);
            return Some(Ok(ListedEntry { name: entry.file_name(), kind: entry.file_type() }));
        }
    }

    pub(crate) fn at_refill(&self) -> bool {
        self.read.is_multiple_of(BATCH)
    }
}

/// Opens the directory `name` in `parent`, refusing links and mounts (EXDEV). Without bind mounts, the device tells.
pub(crate) fn open_directory_same_mount(parent: BorrowedFd<'_>, name: impl Arg + Copy) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    if rustix::fs::fstat(&fd)?.st_dev != rustix::fs::fstat(parent)?.st_dev {
        return Err(Errno::XDEV);
    }
    Ok(fd)
}

/// btrfs's number on Linux. No file system here has it.
pub(crate) const BTRFS_MAGIC: u64 = 0x9123_683e;
pub(crate) const OVERLAY_MAGIC: u64 = 0x794c_7630;

#[cfg_attr(like_macos, allow(dead_code, reason = "fchmodat(2) of Linux follows links"))]
pub(crate) fn set_mode_of_name(parent: BorrowedFd<'_>, name: &CStr, mode: Mode) -> Result<()> {
    rustix::fs::chmodat(parent, name, mode, AtFlags::SYMLINK_NOFOLLOW)
}

pub(crate) struct Steps;

impl Steps {
    pub(crate) fn refused(&self) -> Option<Denial> {
        None
    }
}
