//! macOS: system calls that have no portable shape.

mod acl;
mod clones;
mod mounts;
mod xattr;

use std::ffi::{CStr, c_int, c_void};
use std::hash::{BuildHasher, Hasher};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::OnceLock;

use rustix::fs::{CloneFlags, FileType, Mode, OFlags, RenameFlags, SeekFrom, Stat};
use rustix::io::Errno;

use super::word;

pub(crate) use super::portable::*;
pub(crate) use acl::drop_inherited_acls;
pub(crate) use clones::{clone_family, space_rules};
pub(crate) use mounts::{file_system_name, is_mount_point, mounts_below};
pub(crate) use xattr::{XattrTarget, list_xattrs, remove_xattr};

pub(crate) type Result<T> = rustix::io::Result<T>;

/// Opens a directory as a place to name things in: no read permission needed.
///
/// O_EXEC, which makes O_SEARCH together with O_DIRECTORY. A kernel that does not know the bit ignores it, and then asks for
/// read permission.
pub(crate) const PATH_ONLY: OFlags = OFlags::from_bits_retain(libc::O_EXEC.cast_unsigned());

/// macOS has no flag that leaves access times alone; APFS keeps them relative to the modification time (relatime).
pub(crate) const NO_ATIME: OFlags = OFlags::empty();

/// What reading an extended attribute says when there is none of that name.
pub(crate) const NO_ATTRIBUTE: Errno = Errno::NOATTR;

/// Clones the open directory `src` with everything in it to `name` in `parent`, which must not exist (fclonefileat(2)). All
/// or nothing. EXDEV when something is mounted below `src`, which the clone would show as an empty directory.
pub(crate) fn clone_directory(src: BorrowedFd<'_>, parent: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    if !mounts_below(src)?.is_empty() {
        return Err(Errno::XDEV);
    }
    clone_file(src, parent, name)
}

/// Clones what is open as `src`, which nothing can be mounted below: a file. All or nothing too.
pub(crate) fn clone_file(src: BorrowedFd<'_>, parent: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    /// Without it every entry gets the access control list that its new parent bequeaths, instead of its own.
    const ACL: CloneFlags = CloneFlags::from_bits_retain(4);
    // Without NOOWNERCOPY: root keeps the owners; anybody else owns the clone, whatever the flags. Nothing is resolved by
    // name in the source, so NOFOLLOW would have nothing to do.
    match rustix::fs::fclonefileat(src, parent, name, ACL) {
        // A file system that has no such lists: none is lost.
        Err(Errno::INVAL) => rustix::fs::fclonefileat(src, parent, name, CloneFlags::empty()),
        other => other,
    }
}

/// Why [`clone_directory`] cannot be used here at all; `None` where it may be tried.
pub(crate) const CLONE_DIRECTORY_REFUSED: Option<&str> = None;

/// Where data begins, at or after `position`. ENXIO when there is none, EINVAL where the file system cannot tell.
pub(crate) fn seek_data(fd: BorrowedFd<'_>, position: u64) -> Result<u64> {
    match rustix::fs::seek(fd, SeekFrom::Data(position)) {
        // The request is an ioctl, of which most file systems have never heard.
        Err(Errno::NOTTY | Errno::NOTSUP) => Err(Errno::INVAL),
        other => other,
    }
}

/// Where the data at `position` ends.
pub(crate) fn seek_hole(fd: BorrowedFd<'_>, position: u64) -> Result<u64> {
    rustix::fs::seek(fd, SeekFrom::Hole(position))
}

/// Writes everything of the file system that `fd` is on to its disk.
pub(crate) fn sync_file_system(fd: BorrowedFd<'_>) -> Result<()> {
    unsafe extern "C" {
        /// `<unistd.h>`, macOS 10.8.
        fn fsync_volume_np(fd: c_int, flags: c_int) -> c_int;
    }
    const FULL_SYNC: c_int = 1;
    const WAIT: c_int = 2;
    // SAFETY: two integers; the descriptor is open as long as `fd` lives.
    match result(unsafe { fsync_volume_np(fd.as_raw_fd(), FULL_SYNC | WAIT) }) {
        // Not that file system. sync(2) hands everything to the drive, and F_FULLFSYNC makes that write its cache.
        Err(Errno::NOTSUP | Errno::NOTTY | Errno::INVAL | Errno::PERM) => {
            rustix::fs::sync();
            sync_file(fd)
        }
        other => other,
    }
}

/// Writes a file or directory to its disk. fsync(2) alone leaves it in the drive's cache, in no particular order.
pub(crate) fn sync_file(fd: BorrowedFd<'_>) -> Result<()> {
    match rustix::fs::fcntl_fullfsync(fd) {
        // A network file system, or a drive that has no such command.
        Err(Errno::NOTSUP | Errno::NOTTY | Errno::INVAL | Errno::NODEV) => rustix::fs::fsync(fd),
        other => other,
    }
}

