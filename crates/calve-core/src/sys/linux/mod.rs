//! Linux system calls without a portable shape.

mod btrfs;
mod btrfs_tree;
mod extents;
mod magic;
mod mode;
mod mounts;
mod overlay;
mod private;
mod watches;
mod xattr;
mod xfs;

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, IFlags, Mode, OFlags, RawDir, RenameFlags, ResolveFlags, SeekFrom, Stat};
use rustix::io::{Errno, Result};
use rustix::ioctl::{Opcode, Setter, ioctl, opcode};
use rustix::path::Arg;
use rustix::time::ClockId;

use crate::sys::{CloneFamily, ListedEntry};

pub(crate) use btrfs::{
    btrfs_node_bytes, create_subvolume, delete_subvolume, is_subvolume, make_subvolume_writable, nested_subvolumes,
    same_btrfs, snapshot,
};
pub(crate) use btrfs_tree::{DiskExtents, btrfs_metadata_copies, btrfs_subvolume, btrfs_was_snapshotted};
pub(crate) use extents::{
    dedupe_range, differ_in_nocow, extents, is_immutable, is_unchangeable, most_bytes_per_dedupe, settled_extents,
    space_rules,
};
pub(crate) use magic::{
    BTRFS_MAGIC, OVERLAY_MAGIC, copies_on_the_server, is_shared_by_machines, magic, shows_stores, tells_watches,
};
pub(crate) use mode::{make_accessible, set_mode_of_name};
pub(crate) use mounts::{
    file_system_name, is_inside_by_another_mount, is_mount_point, mount_identity, mount_options, mount_point,
    mounts_below,
};
pub(crate) use overlay::{detach_mount, is_opaque, mount_overlay, opaque_attribute};
pub(crate) use private::{Steps, contain};
pub(crate) use watches::{Watches, lease, most_watches};
pub(crate) use xattr::{drop_acl, drop_inherited_acls, list_xattrs};
pub(crate) use xfs::{allocation_group_shift, unnamed_file_on_xfs, xfs_inodes};

/// Writes back all dirty pages of the file system, and waits. File by file, a store to one could slip in between.
pub(crate) use rustix::fs::syncfs as write_back_stores;
pub(crate) use rustix::fs::{fremovexattr as remove_xattr, fsync as sync_file, syncfs as sync_file_system};

/// Opens a directory only to name entries in it, without read permission.
pub(crate) const PATH_ONLY: OFlags = OFlags::PATH;

/// Leaves access times alone, where the caller is permitted to.
pub(crate) const NO_ATIME: OFlags = OFlags::NOATIME;

pub(crate) const NO_ATTRIBUTE: Errno = Errno::NODATA;

/// The clock of file timestamps (clock_gettime(2)).
pub(crate) const FILE_CLOCK: ClockId = ClockId::RealtimeCoarse;

/// A clock that cannot be set, and runs on while the machine sleeps (clock_gettime(2)).
pub(crate) const BOOT_CLOCK: ClockId = ClockId::Boottime;

/// Shares all of `src`'s extents with the empty file `dst` (`FICLONE`, ioctl_ficlone(2)).
pub(crate) fn reflink(src: BorrowedFd<'_>, dst: BorrowedFd<'_>) -> Result<()> {
    rustix::fs::ioctl_ficlone(dst, src)
}

/// `struct file_clone_range`.
#[repr(C)]
struct CloneRange {
    src_fd: i64,
    src_offset: u64,
    src_length: u64,
    dest_offset: u64,
}

/// Shares `bytes` of `src` from `offset` on with the same range of `dst` (`FICLONERANGE`): whole blocks, or to the end.
pub(crate) fn reflink_range(src: BorrowedFd<'_>, dst: BorrowedFd<'_>, offset: u64, bytes: u64) -> Result<()> {
    const FICLONERANGE: Opcode = opcode::write::<CloneRange>(0x94, 13);
    let src_fd = i64::from(src.as_raw_fd());
    let range = CloneRange { src_fd, src_offset: offset, src_length: bytes, dest_offset: offset };
    // SAFETY: the opcode takes a pointer to `struct file_clone_range`, whose layout `CloneRange` has; it is only read.
    unsafe { ioctl(dst, Setter::<FICLONERANGE, CloneRange>::new(range)) }
}

