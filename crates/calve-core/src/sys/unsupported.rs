//! Other Unix systems: what portable calls can do. `copy` and `hardlink` work; nothing else is offered, extended attributes are
//! not looked at, and nothing is removed, as it cannot be told what is mounted where.

use std::ffi::{CStr, CString};
use std::hash::{BuildHasher, Hasher};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::OnceLock;

use rustix::fs::{AtFlags, Dir, DirEntry, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::word;

pub(crate) type Result<T> = rustix::io::Result<T>;

/// There is no portable flag for it: read permission is needed.
pub(crate) const PATH_ONLY: OFlags = OFlags::empty();

/// There is no portable flag for it: access times change.
pub(crate) const NO_ATIME: OFlags = OFlags::empty();

/// What reading an extended attribute says when there is none of that name.
pub(crate) const NO_ATTRIBUTE: Errno = Errno::NOSYS;

pub(crate) fn reflink(_src: BorrowedFd<'_>, _dst: BorrowedFd<'_>) -> Result<()> {
    Err(Errno::NOSYS)
}

pub(crate) fn reflink_range(_src: BorrowedFd<'_>, _dst: BorrowedFd<'_>, _bytes: u64) -> Result<()> {
    Err(Errno::NOSYS)
}

pub(crate) fn clone_directory(_src: BorrowedFd<'_>, _parent: BorrowedFd<'_>, _name: &CStr) -> Result<()> {
    Err(Errno::NOSYS)
}

/// Why [`clone_directory`] cannot be used here at all; `None` where it may be tried.
pub(crate) const CLONE_DIRECTORY_REFUSED: Option<&str> = Some("only macOS has clonefile");

pub(crate) fn copy_nocow(_src: BorrowedFd<'_>, _dst: BorrowedFd<'_>) -> Result<bool> {
    Ok(false)
}

pub(crate) fn clear_nocow(_directory: BorrowedFd<'_>) -> Result<bool> {
    Ok(false)
}

/// Threads share one descriptor table.
pub(crate) fn private_descriptors(_keep: &[BorrowedFd<'_>]) {}

/// One entry of a directory.
pub(crate) struct Entry<'a> {
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

    /// A stand-in while the real one is lent out.
    pub(crate) fn empty() -> Self {
        Self
    }
}

/// The entries of an open directory, without `.` and `..`.
pub(crate) struct Listing<'a> {
    directory: Dir,
    current: Option<DirEntry>,
    read: usize,
    _buffer: &'a mut ListingBuffer,
}

/// How many entries make a piece of work that is worth sharing.
const BATCH: usize = 1024;

impl<'a> Listing<'a> {
    pub(crate) fn new(directory: BorrowedFd<'a>, buffer: &'a mut ListingBuffer) -> Result<Self> {
        // Opened anew: closing the stream closes its descriptor.
        let directory = Dir::read_from(directory)?;
        Ok(Self { directory, current: None, read: 0, _buffer: buffer })
    }

    pub(crate) fn next(&mut self) -> Option<Result<Entry<'_>>> {
        loop {
            let entry = match self.directory.read()? {
                Err(error) => return Some(Err(error)),
                Ok(entry) => entry,
            };
            if matches!(entry.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            self.read += 1;
            let entry = self.current.insert(entry);
            return Some(Ok(Entry { name: entry.file_name(), kind: entry.file_type() }));
        }
    }

    /// Whether the next call asks the kernel for more: a good moment to share work. Here, every so often.
    pub(crate) fn at_refill(&self) -> bool {
        self.read.is_multiple_of(BATCH)
    }
}

/// Opens the directory `name` in `parent`, refusing links and anything mounted there (EXDEV), as far as the device tells.
pub(crate) fn open_directory_same_mount(parent: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    if rustix::fs::fstat(&fd)?.st_dev != rustix::fs::fstat(parent)?.st_dev {
        return Err(Errno::XDEV);
    }
    Ok(fd)
}

pub(crate) fn is_inline(_file: BorrowedFd<'_>, _size: u64) -> bool {
    false
}

/// There are no allocation groups to tell apart.
pub(crate) fn allocation_group_shift(_directory: BorrowedFd<'_>) -> Option<u32> {
    None
}

pub(crate) fn copy_is_cheaper_up_to(_magic: u64) -> u64 {
    0
}

pub(crate) const BTRFS_MAGIC: u64 = 0x9123_683e;

pub(crate) fn copies_on_the_server(_magic: u64) -> bool {
    false
}

pub(crate) fn copy_range(_src: BorrowedFd<'_>, _dst: BorrowedFd<'_>, _bytes: usize) -> Result<usize> {
    Err(Errno::NOSYS)
}

pub(crate) fn magic(_fd: BorrowedFd<'_>) -> Result<u64> {
    Err(Errno::NOSYS)
}

/// Where data begins, at or after `position`. EINVAL: cannot tell.
pub(crate) fn seek_data(_fd: BorrowedFd<'_>, _position: u64) -> Result<u64> {
    Err(Errno::INVAL)
}

pub(crate) fn seek_hole(_fd: BorrowedFd<'_>, _position: u64) -> Result<u64> {
    Err(Errno::INVAL)
}

/// sync(2) need not wait, so it would promise too much.
pub(crate) fn sync_file_system(_fd: BorrowedFd<'_>) -> Result<()> {
    Err(Errno::NOSYS)
}

pub(crate) fn sync_file(fd: BorrowedFd<'_>) -> Result<()> {
    rustix::fs::fsync(fd)
}

pub(crate) fn rename_no_replace(
    _from: BorrowedFd<'_>,
    _name: &CStr,
    _parent: BorrowedFd<'_>,
    _new_name: &CStr,
) -> Result<()> {
    Err(Errno::NOSYS)
}

pub(crate) fn rename_exchange(
    _from: BorrowedFd<'_>,
    _name: &CStr,
    _parent: BorrowedFd<'_>,
    _other: &CStr,
) -> Result<()> {
    Err(Errno::NOSYS)
}

/// Makes a FIFO, or a device node with the number that `like` has.
pub(crate) fn make_node(parent: BorrowedFd<'_>, name: &CStr, kind: FileType, mode: Mode, like: &Stat) -> Result<()> {
    rustix::fs::mknodat(parent, name, kind, mode, like.st_rdev)
}

/// Makes the calling process one that is not felt.
pub(crate) fn lower_priority() {
    let _ = rustix::process::setpriority_process(None, 19);
}

/// 64 random bits, for names that collide with none: the keys that the standard library has for its hash tables.
pub(crate) fn random() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}

