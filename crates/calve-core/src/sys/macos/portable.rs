//! Portable calls, and the answer "there is no such thing here", where macOS has no calls of its own.

use std::ffi::{CStr, CString};
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, DirEntry, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::Result;

/// Fails: a file can only be cloned to a name that does not exist yet (fclonefileat(2)), never into an open file, and copyfile(3) unlinks
/// and makes anew. So nothing is shared file by file here: the `clonefile` strategy takes the whole tree.
pub(crate) fn reflink(_src: BorrowedFd<'_>, _dst: BorrowedFd<'_>) -> Result<()> {
    Err(Errno::OPNOTSUPP)
}

/// Fails, as [`reflink`] does.
pub(crate) fn reflink_range(_src: BorrowedFd<'_>, _dst: BorrowedFd<'_>, _offset: u64, _bytes: u64) -> Result<()> {
    Err(Errno::OPNOTSUPP)
}

/// Returns false: there is no such attribute.
pub(crate) fn copy_nocow(_src: BorrowedFd<'_>, _dst: BorrowedFd<'_>) -> Result<bool> {
    Ok(false)
}

/// Returns false: there is no such attribute.
pub(crate) fn clear_nocow(_directory: BorrowedFd<'_>) -> Result<bool> {
    Ok(false)
}

/// Returns the device number: mounts have no numbers of their own.
#[allow(clippy::unnecessary_cast, reason = "the field's type differs between systems")]
pub(crate) fn mount_identity(fd: BorrowedFd<'_>) -> Result<u64> {
    Ok(rustix::fs::fstat(fd)?.st_dev as u64)
}

/// Returns none: a clone is compared by its change times alone.
pub(crate) fn chosen_flags(_directory: BorrowedFd<'_>) -> u32 {
    0
}

/// Returns `None`: these systems do not tell how long tasks wait.
pub(crate) fn stalled() -> Option<[u64; 3]> {
    None
}

/// Returns `None`: nothing asks these systems how long their processors worked.
pub(crate) fn processor_ticks() -> Option<[u64; 2]> {
    None
}

/// Does nothing: threads share one descriptor table, and there is no other.
pub(crate) fn private_descriptors(_keep: &[BorrowedFd<'_>]) {}

/// Fails: there is no such call.
pub(crate) fn open_beneath(_root: BorrowedFd<'_>, _path: &std::path::Path, _flags: OFlags) -> Result<OwnedFd> {
    Err(Errno::NOSYS)
}

/// One entry of a directory.
pub(crate) struct ListedEntry<'a> {
    pub(crate) name: &'a CStr,
    /// [`FileType::Unknown`] where the file system does not say.
    pub(crate) kind: FileType,
}

/// readdir(3) has a buffer of its own.
pub(crate) struct ListingBuffer;

impl ListingBuffer {
    pub(crate) fn new() -> Self {
        Self
    }

    /// Creates a stand-in while the real buffer is lent out.
    pub(crate) fn empty() -> Self {
        Self
    }
}

/// The entries of an open directory, without `.` and `..`.
pub(crate) struct Listing<'a> {
    directory: Dir,
    current: Option<DirEntry>,
    read: usize,
    #[cfg(like_macos)]
    began: Option<super::Version>,
    _buffer: &'a mut ListingBuffer,
}

/// How many entries make a piece of work that is worth sharing.
const BATCH: usize = 1024;

