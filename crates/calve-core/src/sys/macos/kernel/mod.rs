//! Calls of macOS's kernel and system library, unmodified. `like` replaces them in tests on Linux.

mod acl;
mod clones;

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CloneFlags, FileType, Mode, OFlags, Stat};
use rustix::io::{Errno, Result};
use rustix::time::ClockId;

pub(crate) use acl::{drop_acl, has_acls_inside, read_acl, write_acl};
pub(crate) use clones::{clone_family, has_clones};
/// Syncs a file down to the disk itself (F_FULLFSYNC).
pub(super) use rustix::fs::fcntl_fullfsync as full_sync;
pub(crate) use rustix::fs::fremovexattr;
/// Renames with flags (renameatx_np(2)).
pub(super) use rustix::fs::renameat_with as rename;
pub(super) use rustix::fs::{fgetxattr, flistxattr, fsetxattr};

/// O_EXEC: with O_DIRECTORY, O_SEARCH. A kernel that does not know the bit ignores it, and requires read permission.
pub(super) const SEARCH: OFlags = OFlags::from_bits_retain(libc::O_EXEC.cast_unsigned());

/// Opens a link itself.
pub(super) const SYMLINK: OFlags = OFlags::from_bits_retain(libc::O_SYMLINK.cast_unsigned());

pub(super) const NO_ATTRIBUTE: Errno = Errno::NOATTR;

pub(crate) const FILE_CLOCK: ClockId = ClockId::Realtime;

/// A clock that cannot be set, and runs on while the machine sleeps (clock_gettime(3)).
pub(crate) const BOOT_CLOCK: ClockId = ClockId::Monotonic;

/// Clones an open file or directory (fclonefileat(2)). Without `keep_acl`, entries inherit the lists of the new parent.
pub(super) fn clone(src: BorrowedFd<'_>, parent: BorrowedFd<'_>, name: &CStr, keep_acl: bool) -> Result<()> {
    const ACL: CloneFlags = CloneFlags::from_bits_retain(4);
    // No NOOWNERCOPY: root keeps owners, others own the clone anyway. No NOFOLLOW: no name in the source is resolved.
    rustix::fs::fclonefileat(src, parent, name, if keep_acl { ACL } else { CloneFlags::empty() })
}

/// The resource fork, the only attribute that is read and written at a position.
pub(super) const FORK: &CStr = c"com.apple.ResourceFork";

pub(super) fn read_fork(file: BorrowedFd<'_>, position: usize, piece: &mut [u8]) -> Result<usize> {
    let at = u32::try_from(position).map_err(|_| Errno::FBIG)?;
    // SAFETY: an open descriptor, a C string, and a buffer of which the call fills no more than its length.
    let read =
        unsafe { libc::fgetxattr(file.as_raw_fd(), FORK.as_ptr(), piece.as_mut_ptr().cast(), piece.len(), at, 0) };
    usize::try_from(read).map_err(|_| last_error())
}

pub(super) fn write_fork(file: BorrowedFd<'_>, position: usize, piece: &[u8]) -> Result<()> {
    let at = u32::try_from(position).map_err(|_| Errno::FBIG)?;
    // SAFETY: an open descriptor, a C string, and a buffer of which the call reads its length.
    result(unsafe { libc::fsetxattr(file.as_raw_fd(), FORK.as_ptr(), piece.as_ptr().cast(), piece.len(), at, 0) })
}

/// Flags that forbid renaming and removing a file (chflags(2)).
pub(super) const LOCKED: u32 = libc::UF_IMMUTABLE | libc::UF_APPEND;

/// Flags that users may set on their own files, without those on how contents are stored or tracked (chflags(2)).
pub(super) const KEPT: u32 = LOCKED | libc::UF_NODUMP | libc::UF_OPAQUE | libc::UF_HIDDEN;

/// Flags that forbid changes and that only root sets.
pub(super) const OF_ROOT: u32 = libc::SF_IMMUTABLE | libc::SF_APPEND;

pub(super) fn flags(fd: BorrowedFd<'_>) -> Result<u32> {
    rustix::fs::fstat(fd).map(|stat| stat.st_flags)
}

pub(super) fn set_flags(fd: BorrowedFd<'_>, flags: u32) -> Result<()> {
    // SAFETY: two integers; the descriptor is open as long as `fd` lives.
    result(unsafe { libc::fchflags(fd.as_raw_fd(), flags) })
}

/// Syncs a file's whole volume, and waits (fsync_volume_np(2)).
pub(super) fn sync_volume(fd: BorrowedFd<'_>) -> Result<()> {
    unsafe extern "C" {
        /// From `<unistd.h>`, macOS 10.8.
        fn fsync_volume_np(fd: c_int, flags: c_int) -> c_int;
    }
    const FULL_SYNC: c_int = 1;
    const WAIT: c_int = 2;
    // SAFETY: two integers; the descriptor is open as long as `fd` lives.
    result(unsafe { fsync_volume_np(fd.as_raw_fd(), FULL_SYNC | WAIT) })
}