absent! {
    fn clone_directory(_src: BorrowedFd<'_>, _parent: BorrowedFd<'_>, _name: &CStr) -> Result<()> = Err(Errno::NOSYS);
    fn clone_file(_src: BorrowedFd<'_>, _parent: BorrowedFd<'_>, _name: &CStr) -> Result<()> = Err(Errno::NOSYS);
    fn unlock(_file: BorrowedFd<'_>) -> Result<u32> = Ok(0);
    fn lock(_file: BorrowedFd<'_>, _locks: u32) -> Result<()> = Ok(());
    fn add_flags(_file: BorrowedFd<'_>, _flags: u32, _src: &Stat) -> Result<()> = Ok(());
    fn keep_acl(_src: BorrowedFd<'_>, _clone: BorrowedFd<'_>) -> Result<()> = Ok(());
    fn flags_to_keep(_src: BorrowedFd<'_>) -> u32 = 0;
    fn has_acls_inside(_directory: BorrowedFd<'_>) -> Result<bool> = Ok(false);
    /// Fails: extents tell more.
    fn clone_family(_directory: BorrowedFd<'_>, _name: &CStr) -> Result<CloneFamily> = Err(Errno::OPNOTSUPP);
    fn is_of_the_system(_xattr: &CStr) -> bool = false;
    fn clone_directory_refusal(_src: BorrowedFd<'_>, _parent: BorrowedFd<'_>) -> Option<String> = Some("only macOS has clonefile".into());
}

pub(crate) const HAS_CLONEFILE: bool = false;

/// Copies the no-copy-on-write attribute of `src`, set or not, to the empty `dst`. Returns whether that changed it.
/// On btrfs, only files that agree in it can share extents, and only an empty file can change it.
pub(crate) fn copy_nocow(src: BorrowedFd<'_>, dst: BorrowedFd<'_>) -> Result<bool> {
    let wanted = rustix::fs::ioctl_getflags(src)? & IFlags::NOCOW;
    set_nocow(dst, wanted)
}

/// Clears the no-copy-on-write attribute of a directory, which new entries inherit.
pub(crate) fn clear_nocow(directory: BorrowedFd<'_>) -> Result<bool> {
    set_nocow(directory, IFlags::empty())
}

fn set_nocow(fd: BorrowedFd<'_>, wanted: IFlags) -> Result<bool> {
    let present = rustix::fs::ioctl_getflags(fd)?;
    if wanted == present & IFlags::NOCOW {
        return Ok(false);
    }
    rustix::fs::ioctl_setflags(fd, (present - IFlags::NOCOW) | wanted)?;
    Ok(true)
}

/// Returns the flags of a directory that users can set (chattr(1)), without NOCOW. Zero where there are no flags.
pub(crate) fn chosen_flags(directory: BorrowedFd<'_>) -> u32 {
    let can_be_chosen = IFlags::APPEND
        | IFlags::COMPRESSED
        | IFlags::DIRSYNC
        | IFlags::IMMUTABLE
        | IFlags::JOURNALING
        | IFlags::NOATIME
        | IFlags::NODUMP
        | IFlags::PROJECT_INHERIT
        | IFlags::SYNC
        | IFlags::TOPDIR;
    rustix::fs::ioctl_getflags(directory).map_or(0, |flags| (flags & can_be_chosen).bits())
}

/// Gives the calling thread a descriptor table of its own, with only the standard streams and `keep`. System calls then
/// need no atomic reference count per descriptor, and opening no shared lock. Only for a thread that this library
/// started, before it opens anything; descriptors must not be handed to or from it afterwards.
pub(crate) fn private_descriptors(keep: &[BorrowedFd<'_>]) {
    let mut kept: Vec<u32> = keep.iter().map(|fd| fd.as_raw_fd().cast_unsigned()).collect();
    kept.sort_unstable();
    let mut first = 3u32;
    for stop in kept.into_iter().chain([u32::MAX]) {
        if stop > first {
            let last = if stop == u32::MAX { stop } else { stop - 1 };
            // By number: older libcs have no close_range(2) (Linux 5.9, glibc 2.34, musl 1.2.4).
            // SAFETY: the call takes three integers. It closes descriptors in a table that it first makes private to this thread
            // (CLOSE_RANGE_UNSHARE); this thread owns none of them but `keep`, which the ranges leave out, and the
            // table that every other thread uses is not touched. On a failure nothing has changed.
            if unsafe { libc::syscall(libc::SYS_close_range, first, last, libc::CLOSE_RANGE_UNSHARE) } != 0 {
                return;
            }
        }
        first = first.max(stop.saturating_add(1));
    }
}

/// Room for about 1,000 directory entries per system call. The default has none, and stands in for a lent one.
#[derive(Default)]
pub(crate) struct ListingBuffer(Vec<u8>);

impl ListingBuffer {
    pub(crate) fn new() -> Self {
        Self(Vec::with_capacity(32 * 1024))
    }
}

/// The entries of an open directory, without `.` and `..`.
pub(crate) struct Listing<'a>(RawDir<'a, BorrowedFd<'a>>);

impl<'a> Listing<'a> {
    /// Starts at the beginning. Without the seek, btrfs omits entries added since the directory was opened.
    pub(crate) fn new(directory: BorrowedFd<'a>, buffer: &'a mut ListingBuffer) -> Result<Self> {
        rustix::fs::seek(directory, SeekFrom::Start(0))?;
        Ok(Self(RawDir::new(directory, buffer.0.spare_capacity_mut())))
    }

    pub(crate) fn next(&mut self) -> Option<Result<ListedEntry<'_>>> {
        loop {
            // Passing over the dots borrows again: the loan of a returned entry must not outlive the iteration.
            match self.0.next()? {
                // The directory was removed: it has no entries.
                Err(Errno::NOENT) => return None,
                Err(error) => return Some(Err(error)),
                Ok(entry) => {
                    let name = entry.file_name();
                    if matches!(name.to_bytes(), b"." | b"..") {
                        continue;
                    }
                    let kind = entry.file_type();
                    let name: *const CStr = name;
                    // SAFETY: `name` points into the buffer borrowed for 'a; it is only overwritten by the next call
                    // of `next`, which needs `&mut self` and so ends the returned loan.
                    let name = unsafe { &*name };
                    return Some(Ok(ListedEntry { name, kind }));
                }
            }
        }
    }

    /// Returns whether the next call asks the kernel: a good moment to share work.
    pub(crate) fn at_refill(&self) -> bool {
        self.0.is_buffer_empty()
    }
}

/// Opens the directory `name` in `parent`, refusing links and mounts (EXDEV). `RESOLVE_NO_XDEV` (openat2(2), Linux 5.6)
/// also sees bind mounts, which have the device number of the tree around them.
pub(crate) fn open_directory_same_mount(parent: BorrowedFd<'_>, name: impl Arg + Copy) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    match super::retry(|| rustix::fs::openat2(parent, name, flags, Mode::empty(), resolve)) {
        Err(Errno::NOSYS | Errno::PERM) => {
            // A kernel before 5.6, or a container that filters the call: compare mount ids.
            let fd = crate::sys::open_at(parent, name, flags)?;
            if mounts::mount_id(fd.as_fd())? != mounts::mount_id(parent)? {
                return Err(Errno::XDEV);
            }
            Ok(fd)
        }
        // A concurrent rename: `name` is a single component, so trying again is enough.
        Err(Errno::AGAIN) => open_directory_same_mount(parent, name),
        other => other,
    }
}

/// Opens `path` below `root` in one call, following no link and never leaving `root` (openat2(2), Linux 5.6).
/// Any error may also mean that the call is unavailable: go name by name instead.
pub(crate) fn open_beneath(root: BorrowedFd<'_>, path: &std::path::Path, flags: OFlags) -> Result<OwnedFd> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    super::retry(|| rustix::fs::openat2(root, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve))
}

/// Returns whether btrfs keeps a written-out file's contents inside its metadata, where they cannot be shared.
/// Only the extent tells (FS_IOC_FIEMAP): st_blocks is rounded up to whole blocks, at least since Linux 6.18.
pub(crate) fn is_inline(file: BorrowedFd<'_>, size: u64) -> bool {
    const SECTOR: u64 = 4096;
    let mut inline = false;
    let mut first = |extent: &crate::sys::Extent| {
        inline = extent.inline;
        false
    };
    (1..=SECTOR).contains(&size) && extents(file, &mut first).is_ok() && inline
}

/// Returns whether the file system creates one file at a time across directories, so that waiting threads cost more
/// than they gain (measured: docs/node-and-python.md).
pub(crate) fn makes_one_at_a_time(directory: BorrowedFd<'_>) -> bool {
    magic(directory) == Ok(BTRFS_MAGIC)
}

/// Copies up to `bytes` bytes with copy_file_range(2), from one file offset to the other.
pub(crate) fn copy_range(src: BorrowedFd<'_>, dst: BorrowedFd<'_>, bytes: usize) -> Result<usize> {
    rustix::fs::copy_file_range(src, None, dst, None, bytes)
}

/// Returns the start of data at or after `position`. ENXIO at the end, EINVAL where the file system cannot tell.
pub(crate) fn seek_data(fd: BorrowedFd<'_>, position: u64) -> Result<u64> {
    rustix::fs::seek(fd, SeekFrom::Data(position))
}

/// Renames unless the new name exists (EEXIST). EINVAL on file systems that cannot.
pub(crate) fn rename_no_replace(
    from: BorrowedFd<'_>,
    name: &CStr,
    parent: BorrowedFd<'_>,
    new_name: &CStr,
) -> Result<()> {
    rustix::fs::renameat_with(from, name, parent, new_name, RenameFlags::NOREPLACE)
}

/// Exchanges two names in one step. EINVAL on file systems that cannot.
pub(crate) fn rename_exchange(from: BorrowedFd<'_>, name: &CStr, parent: BorrowedFd<'_>, other: &CStr) -> Result<()> {
    rustix::fs::renameat_with(from, name, parent, other, RenameFlags::EXCHANGE)
}

/// Makes a FIFO, or a device node with `like`'s number.
pub(crate) fn make_node(parent: BorrowedFd<'_>, name: &CStr, kind: FileType, mode: Mode, like: &Stat) -> Result<()> {
    rustix::fs::mknodat(parent, name, kind, mode, like.st_rdev)
}

/// Makes the calling thread and those it starts run (SCHED_IDLE) and use the disk only when no other wants to.
pub(crate) fn lower_priority() {
    const WHO_PROCESS: libc::c_int = 1;
    const CLASS_IDLE: libc::c_int = 3 << 13;
    // SAFETY: integers, and a structure that lives until the call returns. They change the scheduling of the calling thread only, and a
    // failure is harmless.
    unsafe {
        let parameters: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters);
        libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, CLASS_IDLE);
    }
}

/// Returns the microseconds since boot that some task waited for processor, memory, disk (/proc/pressure, Linux 4.20).
pub(crate) fn stalled() -> Option<[u64; 3]> {
    Some([pressure("cpu")?, pressure("memory")?, pressure("io")?])
}

fn pressure(what: &str) -> Option<u64> {
    // The first line counts the time in which some task waited.
    let text = beginning_of(&format!("/proc/pressure/{what}"))?;
    text.split_once("total=")?.1.split_ascii_whitespace().next()?.parse().ok()
}

/// Returns the ticks since boot that all processors worked, without low priorities, and could work (proc_stat(5)).
pub(crate) fn processor_ticks() -> Option<[u64; 2]> {
    let text = beginning_of("/proc/stat")?;
    // User, nice, system, idle, waiting for a disk, interrupts, soft interrupts, taken by a hypervisor.
    let mut ticks = [0; 8];
    let mut numbers = text.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace().map(str::parse);
    for tick in &mut ticks {
        *tick = numbers.next()?.ok()?;
    }
    let all: u64 = ticks.iter().sum();
    Some([all - ticks[1] - ticks[3] - ticks[4], all])
}

/// Returns a value that changes with every boot, and is the same in all containers.
pub(super) fn boot() -> Option<String> {
    beginning_of("/proc/sys/kernel/random/boot_id")
}

pub(super) fn host() -> Option<String> {
    beginning_of("/etc/machine-id").filter(|id| id.len() >= 32)
}

fn beginning_of(path: &str) -> Option<String> {
    let file = crate::sys::open_at(rustix::fs::CWD, path, OFlags::RDONLY).ok()?;
    let text = crate::sys::read(file, 256).ok()?;
    Some(std::str::from_utf8(&text).ok()?.trim_end().to_owned())
}
