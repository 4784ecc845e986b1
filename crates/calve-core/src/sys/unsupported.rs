//! Other Unix systems: what portable calls can do. `copy` and `hardlink` work; nothing else is offered, extended attributes are
//! not looked at, and nothing is removed, as it cannot be told what is mounted where.

use std::ffi::CStr;
use std::hash::{BuildHasher, Hasher};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::OnceLock;

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

pub(crate) use super::portable::*;
use super::{CloneFamily, SpaceRules, word};

pub(crate) type Result<T> = rustix::io::Result<T>;

/// There is no portable flag for it: read permission is needed.
pub(crate) const PATH_ONLY: OFlags = OFlags::empty();

/// There is no portable flag for it: access times change.
pub(crate) const NO_ATIME: OFlags = OFlags::empty();

/// The error of reading an extended attribute when there is none of that name.
pub(crate) const NO_ATTRIBUTE: Errno = Errno::NOSYS;

pub(crate) fn clone_directory(_src: BorrowedFd<'_>, _parent: BorrowedFd<'_>, _name: &CStr) -> Result<()> {
    Err(Errno::NOSYS)
}

pub(crate) fn clone_file(_src: BorrowedFd<'_>, _parent: BorrowedFd<'_>, _name: &CStr) -> Result<()> {
    Err(Errno::NOSYS)
}

/// Returns no flags: no copy has flags that forbid changes.
pub(crate) fn unlock(_file: BorrowedFd<'_>) -> Result<u32> {
    Ok(0)
}

/// Does nothing, as [`unlock`] returns no flags.
pub(crate) fn lock(_file: BorrowedFd<'_>, _locks: u32) -> Result<()> {
    Ok(())
}

/// Returns no flags: there is no chflags(2).
pub(crate) fn flags_to_keep(_src: BorrowedFd<'_>) -> u32 {
    0
}

/// Does nothing, as [`flags_to_keep`] returns no flags.
pub(crate) fn add_flags(_file: BorrowedFd<'_>, _flags: u32, _src: &Stat) -> Result<()> {
    Ok(())
}

/// Does nothing: access control lists are attributes.
pub(crate) fn keep_acl(_src: BorrowedFd<'_>, _clone: BorrowedFd<'_>) -> Result<()> {
    Ok(())
}

/// Returns false: access control lists are attributes.
pub(crate) fn has_acls_inside(_directory: BorrowedFd<'_>) -> Result<bool> {
    Ok(false)
}

/// Returns whether the system gives a file this attribute by itself, so that a copy need not have it.
pub(crate) fn is_of_the_system(_xattr: &CStr) -> bool {
    false
}

/// Whether the system has a call that clones a file or directory to a new name.
pub(crate) const HAS_CLONEFILE: bool = false;

/// Returns why [`clone_directory`] cannot be used between these two; `None` where it may be tried.
pub(crate) fn clone_directory_refusal(_src: BorrowedFd<'_>, _parent: BorrowedFd<'_>) -> Option<String> {
    Some("only macOS has clonefile".into())
}

/// Returns where data begins, at or after `position`. EINVAL: cannot tell.
pub(crate) fn seek_data(_fd: BorrowedFd<'_>, _position: u64) -> Result<u64> {
    Err(Errno::INVAL)
}

pub(crate) fn seek_hole(_fd: BorrowedFd<'_>, _position: u64) -> Result<u64> {
    Err(Errno::INVAL)
}

/// Fails: sync(2) need not wait, so it would promise too much.
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

/// Returns 64 random bits, for names that collide with none: the keys that the standard library has for its hash tables.
pub(crate) fn random() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}

pub(crate) fn drop_inherited_acls(_directory: BorrowedFd<'_>) {}

/// There are none.
pub(crate) fn drop_acl(_file: BorrowedFd<'_>) -> Result<()> {
    Ok(())
}

/// The owner of the attributes.
#[derive(Clone, Copy)]
pub(crate) enum XattrTarget<'a> {
    Open(BorrowedFd<'a>),
    /// A name in a directory, not followed.
    Named(BorrowedFd<'a>, #[allow(dead_code, reason = "others need it")] &'a CStr),
}

/// Returns no names.
pub(crate) fn list_xattrs<'b>(_target: XattrTarget<'_>, _buffer: &'b mut Vec<u8>) -> Result<&'b [u8]> {
    Ok(&[])
}

/// Does nothing: there are no attributes.
pub(crate) fn remove_xattr(_file: BorrowedFd<'_>, _name: &CStr) -> Result<()> {
    Ok(())
}

impl XattrTarget<'_> {
    pub(crate) fn read(self, _name: &CStr, _buffer: &mut Vec<u8>) -> Result<usize> {
        Err(NO_ATTRIBUTE)
    }

    pub(crate) fn write(self, _name: &CStr, _value: &[u8]) -> Result<()> {
        Err(Errno::NOTSUP)
    }
}

/// Returns whether something is mounted exactly here, as far as the device tells.
pub(crate) fn is_mount_point(directory: BorrowedFd<'_>) -> Result<bool> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = rustix::fs::openat(directory, c"..", flags, Mode::empty())?;
    Ok(rustix::fs::fstat(parent)?.st_dev != rustix::fs::fstat(directory)?.st_dev)
}

pub(crate) fn mounts_below(_directory: BorrowedFd<'_>) -> Result<Vec<PathBuf>> {
    Err(Errno::NOSYS)
}

pub(crate) fn file_system_name(_directory: BorrowedFd<'_>) -> String {
    "this file system".into()
}

/// Fails, as nothing tells: then nothing is swept.
pub(crate) fn is_shared_by_machines(_directory: BorrowedFd<'_>) -> Result<bool> {
    Err(Errno::NOSYS)
}

/// Returns `Unknown`: nothing tells which blocks files share.
pub(crate) fn space_rules(_directory: BorrowedFd<'_>) -> SpaceRules {
    SpaceRules::Unknown
}

pub(crate) fn clone_family(_directory: BorrowedFd<'_>, _name: &CStr) -> Result<CloneFamily> {
    Err(Errno::NOTSUP)
}

/// Returns the word for the machine, so that it is never taken for another one: there is no portable word for a boot.
pub(crate) fn boot_identity() -> &'static str {
    machine_identity()
}

/// Returns a short word for this machine, the same after a restart.
pub(crate) fn machine_identity() -> &'static str {
    static MACHINE: OnceLock<String> = OnceLock::new();
    MACHINE.get_or_init(|| word(rustix::system::uname().nodename().to_bytes()))
}