/// Makes a FIFO, or a device node with `like`'s number. ENOSYS before macOS 13, which has no mknodat.
pub(crate) fn make_node(parent: BorrowedFd<'_>, name: &CStr, kind: FileType, mode: Mode, like: &Stat) -> Result<()> {
    type Mknodat = unsafe extern "C" fn(c_int, *const libc::c_char, libc::mode_t, libc::dev_t) -> c_int;
    // Looked up when needed: a program linked to it does not start on older systems.
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

/// Moves the calling process to the background: lowest CPU share, and no disk time while others want it.
pub(crate) fn lower_priority() {
    const PRIO_DARWIN_PROCESS: c_int = 4;
    const PRIO_DARWIN_BG: c_int = 0x1000;
    // SAFETY: three integers; 0 is the calling process, and a failure is harmless.
    unsafe { libc::setpriority(PRIO_DARWIN_PROCESS, 0, PRIO_DARWIN_BG) };
}

pub(crate) fn boot() -> Option<Vec<u8>> {
    system_value(c"kern.bootsessionuuid").or_else(|| system_value(c"kern.boottime"))
}

pub(crate) fn host() -> Option<[u8; 16]> {
    let mut id = [0u8; 16];
    let wait = libc::timespec { tv_sec: 1, tv_nsec: 0 };
    // SAFETY: the call writes a uuid_t, which is 16 bytes, to where `id` is, and reads the time.
    result(unsafe { libc::gethostuuid(id.as_mut_ptr(), &wait) }).ok().map(|()| id)
}

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

/// Returns the mount point of an open file's file system, and the file system's name ("apfs").
pub(super) fn mounted(fd: BorrowedFd<'_>) -> Result<(PathBuf, String)> {
    let mounted = rustix::fs::fstatfs(fd)?;
    let name = String::from_utf8_lossy(text(&mounted.f_fstypename)).into_owned();
    Ok((path(text(&mounted.f_mntonname)), name))
}

pub(super) fn mount_points() -> Result<Vec<PathBuf>> {
    Ok(mounts()?.iter().map(|mount| path(text(&mount.f_mntonname))).collect())
}

fn mounts() -> Result<Vec<libc::statfs>> {
    let mut list: Vec<libc::statfs> = Vec::new();
    loop {
        // SAFETY: without a buffer the call only counts.
        let count = unsafe { libc::getfsstat(std::ptr::null_mut(), 0, libc::MNT_NOWAIT) };
        // Room for more: a list that fills it may have been cut.
        let room = usize::try_from(count).map_err(|_| last_error())? + 16;
        list.reserve_exact(room);
        let bytes = c_int::try_from(room * size_of::<libc::statfs>()).map_err(|_| Errno::NOMEM)?;
        // SAFETY: `list` is empty and has room for `bytes` bytes, of which the call fills whole structures from the start.
        let filled = unsafe { libc::getfsstat(list.as_mut_ptr(), bytes, libc::MNT_NOWAIT) };
        let filled = usize::try_from(filled).map_err(|_| last_error())?;
        if filled < room {
            // SAFETY: the call has filled that many, which is less than there is room for.
            unsafe { list.set_len(filled) };
            return Ok(list);
        }
    }
}

pub(super) fn is_local(fd: BorrowedFd<'_>) -> Result<bool> {
    Ok(rustix::fs::fstatfs(fd)?.f_flags & libc::MNT_LOCAL.cast_unsigned() != 0)
}

pub(super) fn path_of(fd: BorrowedFd<'_>) -> Result<PathBuf> {
    Ok(path(rustix::fs::getpath(fd)?.to_bytes()))
}

fn path(bytes: &[u8]) -> PathBuf {
    Path::new(OsStr::from_bytes(bytes)).to_path_buf()
}

fn text(array: &[c_char]) -> &[u8] {
    // SAFETY: c_char is a byte, signed or not: the slice covers the same memory for as long, and any byte is valid.
    let bytes = unsafe { std::slice::from_raw_parts(array.as_ptr().cast::<u8>(), array.len()) };
    CStr::from_bytes_until_nul(bytes).map_or(bytes, CStr::to_bytes)
}

fn attributes(common: libc::attrgroup_t, volume: libc::attrgroup_t, fork: libc::attrgroup_t) -> libc::attrlist {
    libc::attrlist {
        bitmapcount: libc::ATTR_BIT_MAP_COUNT,
        reserved: 0,
        commonattr: common,
        volattr: volume,
        dirattr: 0,
        fileattr: 0,
        forkattr: fork,
    }
}

/// Converts the error of a C function that returned -1.
fn result(returned: c_int) -> Result<()> {
    match returned {
        -1 => Err(last_error()),
        _ => Ok(()),
    }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