/// Gives the owner every permission on the directory `name`, not following links.
pub(crate) fn make_accessible(parent: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    rustix::fs::chmodat(parent, name, Mode::RWXU, AtFlags::SYMLINK_NOFOLLOW)
}

pub(crate) fn drop_inherited_acls(_directory: BorrowedFd<'_>) {}

/// What the attributes belong to.
#[derive(Clone, Copy)]
pub(crate) enum XattrTarget<'a> {
    Open(BorrowedFd<'a>),
    /// A name in a directory, not followed.
    Named(BorrowedFd<'a>, #[allow(dead_code, reason = "others need it")] &'a CStr),
}

/// The attributes' names. Always empty.
pub(crate) fn list_xattrs<'b>(_target: XattrTarget<'_>, _buffer: &'b mut Vec<u8>) -> Result<&'b [u8]> {
    Ok(&[])
}

impl XattrTarget<'_> {
    pub(crate) fn read(self, _name: &CStr, _buffer: &mut Vec<u8>) -> Result<usize> {
        Err(NO_ATTRIBUTE)
    }

    pub(crate) fn write(self, _name: &CStr, _value: &[u8]) -> Result<()> {
        Err(Errno::NOTSUP)
    }
}

pub(crate) fn is_subvolume(_directory: BorrowedFd<'_>, _stat: &Stat) -> Result<bool> {
    Ok(false)
}

pub(crate) fn same_btrfs(_a: BorrowedFd<'_>, _b: BorrowedFd<'_>) -> bool {
    false
}

pub(crate) fn snapshot(_src: BorrowedFd<'_>, _parent: BorrowedFd<'_>, _name: &CStr) -> Result<()> {
    Err(Errno::NOSYS)
}

pub(crate) fn delete_subvolume(_parent: BorrowedFd<'_>, _name: &CStr) -> Result<()> {
    Err(Errno::NOSYS)
}

pub(crate) fn nested_subvolumes(_root: BorrowedFd<'_>) -> Result<Vec<CString>> {
    Ok(Vec::new())
}

pub(crate) fn mount_overlay(
    _lower: BorrowedFd<'_>,
    _upper: BorrowedFd<'_>,
    _work: BorrowedFd<'_>,
    _target: BorrowedFd<'_>,
    _volatile: bool,
) -> Result<()> {
    Err(Errno::NOSYS)
}

pub(crate) fn detach_mount(_parent: BorrowedFd<'_>, _name: &CStr) -> Result<()> {
    Err(Errno::NOSYS)
}

/// Whether something is mounted exactly here, as far as the device tells.
pub(crate) fn is_mount_point(directory: BorrowedFd<'_>) -> Result<bool> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = rustix::fs::openat(directory, c"..", flags, Mode::empty())?;
    Ok(rustix::fs::fstat(parent)?.st_dev != rustix::fs::fstat(directory)?.st_dev)
}

pub(crate) fn is_inside_by_another_mount(_inner: BorrowedFd<'_>, _outer: BorrowedFd<'_>) -> bool {
    false
}

pub(crate) fn mounts_below(_directory: BorrowedFd<'_>) -> Result<Vec<PathBuf>> {
    Err(Errno::NOSYS)
}

pub(crate) fn file_system_name(_directory: BorrowedFd<'_>) -> String {
    "this file system".into()
}

/// There is no portable word for a boot; that for the machine, so that it is never taken for another one.
pub(crate) fn boot_identity() -> &'static str {
    machine_identity()
}

/// A short word for this machine, the same after a restart.
pub(crate) fn machine_identity() -> &'static str {
    static MACHINE: OnceLock<String> = OnceLock::new();
    MACHINE.get_or_init(|| word(rustix::system::uname().nodename().to_bytes()))
}

/// Nothing is shared file by file here, so this is never the cheaper way.
pub(crate) fn read_cached(_file: BorrowedFd<'_>, _buffer: &mut [u8]) -> Option<usize> {
    None
}