impl<'a> Listing<'a> {
    pub(crate) fn new(directory: BorrowedFd<'a>, buffer: &'a mut ListingBuffer) -> Result<Self> {
        // A descriptor of its own, as closing the stream closes it. Not opened anew, which takes permission to search the directory.
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

    /// Returns whether the next call asks the kernel for more: a good moment to share work. Here, every so often.
    pub(crate) fn at_refill(&self) -> bool {
        self.read.is_multiple_of(BATCH)
    }
}

/// Opens the directory `name` in `parent`, refusing links and anything mounted there (EXDEV). There are no bind mounts, so
/// the device tells.
pub(crate) fn open_directory_same_mount(parent: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    if rustix::fs::fstat(&fd)?.st_dev != rustix::fs::fstat(parent)?.st_dev {
        return Err(Errno::XDEV);
    }
    Ok(fd)
}

/// Returns false: only btrfs is asked.
pub(crate) fn is_inline(_file: BorrowedFd<'_>, _size: u64) -> bool {
    false
}

/// Returns `None`: there are no allocation groups to tell apart.
pub(crate) fn allocation_group_shift(_directory: BorrowedFd<'_>) -> Option<u32> {
    None
}

/// Returns `None`: there is no XFS.
pub(crate) fn unnamed_file_on_xfs(_directory: BorrowedFd<'_>) -> Option<OwnedFd> {
    None
}

/// Returns the pattern for file systems on which several threads make files side by side: other patterns were not measured.
pub(crate) fn making(_directory: BorrowedFd<'_>) -> crate::sys::CreationPattern {
    crate::sys::CreationPattern::SideBySide
}

/// The number that tells btrfs on Linux. No file system here has it.
pub(crate) const BTRFS_MAGIC: u64 = 0x9123_683e;

/// Returns false: these systems have no such servers.
pub(crate) fn copies_on_the_server(_magic: u64) -> bool {
    false
}

/// Fails: these systems have no copy_file_range(2).
pub(crate) fn copy_range(_src: BorrowedFd<'_>, _dst: BorrowedFd<'_>, _bytes: usize) -> Result<usize> {
    Err(Errno::NOSYS)
}

/// Returns zero: file systems are told apart by name. Their numbers are handed out when they are loaded, and none of them means anything.
pub(crate) fn magic(_fd: BorrowedFd<'_>) -> Result<u64> {
    Ok(0)
}

/// Sets the mode of the entry `name`, not following links.
#[cfg_attr(like_macos, allow(dead_code, reason = "fchmodat(2) of Linux follows links"))]
pub(crate) fn set_mode_of_name(parent: BorrowedFd<'_>, name: &CStr, mode: Mode) -> Result<()> {
    rustix::fs::chmodat(parent, name, mode, AtFlags::SYMLINK_NOFOLLOW)
}

/// Gives the owner every permission on the directory `name`, not following links.
#[cfg_attr(like_macos, allow(dead_code, reason = "fchmodat(2) of Linux follows links"))]
pub(crate) fn make_accessible(parent: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    rustix::fs::chmodat(parent, name, Mode::RWXU, AtFlags::SYMLINK_NOFOLLOW)
}

/// Returns false: only btrfs has subvolumes.
pub(crate) fn is_subvolume(_directory: BorrowedFd<'_>, _stat: &Stat) -> Result<bool> {
    Ok(false)
}

/// Returns false: only Linux has btrfs.
pub(crate) fn same_btrfs(_a: BorrowedFd<'_>, _b: BorrowedFd<'_>) -> bool {
    false
}

/// Fails: only btrfs has subvolumes. (APFS snapshots are of whole volumes, and read-only.)
pub(crate) fn snapshot(_src: BorrowedFd<'_>, _parent: BorrowedFd<'_>, _name: &CStr) -> Result<()> {
    Err(Errno::NOTSUP)
}

/// Fails: only btrfs has subvolumes.
pub(crate) fn delete_subvolume(_parent: BorrowedFd<'_>, _name: &CStr) -> Result<()> {
    Err(Errno::NOTSUP)
}

/// Returns nothing: only btrfs has subvolumes.
pub(crate) fn nested_subvolumes(_root: BorrowedFd<'_>) -> Result<Vec<CString>> {
    Ok(Vec::new())
}

/// Fails: only Linux has OverlayFS.
pub(crate) fn mount_overlay(
    _lower: BorrowedFd<'_>,
    _upper: BorrowedFd<'_>,
    _work: BorrowedFd<'_>,
    _target: BorrowedFd<'_>,
    _volatile: bool,
) -> Result<()> {
    Err(Errno::NOSYS)
}

/// Returns an empty name: no attribute has that meaning here.
pub(crate) fn opaque_attribute() -> &'static std::ffi::CStr {
    c""
}

/// Fails: only Linux has OverlayFS.
pub(crate) fn is_opaque(_directory: BorrowedFd<'_>, _attribute: &std::ffi::CStr) -> Result<bool> {
    Err(Errno::NOSYS)
}

/// The result that [`contain`] would return.
pub(crate) struct Steps;

impl Steps {
    pub(crate) fn refused(&self) -> Option<crate::sys::Denial> {
        None
    }
}

/// Fails: only Linux has mounts that one command sees alone.
pub(crate) fn contain(
    _command: &mut std::process::Command,
    _overlay: &crate::sys::OverlayPaths<'_>,
    _working_directory: &std::path::Path,
) -> Result<Steps> {
    Err(Errno::NOSYS)
}

/// Fails: only Linux has OverlayFS.
pub(crate) fn detach_mount(_parent: BorrowedFd<'_>, _name: &CStr) -> Result<()> {
    Err(Errno::NOSYS)
}

/// Returns false: there are no bind mounts, or nobody tells.
pub(crate) fn is_inside_by_another_mount(_inner: BorrowedFd<'_>, _outer: BorrowedFd<'_>) -> bool {
    false
}

/// Fails: there are no subvolumes.
pub(crate) fn create_subvolume(_parent: BorrowedFd<'_>, _name: &CStr) -> Result<()> {
    Err(Errno::NOSYS)
}

/// Looks at no mount options of the file system.
pub(crate) fn mount_options(_directory: BorrowedFd<'_>) -> String {
    String::new()
}

/// Returns true without a look: a store through a mapping may go unnoticed.
pub(crate) fn shows_stores(_file: BorrowedFd<'_>) -> Result<bool> {
    Ok(true)
}

/// Does nothing: see [`shows_stores`].
pub(crate) fn write_back_stores(_directory: BorrowedFd<'_>) -> Result<()> {
    Ok(())
}