/// Renames, unless something has the new name (EEXIST). ENOTSUP on file systems that cannot.
pub(crate) fn rename_no_replace(
    from: BorrowedFd<'_>,
    name: &CStr,
    parent: BorrowedFd<'_>,
    new_name: &CStr,
) -> Result<()> {
    rustix::fs::renameat_with(from, name, parent, new_name, RenameFlags::NOREPLACE)
}

/// Exchanges two names in one step. ENOTSUP on file systems that cannot.
pub(crate) fn rename_exchange(from: BorrowedFd<'_>, name: &CStr, parent: BorrowedFd<'_>, other: &CStr) -> Result<()> {
    rustix::fs::renameat_with(from, name, parent, other, RenameFlags::EXCHANGE)
}

/// Makes a FIFO, or a device node with the number that `like` has. ENOSYS before macOS 13, which has no such call relative to
/// a directory.
pub(crate) fn make_node(parent: BorrowedFd<'_>, name: &CStr, kind: FileType, mode: Mode, like: &Stat) -> Result<()> {
    type Mknodat = unsafe extern "C" fn(c_int, *const libc::c_char, libc::mode_t, libc::dev_t) -> c_int;
    // Looked up when needed: a program that names it directly does not start on older systems.
    // SAFETY: the name is a C string; the search changes nothing.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"mknodat".as_ptr()) };
    if found.is_null() {
        return Err(Errno::NOSYS);
    }
    // SAFETY: a symbol of that name in the system's library is the function of `<sys/stat.h>`, which has this type.
    let mknodat = unsafe { std::mem::transmute::<*mut c_void, Mknodat>(found) };
    let mode = kind.as_raw_mode() | mode.as_raw_mode();
    // SAFETY: an open descriptor, a C string that outlives the call, and two integers.
    result(unsafe { mknodat(parent.as_raw_fd(), name.as_ptr(), mode, like.st_rdev) })
}

/// Makes the calling process one that is not felt: lowest CPU share, and no disk time while others want it.
pub(crate) fn lower_priority() {
    const PRIO_DARWIN_PROCESS: c_int = 4;
    const PRIO_DARWIN_BG: c_int = 0x1000;
    // SAFETY: three integers; 0 is the calling process, and a failure is harmless.
    unsafe { libc::setpriority(PRIO_DARWIN_PROCESS, 0, PRIO_DARWIN_BG) };
}

/// 64 random bits, for names that nobody can guess or collide with.
pub(crate) fn random() -> u64 {
    let mut bytes = [0u8; 8];
    // SAFETY: the call writes `bytes.len()` bytes to where `bytes` is.
    match result(unsafe { libc::getentropy(bytes.as_mut_ptr().cast(), bytes.len()) }) {
        Ok(()) => u64::from_ne_bytes(bytes),
        // The keys that the standard library has for its hash tables: random too, from the start of the process.
        Err(_) => std::hash::RandomState::new().build_hasher().finish(),
    }
}

/// A short word for this boot of the kernel.
pub(crate) fn boot_identity() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| {
        let boot = system_value(c"kern.bootsessionuuid").or_else(|| system_value(c"kern.boottime"));
        word(&boot.unwrap_or_default())
    })
}

/// A short word for this machine, the same after a restart.
pub(crate) fn machine_identity() -> &'static str {
    static MACHINE: OnceLock<String> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let mut id = [0u8; 16];
        let wait = libc::timespec { tv_sec: 1, tv_nsec: 0 };
        // SAFETY: the call writes a uuid_t, which is 16 bytes, to where `id` is, and reads the time.
        match result(unsafe { libc::gethostuuid(id.as_mut_ptr(), &wait) }) {
            Ok(()) => word(&id),
            Err(_) => word(rustix::system::uname().nodename().to_bytes()),
        }
    })
}

/// A value of sysctl(3), as it is.
fn system_value(name: &CStr) -> Option<Vec<u8>> {
    let mut value = vec![0u8; 64];
    let mut length = value.len();
    // SAFETY: the call writes at most `length` bytes to where `value` is, and says in `length` how many; nothing is set.
    let done =
        unsafe { libc::sysctlbyname(name.as_ptr(), value.as_mut_ptr().cast(), &mut length, std::ptr::null_mut(), 0) };
    result(done).ok()?;
    value.truncate(length);
    Some(value).filter(|value| !value.is_empty())
}

/// What a C function that returns -1 says.
fn result(returned: c_int) -> Result<()> {
    match returned {
        -1 => Err(last_error()),
        _ => Ok(()),
    }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
