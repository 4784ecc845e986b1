use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, CopyFileRangeFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};

use super::memory::{Memory, Node, Result, attributes, resize, touch};

/// Faults of a [`FuseVolume`](super::FuseVolume), besides the lack of reflinks, xattrs, ACLs and `RENAME_NOREPLACE`.
#[derive(Clone, Debug, Default)]
pub struct FuseOptions {
    /// Reading a file of this name fails with EIO; writing works.
    pub unreadable_name: Option<OsString>,
    /// copy_file_range(2) copies at most this many bytes from a file's start, then returns 0 before its end, as NFS,
    /// CIFS and Ceph may. By default the call is not supported.
    pub copies_up_to_bytes: Option<u64>,
    /// flock(2) fails with EOPNOTSUPP.
    pub refuses_flock: bool,
}

/// Disables the kernel's cache, so that hard links and renames need no invalidation.
const TTL: Duration = Duration::ZERO;

pub(super) struct Server {
    memory: Mutex<Memory>,
    options: FuseOptions,
}

impl Server {
    pub(super) fn new(options: FuseOptions) -> Self {
        Self { memory: Mutex::new(Memory::new()), options }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_unreadable(&self, node: &Node) -> bool {
        self.options.unreadable_name.as_deref() == Some(node.name.as_os_str())
    }

    fn make(&self, request: &Request, place: (INodeNo, &OsStr), mode: u32, umask: u32, rdev: u32) -> Result<FileAttr> {
        let attr = attributes(kind(mode)?, (request.uid(), request.gid()), mode & !umask, rdev);
        Ok(self.memory().create(place.0, place.1, attr)?.attr)
    }
}

fn kind(mode: u32) -> Result<FileType> {
    match mode & 0o170_000 {
        0o100_000 | 0 => Ok(FileType::RegularFile),
        0o040_000 => Ok(FileType::Directory),
        0o120_000 => Ok(FileType::Symlink),
        0o010_000 => Ok(FileType::NamedPipe),
        0o140_000 => Ok(FileType::Socket),
        0o020_000 => Ok(FileType::CharDevice),
        0o060_000 => Ok(FileType::BlockDevice),
        _ => Err(Errno::EINVAL),
    }
}

fn moment(time: TimeOrNow) -> SystemTime {
    match time {
        TimeOrNow::SpecificTime(time) => repaired(time),
        TimeOrNow::Now => SystemTime::now(),
    }
}

/// Repairs a time before 1970: fuser 0.18 reads -s seconds plus n nanoseconds as -s seconds minus n nanoseconds.
fn repaired(time: SystemTime) -> SystemTime {
    match time.duration_since(UNIX_EPOCH) {
        Ok(_) => time,
        Err(before) => time + 2 * Duration::from_nanos(before.duration().subsec_nanos().into()),
    }
}

fn reply_entry(reply: ReplyEntry, made: Result<FileAttr>) {
    match made {
        Ok(attr) => reply.entry(&TTL, &attr, Generation(0)),
        Err(error) => reply.error(error),
    }
}

fn reply_empty(reply: ReplyEmpty, done: Result<()>) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

fn reply_written(reply: ReplyWrite, written: Result<u32>) {
    match written {
        Ok(bytes) => reply.written(bytes),
        Err(error) => reply.error(error),
    }
}

/// Implements only the calls that tests need. For a missing xattr call the kernel reports EOPNOTSUPP, and without
/// `create` it makes a file with `mknod` and opens it.
impl Filesystem for Server {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        if self.options.refuses_flock {
            // Without this capability the kernel handles locks itself.
            let added = config.add_capabilities(InitFlags::FUSE_FLOCK_LOCKS);
            return added.map_err(|_| std::io::ErrorKind::Unsupported.into());
        }
        Ok(())
    }

