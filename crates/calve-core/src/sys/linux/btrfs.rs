//! btrfs subvolumes and snapshots (ioctls of linux/btrfs.h).

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::Stat;
use rustix::io::{Errno, Result};
use rustix::ioctl::{Opcode, Setter, Updater, ioctl, opcode};

use super::magic::{BTRFS_MAGIC, magic};

/// The inode number of every subvolume's root directory (BTRFS_FIRST_FREE_OBJECTID).
const SUBVOLUME_INODE: u64 = 256;
const NAME_BYTES_V2: usize = 4040;

/// `struct btrfs_ioctl_vol_args_v2`.
#[repr(C)]
struct VolumeArgs {
    fd: i64,
    transid: u64,
    flags: u64,
    unused: [u64; 4],
    name: [u8; NAME_BYTES_V2],
}

/// `struct btrfs_ioctl_get_subvol_rootref_args`.
#[repr(C)]
struct RootRefs {
    min_treeid: u64,
    refs: [RootRef; 255],
    count: u8,
    align: [u8; 7],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RootRef {
    treeid: u64,
    dirid: u64,
}

/// `struct btrfs_ioctl_ino_lookup_user_args`.
#[repr(C)]
struct InodeLookup {
    dirid: u64,
    treeid: u64,
    name: [u8; 256],
    path: [u8; 4080 - 256],
}

const MAGIC: u8 = 0x94;
const SNAP_CREATE_V2: Opcode = opcode::write::<VolumeArgs>(MAGIC, 23);
const SUBVOL_CREATE_V2: Opcode = opcode::write::<VolumeArgs>(MAGIC, 24);
const SNAP_DESTROY_V2: Opcode = opcode::write::<VolumeArgs>(MAGIC, 63);
const SUBVOL_GETFLAGS: Opcode = opcode::read::<u64>(MAGIC, 25);
const SUBVOL_SETFLAGS: Opcode = opcode::write::<u64>(MAGIC, 26);
const GET_SUBVOL_ROOTREF: Opcode = opcode::read_write::<RootRefs>(MAGIC, 61);
const INO_LOOKUP_USER: Opcode = opcode::read_write::<InodeLookup>(MAGIC, 62);

/// The first fields of `struct btrfs_ioctl_fs_info_args`.
#[repr(C)]
struct FsInfo {
    max_id: u64,
    num_devices: u64,
    fsid: [u8; 16],
    node_bytes: u32,
    rest: [u8; 1024 - 36],
}

const FS_INFO: Opcode = opcode::read::<FsInfo>(MAGIC, 31);

const _: () = {
    assert!(size_of::<FsInfo>() == 1024);
    assert!(size_of::<VolumeArgs>() == 4096);
    assert!(size_of::<RootRefs>() == 4096);
    assert!(size_of::<InodeLookup>() == 4096);
};

pub(crate) fn is_subvolume(directory: BorrowedFd<'_>, stat: &Stat) -> Result<bool> {
    Ok(stat.st_ino == SUBVOLUME_INODE && magic(directory)? == BTRFS_MAGIC)
}

/// Returns whether two open directories are on one btrfs. Device numbers do not tell: every subvolume has its own.
pub(crate) fn same_btrfs(a: BorrowedFd<'_>, b: BorrowedFd<'_>) -> bool {
    matches!((fs_info(a), fs_info(b)), (Ok(a), Ok(b)) if a.fsid == b.fsid)
}

pub(crate) fn btrfs_node_bytes(directory: BorrowedFd<'_>) -> Result<u64> {
    fs_info(directory).map(|info| info.node_bytes.into())
}

fn fs_info(directory: BorrowedFd<'_>) -> Result<FsInfo> {
    if magic(directory)? != BTRFS_MAGIC {
        return Err(Errno::NOTTY);
    }
    let mut info = FsInfo { max_id: 0, num_devices: 0, fsid: [0; 16], node_bytes: 0, rest: [0; 1024 - 36] };
    // SAFETY: the opcode takes a pointer to `struct btrfs_ioctl_fs_info_args` of 1,024 bytes (size checked above), which the
    // kernel reads and fills.
    unsafe { ioctl(directory, Updater::<FS_INFO, FsInfo>::new(&mut info)) }?;
    Ok(info)
}

/// Makes `name` in `parent` a writable snapshot of the subvolume `src`.
pub(crate) fn snapshot(src: BorrowedFd<'_>, parent: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    call::<SNAP_CREATE_V2>(parent, src.as_raw_fd().into(), name)
}

pub(crate) fn create_subvolume(parent: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    call::<SUBVOL_CREATE_V2>(parent, 0, name)
}

/// Deletes the subvolume `name` in `parent` in one call, whatever its size.
pub(crate) fn delete_subvolume(parent: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    call::<SNAP_DESTROY_V2>(parent, 0, name)
}

fn call<const CALL: Opcode>(parent: BorrowedFd<'_>, fd: i64, name: &CStr) -> Result<()> {
    let bytes = name.to_bytes();
    if bytes.len() > 255 {
        return Err(Errno::NAMETOOLONG);
    }
    let mut args = VolumeArgs { fd, transid: 0, flags: 0, unused: [0; 4], name: [0; NAME_BYTES_V2] };
    args.name[..bytes.len()].copy_from_slice(bytes);
    // SAFETY: the three opcodes take a pointer to `struct btrfs_ioctl_vol_args_v2`, whose layout `VolumeArgs` has (size checked
    // above); the kernel only reads it.
    unsafe { ioctl(parent, Setter::<CALL, VolumeArgs>::new(args)) }
}

/// Makes a read-only subvolume writable. Its owner may do so, and root.
pub(crate) fn make_subvolume_writable(subvolume: BorrowedFd<'_>) -> Result<()> {
    /// BTRFS_SUBVOL_RDONLY.
    const READ_ONLY: u64 = 1 << 1;
    let mut flags = 0;
    // SAFETY: the opcode takes a pointer to a 64-bit number, which the kernel writes.
    unsafe { ioctl(subvolume, Updater::<SUBVOL_GETFLAGS, u64>::new(&mut flags)) }?;
    if flags & READ_ONLY == 0 {
        return Ok(());
    }
    // SAFETY: the opcode takes a pointer to a 64-bit number, which the kernel only reads.
    unsafe { ioctl(subvolume, Setter::<SUBVOL_SETFLAGS, u64>::new(flags & !READ_ONLY)) }
}

/// Returns the paths of the subvolumes directly below `root`, relative to it. Needs no privilege (Linux 4.18).
/// Fails if one is in a directory that the caller may not search: it must not be overlooked.
pub(crate) fn nested_subvolumes(root: BorrowedFd<'_>) -> Result<Vec<CString>> {
    let mut paths = Vec::new();
    let mut from = 0;
    loop {
        let mut refs =
            RootRefs { min_treeid: from, refs: [RootRef { treeid: 0, dirid: 0 }; 255], count: 0, align: [0; 7] };
        // SAFETY: the opcode takes a pointer to `struct btrfs_ioctl_get_subvol_rootref_args`, whose layout `RootRefs` has
        // (size checked above); the kernel reads and writes it.
        let result = unsafe { ioctl(root, Updater::<GET_SUBVOL_ROOTREF, RootRefs>::new(&mut refs)) };
        // EOVERFLOW: there are more, from `min_treeid` on.
        let more = match result {
            Ok(()) => false,
            Err(Errno::OVERFLOW) => true,
            Err(error) => return Err(error),
        };
        for found in &refs.refs[..usize::from(refs.count)] {
            paths.push(path_of(root, *found)?);
        }
        if !more {
            return Ok(paths);
        }
        from = refs.min_treeid;
    }
}

fn path_of(root: BorrowedFd<'_>, found: RootRef) -> Result<CString> {
    let mut lookup = InodeLookup { dirid: found.dirid, treeid: found.treeid, name: [0; 256], path: [0; 4080 - 256] };
    // SAFETY: the opcode takes a pointer to `struct btrfs_ioctl_ino_lookup_user_args`, whose layout `InodeLookup` has (size
    // checked above); the kernel reads and writes it.
    unsafe { ioctl(root, Updater::<INO_LOOKUP_USER, InodeLookup>::new(&mut lookup)) }?;
    // `path` is the directory with a slash at its end, or empty.
    CString::new([until_nul(&lookup.path), until_nul(&lookup.name)].concat()).map_err(|_| Errno::INVAL)
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    CStr::from_bytes_until_nul(bytes).map_or(bytes, CStr::to_bytes)
}