    fn setlk(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: LockOwner,
        _: u64,
        _: u64,
        _: i32,
        _: u32,
        _: bool,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EOPNOTSUPP);
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        reply_entry(reply, self.memory().lookup(parent, name).map(|node| node.attr));
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.memory().node(ino) {
            Ok(node) => reply.attr(&TTL, &node.attr),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut memory = self.memory();
        let node = match memory.node_mut(ino) {
            Ok(node) => node,
            Err(error) => return reply.error(error),
        };
        if let Some(size) = size {
            if let Err(error) = resize(node, size as usize) {
                return reply.error(error);
            }
            touch(node);
        }
        let attr = &mut node.attr;
        attr.perm = mode.map_or(attr.perm, |mode| (mode & 0o7777) as u16);
        attr.uid = uid.unwrap_or(attr.uid);
        attr.gid = gid.unwrap_or(attr.gid);
        attr.atime = atime.map_or(attr.atime, moment);
        attr.mtime = mtime.map_or(attr.mtime, moment);
        attr.ctime = SystemTime::now();
        reply.attr(&TTL, attr);
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        match self.memory().node(ino) {
            Ok(node) => reply.data(&node.data),
            Err(error) => reply.error(error),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        reply_entry(reply, self.make(request, (parent, name), mode, umask, rdev));
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        // The kernel omits the type bits here.
        reply_entry(reply, self.make(request, (parent, name), mode | 0o040_000, umask, 0));
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let attr = attributes(FileType::Symlink, (request.uid(), request.gid()), 0o777, 0);
        let mut memory = self.memory();
        let made = memory.create(parent, name, attr).map(|node| {
            node.data = target.as_os_str().as_bytes().to_vec();
            node.attr.size = node.data.len() as u64;
            node.attr
        });
        reply_entry(reply, made);
    }

    fn link(&self, _: &Request, ino: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        reply_entry(reply, self.memory().link(ino, parent, name));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        reply_empty(reply, self.memory().unlink(parent, name));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        reply_empty(reply, self.memory().rmdir(parent, name));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        to: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if !flags.is_empty() {
            return reply.error(Errno::EINVAL);
        }
        reply_empty(reply, self.memory().rename(parent, name, to, new_name));
    }

    fn open(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.memory().node(ino) {
            // Bypass the page cache, which would answer reads with data written a moment ago.
            Ok(node) if self.is_unreadable(node) => reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO),
            Ok(_) => reply.opened(FileHandle(0), FopenFlags::empty()),
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let memory = self.memory();
        let is_unreadable = memory.node(ino).is_ok_and(|node| self.is_unreadable(node));
        match memory.read(ino, offset, size.into()) {
            Ok(_) if is_unreadable => reply.error(Errno::EIO),
            Ok(bytes) => reply.data(bytes),
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        reply_written(reply, self.memory().write(ino, offset, data));
    }

    fn copy_file_range(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        to: INodeNo,
        _: FileHandle,
        to_offset: u64,
        length: u64,
        _: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        let Some(limit) = self.options.copies_up_to_bytes else { return reply.error(Errno::ENOSYS) };
        let mut memory = self.memory();
        let bytes = memory.read(ino, offset, length.min(limit.saturating_sub(offset))).map(<[u8]>::to_vec);
        reply_written(reply, bytes.and_then(|bytes| memory.write(to, to_offset, &bytes)));
    }

    fn readdir(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let memory = self.memory();
        let listing = match memory.list(ino, offset) {
            Ok(listing) => listing,
            Err(error) => return reply.error(error),
        };
        for (name, entry, attr) in listing {
            if reply.add(attr.ino, entry.place + 1, attr.kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        // 1 GiB of blocks and a million inodes, always free.
        reply.statfs(1 << 18, 1 << 18, 1 << 18, 1 << 20, 1 << 20, 4096, 255, 4096);
    }

    /// Without this call the kernel would report that a file has no ACL, instead of no support for ACLs.
    fn getxattr(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, reply: ReplyXattr) {
        reply.error(Errno::EOPNOTSUPP);
    }
}
